"""Where the batches of a training script come from: the data of a set-up, which lies beside the
script, or what the user's own code makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from ..datasets.dataset import Dataset, balanced_order, epoch_order
from ..datasets.transforms import generator_of
from ..project.document import TrainingSetup
from ..system.errors import LabError
from .loader_lines import LoaderLines
from .script_lines import call

_SLICES = """\
def slices(x, y):
    for start in range(0, len(y), {batch_size}):
        yield x[start : start + {batch_size}], y[start : start + {batch_size}]
"""
_CUT = """\
def slices(x, y, lengths):
    for start in range(0, len(y), {batch_size}):
        longest = int(lengths[start : start + {batch_size}].max())
        yield x[start : start + {batch_size}, {cut}], y[start : start + {batch_size}]
"""
_PLACED = """\
    x_train, y_train, x_val, y_val = (
        data[name].to(device) for name in ("x_train", "y_train", "x_val", "y_val")
    )
"""
_LENGTHS = """\
    lengths_train, lengths_val = data["lengths_train"], data["lengths_val"]
"""


@dataclass(frozen=True)
class DataLines:
    """`functions` come before the loop. The function `train` takes `taken` beside the model, and
    has the lines `placed` before the model is on its device, and `made` before the loop.

    An epoch begins with the lines `begin`; then `batches` are those of the epoch, `again` the same
    once more, and `samples` counts them. `validation` are the batches of validation. `per_epoch` is
    the number of batches of an epoch, None if the data does not say.
    """

    functions: tuple[str, ...]
    taken: str
    placed: str
    made: str
    begin: tuple[str, ...]
    batches: str
    again: str
    samples: str
    validation: str
    per_epoch: int | None


def dataset_lines(
    dataset: Dataset, setup: TrainingSetup, loader: LoaderLines | None = None
) -> DataLines:
    """The batches of `Dataset.train_batch`, or those that a `loader` gives, from a dict `data` of
    the data set's tensors. Raises LabError for samples padded batch by batch with a `loader`."""
    order = "torch.arange(len(y_train))"
    if dataset.loading.balanced:
        order = f"balanced_order(y_train.cpu(), {setup.seed}, epoch)"
    elif dataset.loading.shuffle:
        order = f"epoch_order(len(y_train), {setup.seed}, epoch)"
    if dataset.loading.drop_last:
        order += f"[:{dataset.batches(setup.batch_size) * setup.batch_size}]"
    begin, samples = f"order = {order}", "len(order)"
    batches = again = "slices(x_train[order], y_train[order])"
    slices, placed, validation = _SLICES, _PLACED, "slices(x_val, y_val)"
    if dataset.ragged is not None:
        if loader is not None:
            raise LabError(
                "A script cannot pad each batch to its own longest with these objects of the"
                " DataLoader.",
                hint="Set padded_to to all.",
            )
        slices, placed = _CUT, _PLACED + _LENGTHS
        batches = again = "slices(x_train[order], y_train[order], lengths_train[order])"
        validation = "slices(x_val, y_val, lengths_val)"
    if loader is not None:
        begin, batches, samples = "sizes = []", "loaded(loader, device, sizes)", "sum(sizes)"
        again = "loaded(loader, device, [])"
    if dataset.drawn:
        batches, again = (f"transformed({each}, epoch)" for each in (batches, again))
    return DataLines(
        functions=(
            *_functions(dataset, setup, loader),
            slices.format(
                batch_size=setup.batch_size,
                cut="x.shape[1] - longest :" if _pads_left(dataset) else ":longest",
            ),
        ),
        taken="data",
        placed=placed,
        made="" if loader is None else loader.made,
        begin=(begin,),
        batches=batches,
        again=again,
        samples=samples,
        validation=validation,
        per_epoch=dataset.batches(setup.batch_size) if loader is None else loader.batches,
    )


def _pads_left(dataset: Dataset) -> bool:
    return dataset.ragged is not None and dataset.ragged.on_the_left


def _functions(
    dataset: Dataset, setup: TrainingSetup, loader: LoaderLines | None
) -> tuple[str, ...]:
    """The functions that make the batches of an epoch: those that a run has."""
    used: list[Callable] = [t.func for t in dataset.drawn]
    if dataset.loading.balanced:
        used.append(balanced_order)
    elif dataset.loading.shuffle and loader is None:
        used.append(epoch_order)
    sources = dict.fromkeys([generator_of, *used]) if used else {}
    made = [inspect.getsource(function) for function in sources]
    if dataset.drawn:
        lines = [
            "def transformed(batches, epoch):",
            "    for number, (x, y) in enumerate(batches):",
            f"        generator = generator_of({setup.seed}, epoch, number)",
        ]
        for transform in dataset.drawn:
            drawn = call(transform.func.__name__, "x, generator", transform.keywords)
            lines.append(f"        x = {drawn}")
        made.append("\n".join([*lines, "        yield x, y\n"]))
    if loader is not None:
        made.append(loader.functions)
    return tuple(made)
