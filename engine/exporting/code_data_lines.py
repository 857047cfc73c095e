"""The batches of a training script of the user's code: of its own data, or of a data set of
Train."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from ..project.document import TrainingSetup
from ..restoring.random_states import States
from ..subjects.python_file import PythonFile
from ..training.objectives.batches import as_columns, has_samples
from ..training.objectives.catalogue_data import CatalogueData
from ..training.objectives.code_data import CodeData
from ..training.objectives.loaders import Given, arguments_of
from .code_names import CodeNames
from .data_lines import DataLines, dataset_lines
from .loader_lines import MADE, LoaderLines, loader_function

_OWN = """\
def loaders():
{whole}    return {data}, {validation}
"""


class Expression(NamedTuple):
    """An expression of the user's, of a file or, without one, of the console."""

    text: str
    file: PythonFile | None


class Expressions(NamedTuple):
    """Those of the data: `data` is None for a data set of Train, `validation` without any; `given`
    are objects for the DataLoader."""

    data: Expression | None
    validation: Expression | None
    given: Mapping[str, Expression]


class DataOfCode(NamedTuple):
    """`main` are the lines of the script's `main` that make the data; `loaders` are the names of
    the loaders in `train`, from which batches draw."""

    lines: DataLines
    main: list[str]
    loaders: str


def data_of_code(
    named: Expressions,
    data: CatalogueData | CodeData,
    setup: TrainingSetup,
    names: CodeNames,
    before: States,
    then: States,
    saved: dict[str, Any],
) -> DataOfCode:
    """The generators are in the states `before` the data is made, and in those of `then` when
    training begins: samples and steps may draw by NumPy and by Python, which no seed of the run
    sets. `saved` takes what lies beside the script."""
    begun = names.restoring(before)
    if isinstance(data, CodeData) and data.rows is not None:
        saved |= {f"{part} rows": rows for part, rows in data.rows._asdict().items()}
    after = names.restoring({name: then[name] for name in ("numpy", "random") if name in then})
    if isinstance(data, CodeData):
        lines = _own_lines(named, data, setup, names)
        made = f"{lines.taken} = loaders()"
        return DataOfCode(lines, [*begun, made, *after], lines.taken)
    lines = dataset_lines(data.dataset, setup, _loader(named, data, setup, names))
    if not lines.made:
        return DataOfCode(lines, ["data = saved", *after], "")
    ahead = "".join(f"    {line}\n" for line in begun)
    behind = "".join(f"    {line}\n" for line in after)
    lines = replace(lines, made=f"{ahead}{lines.made}{behind}")
    return DataOfCode(lines, ["data = saved"], "loader")


def _loader(
    named: Expressions, data: CatalogueData, setup: TrainingSetup, names: CodeNames
) -> LoaderLines | None:
    if not named.given:
        return None
    given = {name: names.expression(*each) for name, each in named.given.items()}
    made = {name: _is_made(name, data.given) for name in given}
    return LoaderLines(
        loader_function(setup, given, made), MADE, data.batches_per_epoch, frozenset()
    )


def _own_lines(
    named: Expressions, data: CodeData, setup: TrainingSetup, names: CodeNames
) -> DataLines:
    assert named.data is not None
    text, whole = names.expression(*named.data), ""
    given = {n: e for n, e in named.given.items() if n in ("worker_init_fn", "collate_fn")}
    validation, value = "()", data.validation
    if data.rows is not None:
        whole, text, value = f"    whole = {text}\n", "whole", data.data
        validation = _made(names, "whole", value, setup, given, rows="validation")
    elif named.validation is not None:
        validation = _made(names, names.expression(*named.validation), value, setup, given)
    rows = "training" if whole else ""
    training = _made(names, text, data.data, setup, named.given, data.given, rows)
    batches = _batches("loader", data.data)
    return DataLines(
        functions=(_OWN.format(whole=whole, data=training, validation=validation),),
        taken="loader, validation_loader",
        placed="",
        made="",
        begin=(),
        batches=batches,
        again=batches,
        samples="trained",
        validation=_batches("validation_loader", value),
        per_epoch=data.batches_per_epoch,
    )


def _batches(loader: str, value: object) -> str:
    """The batches of a loader on the device; a function that returns them is called."""
    is_called = callable(value) and not isinstance(value, Iterable | Dataset)
    return f"(moved(batch, device) for batch in {loader}{'()' if is_called else ''})"


def _made(
    names: CodeNames,
    text: str,
    value: object,
    setup: TrainingSetup,
    given: Mapping[str, Expression],
    objects: Given | None = None,
    rows: str = "",
) -> str:
    """The data as an iterable of batches, as `batches_of` makes it; for validation without the
    `objects` given. `rows` names those that are taken of it, "" for all."""
    loading, trains = setup.data.loading, objects is not None
    columns = as_columns(value)
    if columns is not None:
        text = _columns(text, value, f'[saved["{rows} rows"]]' if rows else "")
    elif not isinstance(value, Dataset) and not has_samples(value):
        return text
    elif rows:
        text = f'Subset({text}, saved["{rows} rows"].tolist())'
    arguments = {n: repr(v) for n, v in arguments_of(loading).items() if v or n != "num_workers"}
    if loading.padding != "none":
        arguments["collate_fn"] = (
            f"partial(pad_batch, side={loading.padding!r}, value={loading.padding_value!r},"
            f" gives={loading.gives!r})"
        )
    for name, each in given.items():
        arguments[name] = names.expression(*each)
        if objects is not None and _is_made(name, objects):
            arguments[name] = f"({arguments[name]})(samples)"
            text = f"samples := {text}"
    if "batch_sampler" not in given:
        arguments["batch_size"] = repr(setup.batch_size)
        if trains and loading.drop_last:
            arguments["drop_last"] = "True"
        is_ordered = "sampler" in given or isinstance(value, IterableDataset)
        if trains and loading.shuffle and not is_ordered:
            arguments["shuffle"] = "True"
    listed = ", ".join(f"{name}={each}" for name, each in arguments.items())
    return f"DataLoader({text}, {listed})"


def _columns(text: str, value: object, rows: str) -> str:
    """A TensorDataset of `rows` of the tensors, or arrays of numpy, that `value` is."""
    if type(value) is TensorDataset:
        return f"TensorDataset(*(part{rows} for part in {text}.tensors))" if rows else text
    if isinstance(value, Tensor):
        return f"TensorDataset({text}{rows})"
    if isinstance(value, np.ndarray):
        return f"TensorDataset(torch.as_tensor({text}){rows})"
    assert isinstance(value, tuple | list)
    if all(isinstance(part, Tensor) for part in value):
        return (
            f"TensorDataset(*(part{rows} for part in {text}))"
            if rows
            else f"TensorDataset(*{text})"
        )
    return f"TensorDataset(*(torch.as_tensor(part){rows} for part in {text}))"


def _is_made(name: str, objects: Given) -> bool:
    """Whether the object is a sampler that is made of the data set."""
    is_sampler = name in ("sampler", "batch_sampler")
    return is_sampler and not isinstance(getattr(objects, name), Iterable)
