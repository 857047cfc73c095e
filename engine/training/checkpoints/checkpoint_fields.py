"""A checkpoint as plain types and tensors, and back; what is read is checked field by field."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

import msgspec
import torch
from torch import Tensor

from ...project.document import BestFigure, TrainingSetup
from ...project.files import without_sharding
from ...project.subject import Subject
from ...protocol import EpochRow, RunMark
from ...restoring.randomness import NUMPY, PYTHON, is_state
from ...tensors.plain import described, is_name, tensor_problem
from ..figures.metrics import EpochTotals, StepRow
from ..objectives.epoch_metrics import MetricStates
from .best_epoch import BestEpoch
from .past import Past

FORMAT = 4
Number = int | float
_MAX_INT = 2**63 - 1
_MAX_NAME_CHARS = 200
_LATER = {"gradients": {}, "marks": [], "best": None, "averaged": {}, "past": "{}", "digest": 0}
"""Fields that the first files of this format do not have."""
_COUNTS = ("epoch", "batch", "step", "digest")


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A run between two optimizer steps.

    `model` and `optimizer` are state_dicts. `rng` is the state of each generator as a uint8 tensor,
    by device type or name. `epoch` and `batch` (0-based) are those of the next batch; `step` is the
    number of steps done. `totals` are over the current epoch; `epoch_rng` is `rng` at its
    beginning. `scheduler` and `scaler` are the numbers of their state_dicts. `gradients` are those
    that the next step uses, by the parameter's name: none in the usual order of a step's phases.
    `subject` refers to what is trained. `metrics` are those that count over the current epoch.
    `past` is what happened between its steps. `digest` tells the batches of the epoch so far from
    others, if it is not 0.
    """

    run: str
    setup: TrainingSetup
    subject: Subject
    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    rng: dict[str, Tensor]
    epoch_rng: dict[str, Tensor]
    epoch: int
    batch: int
    step: int
    totals: EpochTotals
    history: tuple[StepRow, ...]
    epoch_rows: tuple[EpochRow, ...]
    scheduler: dict[str, Number | list[Number]] = {}
    scaler: dict[str, Number] = {}
    gradients: dict[str, Tensor] = {}
    metrics: MetricStates = MetricStates({}, [])
    marks: tuple[RunMark, ...] = ()
    best: BestEpoch | None = None
    averaged: dict[str, Tensor] = {}
    past: Past = Past()
    digest: int = 0


