"""Loads the data set that a set-up names."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from pathlib import Path

import msgspec
import numpy as np
import torch
from torch import Tensor

from ..project import catalogue
from ..project.document import DataSetup, Loading, ParamValue, Transform, replace
from . import arrays, bundled, cifar, console, console_values, idx, images, points, table, text
from .dataset import Dataset, Ragged
from .preparing import filled, scale_of, standardised
from .samples import DataProblem, Samples
from .split import split
from .stored.rows import StoredRows, channel_figures
from .transforms import DRAWN, NORMALIZE, normalized

_MAKERS: dict[str, Callable[..., Samples]] = {
    "digits": bundled.digits,
    "iris": bundled.iris,
    "wine": bundled.wine,
    "breast_cancer": bundled.breast_cancer,
    "diabetes": bundled.diabetes,
    "moons": points.moons,
    "circles": points.circles,
    "spirals": points.spirals,
    "painted": points.painted,
}
_READERS: dict[str, Callable[..., Samples]] = {
    "csv": table.read,
    "numpy": arrays.read,
    "images": images.read,
    "idx": idx.read,
    "cifar": cifar.read,
    "text": text.read,
}
MAX_STAMPED = 2000


def load_dataset(setup: DataSetup) -> Dataset:
    """Return the data set of `setup` on the CPU; an equal set-up, of files that have not changed,
    returns the same object.

    Raises DataProblem for an unknown kind or parameter, a value out of range, a split that cannot
    be made, and data that cannot be used.
    """
    # Normalize is of all samples, in the precision that they have in their file.
    normalize = tuple(each for each in setup.transforms if each.kind == NORMALIZE)[:1]
    source = replace(setup, transforms=normalize, loading=Loading())
    encoded = msgspec.json.encode(source, order="deterministic")
    is_read = setup.kind in _READERS
    if setup.kind == "console":
        data = _from_cell(encoded, _console_stamp(setup))
    else:
        data = _read(encoded, _stamp(setup)) if is_read else _decoded_data(encoded)
    if not setup.transforms and source == setup:
        return data
    return _prepared(data, setup.loading, msgspec.json.encode(setup.transforms))


@lru_cache(maxsize=2)
def _prepared(data: Dataset, loading: Loading, encoded: bytes) -> Dataset:
    """The data set with transforms, and with batches as `loading` says. Raises DataProblem."""
    if loading.balanced and (not data.classes or data.y_train.ndim > 1):
        raise DataProblem(
            "Balanced batches need targets that are classes, one a sample.",
            hint="Turn balanced off.",
        )
    drawn = []
    for transform in msgspec.json.decode(encoded, type=tuple[Transform, ...]):
        arguments = _transform_arguments(transform, data)
        if transform.kind != NORMALIZE:
            drawn.append(partial(DRAWN[transform.kind], **arguments))
    return dataclasses.replace(data, loading=loading, drawn=tuple(drawn))


def _normalized(x_train: Tensor, x_val: Tensor) -> tuple[Tensor, Tensor]:
    """The training and the validation samples; ids of characters stay as they are."""
    if not x_train.is_floating_point():
        return x_train, x_val
    mean, deviation = channel_figures(x_train)
    change = partial(normalized, mean=mean, deviation=deviation)
    if isinstance(x_train, StoredRows):
        return x_train.changed(change), x_val.changed(change)  # pyright: ignore
    return change(x_train), change(x_val)


def _transform_arguments(transform: Transform, data: Dataset) -> dict[str, ParamValue]:
    """Raises DataProblem for a transform that the samples cannot have."""
    known = catalogue.transforms().get(transform.kind)
    if known is None:
        raise DataProblem(f"There is no transform {transform.kind!r}.")
    if not data.x_train.is_floating_point():
        raise DataProblem(
            f"{transform.kind} changes numbers, and the samples are ids of characters.",
            hint=f"Take {transform.kind} off.",
        )
    if known.images and len(data.sample_shape) != 3:
        raise DataProblem(
            f"{transform.kind} takes images (C, H, W), and a sample has shape {data.sample_shape}.",
            hint=f"Take {transform.kind} off.",
        )
    return _checked(transform.kind, known.params, transform.params)


def _stamp(setup: DataSetup) -> tuple:
    """A value that changes with the file, and with the files beside it."""
    if not setup.path:
        title = catalogue.datasets()[setup.kind].title
        raise DataProblem(f"{title}: nothing is chosen yet.", hint="Choose it under Data in Train.")
    path = Path(setup.path)
    try:
        files = [path]
        folder = path.parent if setup.kind in ("idx", "numpy") and path.is_file() else path
        if folder.is_dir():  # labels may lie beside the file
            files += itertools.islice(sorted(folder.iterdir()), MAX_STAMPED)
        stats = [(file.name, file.stat()) for file in files]
    except (OSError, ValueError):  # the reader tells
        return ()
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def _console_stamp(setup: DataSetup) -> object:
    if not setup.path:
        raise DataProblem(
            "Data of the console: nothing is named yet.",
            hint="Name a pair of tensors (x, y), a Dataset or a DataLoader under Data in Train.",
        )
    return console_values.current()[1]()


@lru_cache(maxsize=1)  # it may be large
def _from_cell(encoded: bytes, stamp: object) -> Dataset:
    setup, arguments = _decoded(encoded)
    return _ready(setup, partial(console.read, setup.path), arguments)


@lru_cache(maxsize=8)
def _decoded_data(encoded: bytes) -> Dataset:
    setup, arguments = _decoded(encoded)
    make = partial(_MAKERS[setup.kind], *((setup.points,) if setup.kind == "painted" else ()))
    return _ready(setup, make, arguments)


@lru_cache(maxsize=1)  # it may be large
def _read(encoded: bytes, stamp: tuple) -> Dataset:
    setup, arguments = _decoded(encoded)
    if setup.kind == "csv":
        arguments["columns"] = setup.columns
    reader = partial(_READERS[setup.kind], Path(setup.path))
    try:
        return _ready(setup, reader, arguments)
    except OSError as error:
        raise DataProblem(f"{setup.path} cannot be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise DataProblem(f"{setup.path} takes more memory than there is.") from error


def _decoded(encoded: bytes) -> tuple[DataSetup, dict]:
    setup = msgspec.json.decode(encoded, type=DataSetup)
    return setup, arguments_of(setup.kind, setup.params)


def _ready(setup: DataSetup, make: Callable[..., Samples], arguments: dict) -> Dataset:
    standardise = arguments.pop("standardise", "nothing")
    samples = make(**arguments)
    _check(samples, setup)
    # A set that is drawn has a seed of its own, and another draw is split in another way.
    seed = setup.split_seed + int(arguments.get("seed", 0))
    train, val = split(samples, setup.validation_fraction, seed, setup.stratified)
    fill = "most frequent" if arguments.get("missing") == "most frequent" else "mean"
    x, y = filled(samples, train, fill), samples.y
    scale = np.ones(y.shape[1:] if not samples.classes else 1)
    if standardise != "nothing":
        x = standardised(samples, x, train)
    if standardise == "features and target" and not samples.classes:
        mean, scale = scale_of(y[train])
        y = (y - mean) / scale
    x_train, x_val = _part(x, train), _part(x, val)
    if setup.transforms:
        x_train, x_val = _normalized(x_train, x_val)
    return Dataset(
        name=setup.kind,
        x_train=_narrowed(x_train),
        y_train=_narrowed(torch.from_numpy(y[train])),
        x_val=_narrowed(x_val),
        y_val=_narrowed(torch.from_numpy(y[val])),
        target_scale=torch.from_numpy(scale),
        classes=samples.classes,
        targets=samples.targets,
        columns=_columns(samples),
        roles=samples.roles,
        skipped=samples.skipped,
        ragged=_ragged(samples, train, val),
    )


def _check(samples: Samples, setup: DataSetup) -> None:
    """Raises DataProblem for samples or targets from which nothing can be learnt."""
    of = Path(setup.path).name or catalogue.datasets()[setup.kind].title
    for values, what in ((samples.x, "sample"), (samples.y, "target")):
        if 0 in values.shape[1:]:
            shape = tuple(values.shape[1:])
            raise DataProblem(f"A {what} of {of} has shape {shape}: there are no numbers in it.")
    if len(samples.classes) == 1:
        raise DataProblem(
            f"The targets of {of} have one value only: {samples.classes[0]}.",
            hint="A model learns to tell two classes at least.",
        )


def _ragged(samples: Samples, train: np.ndarray, val: np.ndarray) -> Ragged | None:
    if samples.lengths is None:
        return None
    lengths = torch.from_numpy(samples.lengths)
    return Ragged(lengths[train], lengths[val], samples.on_the_left, samples.padding)


def _part(x: np.ndarray | StoredRows, rows: np.ndarray) -> Tensor:
    """StoredRows are used as a tensor is."""
    return torch.from_numpy(x[rows]) if isinstance(x, np.ndarray) else x.taken(rows)  # pyright: ignore[reportReturnType]


def _narrowed(values: Tensor) -> Tensor:
    """As float32, unless it has labels or ids: the last step, once all is standardised."""
    is_wide = values.dtype == torch.float64
    return values.float() if is_wide else values


def arguments_of(kind: str, params: dict[str, ParamValue]) -> dict:
    """Return the data set's parameters, checked, with the catalogue's defaults filled in.

    Raises DataProblem for an unknown kind or parameter, and a value that is not allowed.
    """
    kinds = catalogue.datasets()
    if kind not in kinds:
        raise DataProblem(f"There is no data set {kind!r}.", hint=f"There are {', '.join(kinds)}.")
    return _checked(f"Data set {kind}", kinds[kind].params, params)


def _checked(
    owner: str, known: Iterable[catalogue.Param], params: dict[str, ParamValue]
) -> dict[str, ParamValue]:
    schema = {param.name: param for param in known}
    unknown = [name for name in params if name not in schema]
    if unknown:
        names = ", ".join(schema) or "none"
        raise DataProblem(f"{owner} has no parameter {unknown[0]!r}.", hint=f"It has {names}.")
    values = {name: param.default for name, param in schema.items()}
    for name, value in params.items():
        try:
            values[name] = catalogue.parse_value(schema[name], value)
        except ValueError as error:
            raise DataProblem(f"{owner}, {name}: {error}") from error
    return values


def _columns(samples: Samples) -> tuple[str, ...]:
    return tuple(
        f"{source.name} = {source.texts[i]}" if source.texts else source.name
        for source in samples.sources
        for i in range(source.stop - source.start)
    )
