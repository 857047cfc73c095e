"""Facts of a data set that a model must fit: the shapes and kinds of its samples and targets."""

from __future__ import annotations

from dataclasses import dataclass

from ..project import catalogue
from ..project.document import DataSetup
from .load import load_dataset
from .samples import DataProblem


@dataclass(frozen=True)
class Facts:
    """`sample_shape` and `target_shape` are without the batch; a label's is (). `classes` is the
    number of classes or characters, 0 if the targets are numbers. `dtype` is that of samples."""

    title: str
    sample_shape: tuple[int, ...]
    target_shape: tuple[int, ...]
    classes: int
    dtype: str = "float32"


def facts_of(setup: DataSetup) -> Facts:
    """The facts of a data set, from the catalogue if it has them. Raises DataProblem."""
    kind = catalogue.datasets().get(setup.kind)
    if kind is None:
        raise DataProblem(f"There is no data set “{setup.kind}”. Choose another.")
    if kind.sample_shape:
        return Facts(kind.title, kind.sample_shape, () if kind.classes else (1,), kind.classes)
    data = load_dataset(setup)
    x, y = data.x_train, data.y_train
    dtype = "float32" if x.is_floating_point() else "int64"
    return Facts(kind.title, data.sample_shape, tuple(y.shape[1:]), len(data.classes), dtype)