class FieldProblem(ValueError):
    """A field of a checkpoint is missing, or is not what it must be. The message names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")


def encode(checkpoint: Checkpoint) -> dict[str, Any]:
    """Only plain types and tensors, so that the file loads with weights_only=True."""
    fields = {name: getattr(checkpoint, name) for name in checkpoint.__struct_fields__}
    fields["format"] = FORMAT
    fields["setup"] = msgspec.json.encode(checkpoint.setup).decode()
    fields["subject"] = msgspec.json.encode(checkpoint.subject).decode()
    fields["totals"] = dataclasses.asdict(checkpoint.totals)
    fields["history"] = torch.tensor([row[:-1] for row in checkpoint.history], dtype=torch.float64)
    fields["figures"] = [dict(row.figures) for row in checkpoint.history]
    fields["marks"] = [(mark.step, mark.text) for mark in checkpoint.marks]
    fields["best"] = checkpoint.best and msgspec.structs.asdict(checkpoint.best)
    fields["epoch_rows"] = [msgspec.structs.astuple(row) for row in checkpoint.epoch_rows]
    fields["metrics"] = tuple(checkpoint.metrics)
    fields["past"] = msgspec.json.encode(checkpoint.past).decode()
    return fields


def decode(fields: Mapping[str, Any]) -> Checkpoint:
    """The inverse of `encode`. Raises FieldProblem."""
    fields = {**_LATER, **fields}
    for name in ("format", *Checkpoint.__struct_fields__, "figures"):
        if name not in fields:
            raise FieldProblem(name, "it is missing")
    if type(fields["format"]) is not int or fields["format"] != FORMAT:
        raise FieldProblem("format", f"{FORMAT} is expected, not {described(fields['format'])}")
    values: dict[str, Any] = {name: _count(fields[name], name) for name in _COUNTS}
    return Checkpoint(
        **values,
        run=_run(fields["run"]),
        setup=_document(fields["setup"], TrainingSetup, "setup", without_sharding),
        subject=_document(fields["subject"], Subject, "subject"),
        model=_tensors(fields["model"], "model"),
        optimizer=_optimizer(fields["optimizer"]),
        rng=_rng(fields["rng"], "rng"),
        epoch_rng=_rng(fields["epoch_rng"], "epoch_rng"),
        totals=_totals(fields["totals"]),
        history=_history(fields["history"], fields["figures"]),
        epoch_rows=_epoch_rows(fields["epoch_rows"]),
        scheduler=_numbers(fields["scheduler"], "scheduler"),
        scaler=_numbers(fields["scaler"], "scaler"),
        gradients=_tensors(fields["gradients"], "gradients"),
        metrics=_metrics(fields["metrics"]),
        marks=_marks(fields["marks"]),
        best=_best(fields["best"]),
        averaged=_tensors(fields["averaged"], "averaged"),
        past=_document(fields["past"], Past, "past", _past_without_sharding),
    )


def _count(value: object, field: str) -> int:
    if type(value) is not int or not 0 <= value <= _MAX_INT:
        raise FieldProblem(field, f"a whole number from 0 on is expected, not {described(value)}")
    return value


def _run(value: object) -> str:
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= _MAX_NAME_CHARS
        or not value.isprintable()
        or value in (".", "..")
        or "/" in value
        or "\\" in value
    ):
        raise FieldProblem("run", f"{described(value)} is not a name of a folder")
    return value


def _document(
    value: object, kind: Any, field: str, migrate: Callable[[Any], Any] = lambda older: older
) -> Any:
    """A part of the document: of type `kind`, in JSON, as it is once an older one is migrated."""
    if not isinstance(value, str):
        raise FieldProblem(field, f"JSON is expected, not {described(value)}")
    try:
        return msgspec.convert(migrate(msgspec.json.decode(value)), kind)
    except (msgspec.MsgspecError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FieldProblem(field, str(error)) from error


def _past_without_sharding(past: dict[str, Any]) -> dict[str, Any]:
    changes = [(step, without_sharding(setup)) for step, setup in past.get("changes", ())]
    return {**past, "changes": changes}


def _tensors(value: object, field: str) -> dict[str, Tensor]:
    if not isinstance(value, dict):
        raise FieldProblem(field, f"tensors by name are expected, not {described(value)}")
    for name, tensor in value.items():
        if not is_name(name):
            raise FieldProblem(field, f"the name of a tensor is {described(name)}")
        if reason := tensor_problem(tensor):
            raise FieldProblem(f"{field}.{name}", reason)
    return dict(value)


def _optimizer(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FieldProblem("optimizer", f"a state_dict is expected, not {described(value)}")
    states = value.get("state")
    if not isinstance(states, dict):
        raise FieldProblem("optimizer.state", f"a dict is expected, not {described(states)}")
    for index, state in states.items():
        at = f"optimizer.state[{described(index)}]"
        _count(index, "optimizer.state, the number of a parameter")
        if not isinstance(state, dict):
            raise FieldProblem(at, f"a dict is expected, not {described(state)}")
        _check_entries(state, at)
    return value


def _check_entries(state: dict[Any, Any], at: str) -> None:
    """Each is a tensor, a number, None, or a list of these, and has a name."""
    for name, entry in state.items():
        if not is_name(name):
            raise FieldProblem(at, f"the name of an entry is {described(name)}")
        for part in entry if isinstance(entry, list) else [entry]:  # LBFGS keeps lists
            plain = part is None or isinstance(part, float | int)
            if not plain and (reason := tensor_problem(part)):
                raise FieldProblem(f"{at}.{name}", reason)


def _metrics(value: object) -> MetricStates:
    if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[1], list):
        raise FieldProblem("metrics", f"names and states are expected, not {described(value)}")
    names, states = _numbers(value[0], "metrics.names"), value[1]
    for name, place in names.items():
        if _count(place, f"metrics.names.{name}") >= len(states):
            raise FieldProblem(f"metrics.names.{name}", f"there is no metric {place}")
    for n, state in enumerate(states):
        if not isinstance(state, dict):
            raise FieldProblem(f"metrics[{n}]", f"a dict is expected, not {described(state)}")
        _check_entries(state, f"metrics[{n}]")
    return MetricStates(names, states)


def _numbers(value: object, field: str) -> dict[str, Any]:
    """Numbers and lists of numbers by name."""
    if not isinstance(value, dict):
        raise FieldProblem(field, f"numbers by name are expected, not {described(value)}")
    for name, entry in value.items():
        if not is_name(name):
            raise FieldProblem(field, f"the name of an entry is {described(name)}")
        for number in entry if isinstance(entry, list) else [entry]:
            if not isinstance(number, float | int):
                message = f"a number is expected, not {described(number)}"
                raise FieldProblem(f"{field}.{name}", message)
    return dict(value)


def _rng(value: object, field: str) -> dict[str, Tensor]:
    states = _tensors(value, field)
    for name, state in states.items():
        if state.dtype != torch.uint8 or state.dim() != 1:
            raise FieldProblem(f"{field}.{name}", "a uint8 tensor of one dimension is expected")
        if name in (NUMPY, PYTHON) and not is_state(name, state):
            raise FieldProblem(f"{field}.{name}", "this is not a state of a random generator")
        if name == "cpu" or name.startswith("other"):
            try:
                torch.Generator().set_state(state.contiguous())
            except RuntimeError as error:
                message = "this is not a state of a random generator"
                raise FieldProblem(f"{field}.{name}", message) from error
    return states


def _totals(value: object) -> EpochTotals:
    names = [field.name for field in dataclasses.fields(EpochTotals)]
    if not isinstance(value, dict) or sorted(map(str, value)) != sorted(names):
        raise FieldProblem("totals", f"{', '.join(names)} are expected, not {described(value)}")
    loss_sum = value["loss_sum"]
    if not isinstance(loss_sum, float | int) or not math.isfinite(loss_sum):
        message = f"a finite number is expected, not {described(loss_sum)}"
        raise FieldProblem("totals.loss_sum", message)
    if not isinstance(value["counted"], bool):
        message = f"True or False is expected, not {described(value['counted'])}"
        raise FieldProblem("totals.counted", message)
    sums = _figures(value["figure_sums"], "totals.figure_sums")
    counts = value["figure_samples"]
    if not isinstance(counts, dict) or counts.keys() != sums.keys():
        message = f"a number for each figure is expected, not {described(counts)}"
        raise FieldProblem("totals.figure_samples", message)
    for name, count in counts.items():
        if not _count(count, f"totals.figure_samples.{name}"):
            raise FieldProblem(f"totals.figure_samples.{name}", "it is 0")
    return EpochTotals(
        loss_sum=float(loss_sum),
        correct=_count(value["correct"], "totals.correct"),
        samples=_count(value["samples"], "totals.samples"),
        figure_sums=sums,
        figure_samples=dict(counts),
        counted=value["counted"],
    )


def _figures(value: object, field: str) -> dict[str, float]:
    if not isinstance(value, dict):
        raise FieldProblem(field, f"figures by name are expected, not {described(value)}")
    for name, figure in value.items():
        if not is_name(name):
            raise FieldProblem(field, f"the name of a figure is {described(name)}")
        if type(figure) is not float:
            raise FieldProblem(f"{field}.{name}", f"a float is expected, not {described(figure)}")
    return dict(value)


def _history(value: object, figures: object) -> tuple[StepRow, ...]:
    width = len(StepRow._fields) - 1
    earlier = width - len(StepRow._field_defaults) + 1
    reason = tensor_problem(value)
    if reason or not isinstance(value, Tensor):
        raise FieldProblem("history", reason)
    if value.shape[1:] == (earlier,):  # of the first files of this format
        width = earlier
    if value.dtype != torch.float64 or (value.numel() and value.shape[1:] != (width,)):
        raise FieldProblem("history", f"a float64 tensor of shape (steps, {width}) is expected")
    rows = []
    for i, row in enumerate(value.reshape(-1, width).tolist()):
        (step, *numbers, rss, allocated, reserved), later = row[:earlier], row[earlier:]
        whole = []
        for number in (step, rss, allocated, reserved):
            if not 0 <= number <= _MAX_INT or not number.is_integer():
                raise FieldProblem(f"history[{i}]", f"a whole number is expected, not {number}")
            whole.append(int(number))
        rows.append(StepRow(whole[0], *numbers, *whole[1:], *later))
    if not isinstance(figures, list) or len(figures) != len(value):
        raise FieldProblem(
            "figures", f"one dict for each step is expected, not {described(figures)}"
        )
    named = [_figures(each, f"figures[{i}]") for i, each in enumerate(figures)]
    return tuple(row._replace(figures=each) for row, each in zip(rows, named, strict=True))


def _marks(value: object) -> tuple[RunMark, ...]:
    if not isinstance(value, list):
        raise FieldProblem("marks", f"a list is expected, not {described(value)}")
    for i, mark in enumerate(value):
        if not isinstance(mark, tuple | list) or len(mark) != 2 or not isinstance(mark[1], str):
            raise FieldProblem(f"marks[{i}]", f"a step and words are expected: {described(mark)}")
    return tuple(RunMark(_count(step, f"marks[{i}]"), t) for i, (step, t) in enumerate(value))


def _best(value: object) -> BestEpoch | None:
    if value is None:
        return None
    if not isinstance(value, dict) or value.keys() != set(BestEpoch.__struct_fields__):
        raise FieldProblem("best", f"an epoch with its weights is expected, not {described(value)}")
    if not isinstance(value["figure"], str) or value["figure"] not in get_args(BestFigure):
        raise FieldProblem("best.figure", f"it is {described(value['figure'])}")
    for name in ("value", "reference"):
        if type(value[name]) is not float:
            raise FieldProblem(f"best.{name}", f"a float is expected: {described(value[name])}")
    counts = {n: _count(value[n], f"best.{n}") for n in ("epoch", "step", "waited")}
    weights = _tensors(value["weights"], "best.weights")
    return BestEpoch(**{**value, **counts, "weights": weights})


def _epoch_rows(value: object) -> tuple[EpochRow, ...]:
    if not isinstance(value, list):
        raise FieldProblem("epoch_rows", f"a list is expected, not {described(value)}")
    names = EpochRow.__struct_fields__
    rows = []
    for i, row in enumerate(value):
        at = f"epoch_rows[{i}]"
        if not isinstance(row, tuple | list) or len(row) != len(names):
            raise FieldProblem(at, f"{len(names)} entries are expected, not {described(row)}")
        for name, figure in zip(names[2:6], row[2:6], strict=True):
            if type(figure) is not float:
                raise FieldProblem(f"{at}.{name}", f"a float is expected, not {described(figure)}")
        epoch, step = _count(row[0], f"{at}.epoch"), _count(row[1], f"{at}.step")
        train, validation = (_figures(row[i], f"{at}.{names[i]}") for i in (6, 7))
        rows.append(
            EpochRow(epoch, step, *row[2:6], train_figures=train, validation_figures=validation)
        )
    return tuple(rows)
