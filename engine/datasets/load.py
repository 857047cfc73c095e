"""Loads the data set that a set-up names."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import msgspec
import numpy as np
import torch

from ..project import catalogue
from ..project.document import DataSetup, ParamValue
from . import bundled, points
from .dataset import Dataset
from .preparing import scale_of, standardised
from .samples import DataProblem, Samples
from .split import split

_MAKERS: dict[str, Callable[..., Samples]] = {
    "digits": bundled.digits,
    "iris": bundled.iris,
    "wine": bundled.wine,
    "breast_cancer": bundled.breast_cancer,
    "diabetes": bundled.diabetes,
    "moons": points.moons,
    "circles": points.circles,
    "spirals": points.spirals,
}


def load_dataset(setup: DataSetup) -> Dataset:
    """Return the data set of `setup` on the CPU; an equal set-up returns the same object.

    Raises DataProblem for an unknown kind or parameter, a value out of range, or a split that
    cannot be made.
    """
    return _load(msgspec.json.encode(setup, order="deterministic"))


@lru_cache(maxsize=8)
def _load(encoded: bytes) -> Dataset:
    setup = msgspec.json.decode(encoded, type=DataSetup)
    arguments = arguments_of(setup.kind, setup.params)
    standardise = arguments.pop("standardise", "nothing")
    # A set that is drawn has a seed of its own, and another draw is split in another way.
    seed = setup.split_seed + int(arguments.get("seed", 0))
    samples = _MAKERS[setup.kind](**arguments)
    train, val = split(samples, setup.validation_fraction, seed, setup.stratified)
    x, y = samples.x, samples.y
    scale = np.ones(y.shape[1:] if not samples.classes else 1)
    if standardise != "nothing":
        x = standardised(samples, x, train)
    if standardise == "features and target" and not samples.classes:
        mean, scale = scale_of(y[train])
        y = ((y - mean) / scale).astype(np.float32)
    return Dataset(
        name=setup.kind,
        x_train=torch.from_numpy(x[train]),
        y_train=torch.from_numpy(y[train]),
        x_val=torch.from_numpy(x[val]),
        y_val=torch.from_numpy(y[val]),
        target_scale=torch.from_numpy(scale).float(),
        classes=samples.classes,
        targets=samples.targets,
        columns=_columns(samples),
        skipped=samples.skipped,
    )


def arguments_of(kind: str, params: dict[str, ParamValue]) -> dict:
    """Return the data set's parameters, checked, with the catalogue's defaults filled in.

    Raises DataProblem for an unknown kind or parameter, and a value that is not allowed.
    """
    kinds = catalogue.datasets()
    if kind not in kinds:
        raise DataProblem(f"There is no data set {kind!r}.", hint=f"There are {', '.join(kinds)}.")
    schema = {param.name: param for param in kinds[kind].params}
    unknown = [name for name in params if name not in schema]
    if unknown:
        known = ", ".join(schema) or "none"
        raise DataProblem(
            f"Data set {kind} has no parameter {unknown[0]!r}.", hint=f"It has {known}."
        )
    values = {name: param.default for name, param in schema.items()}
    for name, value in params.items():
        try:
            values[name] = catalogue.parse_value(schema[name], value)
        except ValueError as error:
            raise DataProblem(f"Data set {kind}, {name}: {error}") from error
    return values


def _columns(samples: Samples) -> tuple[str, ...]:
    return tuple(
        f"{source.name} ({i})" if source.is_category else source.name
        for source in samples.sources
        for i in range(source.stop - source.start)
    )
