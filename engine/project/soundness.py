"""Whether a decoded project file is sound: plain bounded data, and fields that fit together.

Everything that comes from outside passes here once: files, recovered work, the clipboard. What is
behind need not look again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from . import catalogue, limits
from .document import Block, Model, ParamValue, Project, TrainingSetup, Transform, ViewState
from .limits import HOLD_LIMITS, point_problem
from .names import identifier_problem
from .step_order import order_problem
from .subject import CanvasSubject, FileSubject, Subject

Each = TypeVar("Each")

_MAX_MESSAGE = 400
"""Characters; the longest of our own has some 200."""


class FileProblem(ValueError):
    """A project file cannot be read. `field` is the path of the field at fault, if one is. What
    the file wrote itself is cut: a name of thousands of characters is no help in a message."""

    def __init__(self, message: str, field: str = "") -> None:
        message, field = _short(message, _MAX_MESSAGE), _short(field, _MAX_MESSAGE)
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


def require_plain(document: object) -> None:
    """Raise FileProblem unless decoded JSON is of bounded depth, with finite numbers of 64 bits and
    valid text. Recursion over it is safe afterwards."""
    waiting: list[tuple[str, object, int]] = [("", document, 0)]
    while waiting:
        place, value, depth = waiting.pop()
        if depth > limits.MAX_DEPTH:
            raise FileProblem("The file is nested too deeply for a Tensor Lab project.")
        if isinstance(value, str):
            _require_text(value, place)
        elif isinstance(value, int | float):
            _require_number(value, place)
        elif isinstance(value, dict):
            for key, item in value.items():
                _require_text(key, place)
                waiting.append((f"{place}.{key}".lstrip("."), item, depth + 1))
        elif isinstance(value, list):
            waiting += [(f"{place}[{i}]", item, depth + 1) for i, item in enumerate(value)]


def check(project: Project) -> None:
    """Raise FileProblem where a field is out of its bounds, or fields do not fit together."""
    _check_text(project.name, "name")
    _check_model(project.model)
    _check_training(project.training)
    for i, cell in enumerate(project.cells):
        _check_text(cell.id, f"cells[{i}].id")
    _check_subject(project.subject)
    _check_text(project.objective.data, "objective.data", limits.MAX_PATH_CHARS)
    _check_text(project.objective.validation, "objective.validation", limits.MAX_PATH_CHARS)
    _check_text(project.objective.step, "objective.step", limits.MAX_SOURCE_CHARS)
    _check_view(project.view)


# -- the parts of a project ------------------------------------------------------------------------


def _check_model(model: Model) -> None:
    ports: dict[str, tuple[set[str], set[str]]] = {}
    names: set[str] = set()
    for i, block in enumerate(model.blocks):
        _check_block(block, ports, names, f"model.blocks[{i}]")
        inputs, outputs = catalogue.ports(block)
        ports[block.id] = {port.name for port in inputs}, {port.name for port in outputs}
        names.add(block.name)
    ends = set()
    for i, wire in enumerate(model.wires):
        at = f"model.wires[{i}]"
        for field, block_id in (("source", wire.source), ("target", wire.target)):
            if block_id not in ports:
                raise FileProblem(f"There is no block “{_short(block_id)}”.", f"{at}.{field}")
        if wire.source_port not in ports[wire.source][1]:
            message = f"There is no output “{_short(wire.source_port)}”."
            raise FileProblem(message, f"{at}.source_port")
        if wire.target_port not in ports[wire.target][0]:
            message = f"There is no input “{_short(wire.target_port)}”."
            raise FileProblem(message, f"{at}.target_port")
        if (wire.target, wire.target_port) in ends:
            raise FileProblem("Another wire ends at the same port.", at)
        ends.add((wire.target, wire.target_port))


def _check_block(block: Block, ids: Collection[str], names: Collection[str], at: str) -> None:
    _check_text(block.id, f"{at}.id")
    if not block.id:
        raise FileProblem("A block needs an id.", f"{at}.id")
    if block.id in ids:
        raise FileProblem(f"Another block has the id “{block.id}” already.", f"{at}.id")
    _check_text(block.name, f"{at}.name")
    if reason := identifier_problem(block.name):
        raise FileProblem(reason, f"{at}.name")
    if block.name in names:
        raise FileProblem(f"Another block is named “{block.name}” already.", f"{at}.name")
    try:
        kind = catalogue.kind(block.kind)
    except KeyError:
        raise FileProblem(f"There is no block “{_short(block.kind)}”.", f"{at}.kind") from None
    _check_params(block.params, kind.params, block.kind, f"{at}.params")
    for field, value in (("x", block.x), ("y", block.y)):
        _check_between(value, -limits.MAX_POSITION, limits.MAX_POSITION, f"{at}.{field}")


def _check_training(setup: TrainingSetup) -> None:
    at = "training"
    data = _known(catalogue.datasets(), setup.data.kind, "data set", f"{at}.data.kind")
    _check_params(setup.data.params, data.params, setup.data.kind, f"{at}.data.params")
    fraction = setup.data.validation_fraction
    if not 0.0 <= fraction < 1.0:
        message = f"It must be between 0 and 1, such as 0.2, not {fraction:g}."
        raise FileProblem(message, f"{at}.data.validation_fraction")
    _check_text(setup.data.path, f"{at}.data.path", limits.MAX_PATH_CHARS)
    if len(setup.data.columns) > limits.MAX_ENTRIES:
        message = f"At most {limits.MAX_ENTRIES:,} columns can be described."
        raise FileProblem(message, f"{at}.data.columns")
    for name in setup.data.columns:
        _check_text(name, f"{at}.data.columns")
    _check_between(setup.data.split_seed, 0, limits.MAX_SEED, f"{at}.data.split_seed")
    _check_transforms(setup.data.transforms, f"{at}.data.transforms")
    if len(setup.data.points) > limits.MAX_POINTS:
        message = f"At most {limits.MAX_POINTS:,} points can be painted."
        raise FileProblem(message, f"{at}.data.points")
    for i, point in enumerate(setup.data.points):
        if problem := point_problem(point):
            raise FileProblem(problem, f"{at}.data.points[{i}]")
    loading = setup.data.loading
    _check_between(loading.workers or 0, 0, limits.MAX_WORKERS, f"{at}.data.loading.workers")
    most = limits.MAX_PREFETCH
    _check_between(loading.prefetch_factor, 1, most, f"{at}.data.loading.prefetch_factor")
    _check_between(loading.timeout, 0, limits.MAX_TIMEOUT, f"{at}.data.loading.timeout")
    most = limits.MAX_CLIP
    _check_between(loading.padding_value, -most, most, f"{at}.data.loading.padding_value")
    for name, expression in loading.given.items():
        _check_text(expression, f"{at}.data.loading.{name}", limits.MAX_PATH_CHARS)
    losses = {**catalogue.losses(), **catalogue.other_losses()}
    loss = _known(losses, setup.loss, "loss", f"{at}.loss")
    _check_params(setup.loss_params, loss.params, setup.loss, f"{at}.loss_params")
    options = _known(catalogue.optimizers(), setup.optimizer, "optimizer", f"{at}.optimizer")
    _check_params(setup.optimizer_params, options, setup.optimizer, f"{at}.optimizer_params")
    if len(setup.groups) > limits.MAX_ENTRIES:
        message = f"At most {limits.MAX_ENTRIES:,} modules can have options of their own."
        raise FileProblem(message, f"{at}.groups")
    for i, group in enumerate(setup.groups):
        _check_text(group.module, f"{at}.groups[{i}].module")
        _check_params(group.params, options, setup.optimizer, f"{at}.groups[{i}].params")
    _check_between(setup.batch_size, 1, limits.MAX_BATCH_SIZE, f"{at}.batch_size")
    _check_between(setup.epochs, 1, limits.MAX_EPOCHS, f"{at}.epochs")
    _check_between(setup.seed, 0, limits.MAX_SEED, f"{at}.seed")
    _check_text(setup.device, f"{at}.device")
    _check_between(setup.schedule.warmup, 0, limits.MAX_WARMUP, f"{at}.schedule.warmup")
    _check_between(setup.schedule.warmup_from, 1e-12, 1, f"{at}.schedule.warmup_from")
    if kind := setup.schedule.kind:
        schedule = f"{at}.schedule"
        options = _known(catalogue.schedulers(), kind, "scheduler", f"{schedule}.kind")
        _check_params(setup.schedule.params, options, kind, f"{schedule}.params")
        for i, part in enumerate(setup.schedule.parts):
            place = f"{schedule}.parts[{i}]"
            options = _known(catalogue.schedulers(), part.kind, "scheduler", f"{place}.kind")
            _check_params(part.params, options, part.kind, f"{place}.params")
    if problem := setup.schedule.problem:
        raise FileProblem(problem, f"{at}.schedule")
    _check_between(setup.accumulate, 1, limits.MAX_ACCUMULATE, f"{at}.accumulate")
    _check_between(setup.processes, 1, limits.MAX_PROCESSES, f"{at}.processes")
    for field in ("clip_norm", "clip_value"):
        _check_between(getattr(setup, field), 0, limits.MAX_CLIP, f"{at}.{field}")
    _check_between(setup.averaging.decay, 0, 1, f"{at}.averaging.decay")
    averaging = setup.averaging
    _check_between(averaging.start, 0, limits.MAX_EPOCHS, f"{at}.averaging.start")
    _check_between(averaging.swa_lr, 0, limits.MAX_CLIP, f"{at}.averaging.swa_lr")
    most = limits.MAX_EPOCHS
    _check_between(averaging.anneal_epochs, 1, most, f"{at}.averaging.anneal_epochs")
    _check_between(setup.stopping.patience, 0, limits.MAX_PATIENCE, f"{at}.stopping.patience")
    _check_between(setup.stopping.min_delta, 0, limits.MAX_CLIP, f"{at}.stopping.min_delta")
    if len(setup.recomputed) > limits.MAX_RECOMPUTED:
        message = f"At most {limits.MAX_RECOMPUTED:,} modules can be computed again."
        raise FileProblem(message, f"{at}.recomputed")
    for i, path in enumerate(setup.recomputed):
        _check_text(path, f"{at}.recomputed[{i}]")
    if problem := order_problem(setup.order):
        raise FileProblem(problem, f"{at}.order")
    for field in HOLD_LIMITS:
        _check_between(getattr(setup.hold, field), 0, HOLD_LIMITS[field], f"{at}.hold.{field}")


def _check_transforms(transforms: Sequence[Transform], at: str) -> None:
    if len(transforms) > limits.MAX_TRANSFORMS:
        raise FileProblem(f"At most {limits.MAX_TRANSFORMS} transforms are allowed.", at)
    for i, each in enumerate(transforms):
        kind = _known(catalogue.transforms(), each.kind, "transform", f"{at}[{i}].kind")
        _check_params(each.params, kind.params, each.kind, f"{at}[{i}].params")


def _check_subject(subject: Subject) -> None:
    if isinstance(subject, CanvasSubject):
        return
    _check_text(subject.expression, "subject.expression")
    if not subject.expression.strip():
        raise FileProblem("A subject of code needs an expression.", "subject.expression")
    if isinstance(subject, FileSubject):
        _check_text(subject.path, "subject.path", limits.MAX_PATH_CHARS)
        if not subject.path or "\0" in subject.path:
            raise FileProblem("A subject of a file needs its path.", "subject.path")


def _check_view(view: ViewState) -> None:
    _check_between(view.canvas_zoom, limits.MIN_ZOOM, limits.MAX_ZOOM, "view.canvas_zoom")
    for i, value in enumerate(view.canvas_center):
        at = f"view.canvas_center[{i}]"
        _check_between(value, -limits.MAX_POSITION, limits.MAX_POSITION, at)


def _check_params(
    params: Mapping[str, ParamValue], known: Iterable[catalogue.Param], owner: str, at: str
) -> None:
    names = {param.name for param in known}
    for name, value in params.items():
        if name not in names:
            raise FileProblem(f"{owner} has no such parameter.", f"{at}.{_short(name)}")
        if isinstance(value, str):
            _check_text(value, f"{at}.{name}")
        elif isinstance(value, tuple) and len(value) > limits.MAX_ENTRIES:
            message = f"It has {len(value):,} entries; at most {limits.MAX_ENTRIES:,} are allowed."
            raise FileProblem(message, f"{at}.{name}")


# -- one value -------------------------------------------------------------------------------------


def _require_text(text: str, place: str) -> None:
    """`place` is valid text itself: the keys that it is made of were looked at before."""
    try:
        text.encode()
    except UnicodeEncodeError:
        message = "This text holds half of a character (a lone surrogate)."
        raise FileProblem(message, place) from None


def _require_number(number: int | float, place: str) -> None:
    if isinstance(number, int):
        if abs(number) > limits.MAX_INT:
            raise FileProblem("This whole number has more than 64 bits.", place)
    elif not math.isfinite(number):
        raise FileProblem("This number is not finite.", place)


def _check_text(text: str, field: str, most: int = limits.MAX_NAME_CHARS) -> None:
    if len(text) > most:
        raise FileProblem(
            f"It has {len(text):,} characters; at most {most:,} are allowed.",
            field,
        )


def _check_between(value: float, low: float, high: float, field: str) -> None:
    if not low <= value <= high:  # NaN is not between either
        raise FileProblem(f"It must be between {low:,.12g} and {high:,.12g}, not {value:g}.", field)


def _known(known: Mapping[str, Each], key: str, what: str, field: str) -> Each:
    if key not in known:
        raise FileProblem(f"There is no {what} “{_short(key)}”.", field)
    return known[key]


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
