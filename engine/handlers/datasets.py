"""Tells what is in a data set."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ..datasets.dataset import Dataset
from ..datasets.facts import facts_of
from ..datasets.load import load_dataset
from ..datasets.pictures import pictures_of
from ..datasets.stored.rows import StoredRows, figures_of, limits_of
from ..lab import Lab
from ..protocol import (
    MAX_CLASSES,
    MAX_COLUMNS,
    MAX_IMAGE_SIDE,
    MAX_IMAGES,
    MAX_ROWS,
    MAX_SKIPPED,
    ClassCount,
    ColumnFigures,
    DataSnapshot,
    DescribeDataCommand,
    NamedColumn,
)
from ..system.errors import sendable


def describe_data(lab: Lab, command: DescribeDataCommand) -> Iterator[DataSnapshot]:
    """Raises DataProblem if the data cannot be used."""
    data, facts = load_dataset(command.data), facts_of(command.data)
    is_table = len(facts.sample_shape) == 1 and facts.dtype == "float32"
    shown = data.x_train[:MAX_ROWS][:, :MAX_COLUMNS] if is_table else data.x_train[:0]
    images = data.x_train[:MAX_IMAGES] if len(facts.sample_shape) == 3 else data.x_train[:0]
    drawn = data.transformed(images, seed=0, epoch=0, batch=0) if data.drawn else images[:0]
    targets = "characters" if len(facts.target_shape) and facts.classes else "classes"
    yield DataSnapshot(
        title=facts.title,
        training=len(data),
        validation=len(data.y_val),
        sample_shape=facts.sample_shape,
        dtype=facts.dtype,
        targets=targets if facts.classes else "numbers",
        classes=_classes(data),
        class_count=len(data.classes),
        columns=_columns(data) if is_table else (),
        column_count=facts.sample_shape[0] if is_table else 0,
        roles=tuple(NamedColumn(sendable(n), c) for n, c in data.roles[:MAX_COLUMNS]),
        rows=tuple(tuple(row) for row in shown.tolist()),
        target_rows=tuple(_target(data, y) for y in data.y_train[: len(shown)]),
        skipped=tuple(map(sendable, data.skipped[:MAX_SKIPPED])),
        skipped_count=len(data.skipped),
        images=pictures_of(images, MAX_IMAGE_SIDE),
        image_targets=tuple(_target(data, y) for y in data.y_train[: len(images)]),
        transformed=pictures_of(drawn, MAX_IMAGE_SIDE),
        stored=data.is_stored,
    )


def _classes(data: Dataset) -> tuple[ClassCount, ...]:
    if not data.classes:
        return ()
    counts = [
        y.flatten().bincount(minlength=len(data.classes)).tolist()
        for y in (data.y_train, data.y_val)
    ]
    named = zip(data.classes, *counts, strict=True)
    return tuple(ClassCount(sendable(n), t, v) for n, t, v in list(named)[:MAX_CLASSES])


def _columns(data: Dataset) -> tuple[ColumnFigures, ...]:
    x = data.x_train
    if isinstance(x, StoredRows):
        mean, deviation = figures_of(x)
        found = (*limits_of(x), mean[0], deviation[0])
    else:
        x = x[:, :MAX_COLUMNS].double()
        found = x.amin(0), x.amax(0), x.mean(0), x.std(0, correction=0)
    figures = torch.stack([each[:MAX_COLUMNS].double() for each in found], 1).tolist()
    names = data.columns or tuple(str(i) for i in range(len(figures)))
    return tuple(ColumnFigures(sendable(n), *of) for n, of in zip(names, figures, strict=False))


def _target(data: Dataset, y: Tensor) -> str:
    if data.classes:
        return sendable(data.classes[int(y)])
    return ", ".join(f"{value:.6g}" for value in y.tolist())
