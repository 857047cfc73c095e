"""Edits: pure functions from one Project to the next. Nothing here changes its arguments.

Each raises EditError, with words for the person at the screen, when the edit makes no sense.
Functions that make blocks also return the new ids, so that the window can select them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from . import catalogue, wiring
from .document import (
    Block,
    Cell,
    Model,
    ParamValue,
    Project,
    TrainingSetup,
    Wire,
    replace,
)
from .limits import (
    HOLD_LIMITS,
    MAX_ACCUMULATE,
    MAX_BATCH_SIZE,
    MAX_CLIP,
    MAX_EPOCHS,
    MAX_PATH_CHARS,
    MAX_PATIENCE,
    MAX_PREFETCH,
    MAX_SEED,
    MAX_SOURCE_CHARS,
    MAX_TRANSFORMS,
    MAX_WARMUP,
    MAX_WORKERS,
    clamped,
)
from .names import fresh_name, name_problem
from .problems import LOSS, Fix
from .steps.order import order_problem
from .subject import Objective, Subject

Each = TypeVar("Each")


class EditError(ValueError):
    """The edit makes no sense; the message says why and what to try."""


# -- reading -------------------------------------------------------------------------------------


def loss_block(model: Model) -> Block | None:
    """The first loss block on the canvas, or None."""
    return next((b for b in model.blocks if _kind(b.kind).call == "loss"), None)


def loss_of(project: Project) -> str:
    """The loss that training uses: that of the loss block on the canvas, else `training.loss`."""
    block = loss_block(project.model)
    return block.kind if block else project.training.loss


def loss_call(model: Model, setup: TrainingSetup) -> tuple[str, dict[str, ParamValue]]:
    """The loss of training with its arguments: those of the loss block, else of the set-up."""
    block = loss_block(model)
    return (block.kind, block.params) if block else (setup.loss, setup.loss_params)


def fragment(project: Project, ids: Collection[str]) -> Model:
    """The blocks `ids` with the wires among them: what is copied to the clipboard."""
    wanted = set(ids)
    return Model(
        blocks=tuple(b for b in project.model.blocks if b.id in wanted),
        wires=tuple(w for w in project.model.wires if w.source in wanted and w.target in wanted),
    )


# -- blocks --------------------------------------------------------------------------------------


def add_block(project: Project, kind: str, x: float, y: float) -> tuple[Project, str]:
    """Add a block of `kind` with torch's defaults and the catalogue's initial values at (x, y)."""
    model = project.model
    names, stem = _names(model), _kind(kind).stem
    block = Block(
        id=fresh_name("b", _ids(model)),
        kind=kind,
        # The first input is plain x, as in every forward(self, x).
        name=stem if kind == "Input" and stem not in names else fresh_name(stem, names),
        params=catalogue.defaults(kind),
        x=clamped(x),
        y=clamped(y),
    )
    return _with_model(project, blocks=(*model.blocks, block)), block.id


def add_fragment(
    project: Project, piece: Model, dx: float = 0.0, dy: float = 0.0
) -> tuple[Project, tuple[str, ...]]:
    """Add copies of the blocks of `piece`, moved by (dx, dy), with the wires among them.

    Ids are new; a name is kept where it is free, otherwise numbered onwards from its stem.
    """
    model = project.model
    ids, names = _ids(model), _names(model)
    renumbered: dict[str, str] = {}
    blocks = []
    for block in piece.blocks:
        new_id = fresh_name("b", ids)
        name = block.name
        if name_problem(name, names):
            name = fresh_name(name.rstrip("0123456789_") or _kind(block.kind).stem, names)
        ids.add(new_id)
        names.add(name)
        renumbered[block.id] = new_id
        x, y = clamped(block.x + dx), clamped(block.y + dy)
        blocks.append(replace(block, id=new_id, name=name, x=x, y=y))
    wires = tuple(
        replace(w, source=renumbered[w.source], target=renumbered[w.target])
        for w in piece.wires
        if w.source in renumbered and w.target in renumbered
    )
    grown = _with_model(project, blocks=(*model.blocks, *blocks), wires=(*model.wires, *wires))
    return grown, tuple(renumbered.values())


def move_blocks(project: Project, positions: Mapping[str, tuple[float, float]]) -> Project:
    """Put the top left corner of each named block at its (x, y)."""
    moved = {
        block_id: replace(_block(project, block_id), x=clamped(x), y=clamped(y))
        for block_id, (x, y) in positions.items()
    }
    return _with_model(project, blocks=tuple(moved.get(b.id, b) for b in project.model.blocks))


def remove(project: Project, blocks: Collection[str] = (), wires: Collection[Wire] = ()) -> Project:
    """Remove blocks, the wires at them, and wires."""
    gone, cut = set(blocks), set(wires)
    model = project.model
    names = {block.name for block in model.blocks if block.id in gone}
    groups = tuple(group for group in project.training.groups if group.module not in names)
    if groups != project.training.groups:
        project = replace(project, training=replace(project.training, groups=groups))
    return _with_model(
        project,
        blocks=tuple(b for b in model.blocks if b.id not in gone),
        wires=tuple(
            w for w in model.wires if w not in cut and w.source not in gone and w.target not in gone
        ),
    )


def rename(project: Project, block_id: str, name: str) -> Project:
    name = name.strip()
    block = _block(project, block_id)
    reason = name_problem(name, _names(project.model) - {block.name})
    if reason:
        raise EditError(reason)
    groups = tuple(
        replace(group, module=name) if group.module == block.name else group
        for group in project.training.groups
    )
    project = replace(project, training=replace(project.training, groups=groups))
    return _with_block(project, replace(block, name=name))


def set_param(project: Project, block_id: str, param: str, value: ParamValue) -> Project:
    """Set a parameter to a value, or to what a text says. A value equal to torch's default is
    left out. Wires at ports that this takes away are removed."""
    block = _block(project, block_id)
    kind = _kind(block.kind)
    params = {**block.params, param: _parse(kind.params, param, value)}
    known = kind.param(param)
    if not known.required and _same(params[param], known.default):
        del params[param]
    changed = _with_block(project, replace(block, params=params))
    return _with_model(changed, wires=_wires_with_ports(changed.model))


def apply_fix(project: Project, fix: Fix) -> Project:
    if fix.param == LOSS:
        return set_loss(project, str(fix.value))
    return set_param(project, fix.block, fix.param, fix.value)


def insert_on_wire(
    project: Project, kind: str, wire: Wire, x: float, y: float
) -> tuple[Project, str]:
    """Put a new block into a wire: its first input and first output take the wire's place."""
    if not _kind(kind).inputs or not _kind(kind).outputs:
        raise EditError(
            f"{_kind(kind).title} cannot be inserted into a wire: it needs an input and an output."
        )
    project, block_id = add_block(remove(project, wires=[wire]), kind, x, y)
    inputs, outputs = catalogue.ports(_block(project, block_id))
    project = connect(project, Wire(wire.source, wire.source_port, block_id, inputs[0].name))
    project = connect(project, Wire(block_id, outputs[0].name, wire.target, wire.target_port))
    return project, block_id


# -- wires ---------------------------------------------------------------------------------------


def connect(project: Project, wire: Wire) -> Project:
    """Add a wire. It replaces a wire that ends at the same port."""
    kept = tuple(
        w
        for w in project.model.wires
        if (w.target, w.target_port) != (wire.target, wire.target_port)
    )
    cleared = _with_model(project, wires=kept)
    reason = wiring.can_connect(cleared.model, wire)
    if reason:
        raise EditError(reason)
    return _with_model(project, wires=(*kept, wire))


def reroute(project: Project, old: Wire, new: Wire) -> Project:
    """Move one end of a wire, or both, in one edit."""
    return connect(disconnect(project, old), new)


def disconnect(project: Project, wire: Wire) -> Project:
    if wire not in project.model.wires:
        raise EditError("This wire does not exist any more.")
    return remove(project, wires=[wire])


# -- training ------------------------------------------------------------------------------------


def set_subject(project: Project, subject: Subject) -> Project:
    """Let the workspaces work on another subject. Data and step belong to the subject before, so
    they are forgotten."""
    if subject == project.subject:
        return project
    return replace(project, subject=subject, objective=Objective())


def set_objective(project: Project, objective: Objective) -> Project:
    """Say what a subject of code is trained for."""
    if len(objective.step) > MAX_SOURCE_CHARS:
        raise EditError(f"A step has at most {MAX_SOURCE_CHARS:,} characters.")
    for text in (objective.data, objective.validation):
        if len(text) > MAX_PATH_CHARS:
            raise EditError(f"An expression has at most {MAX_PATH_CHARS:,} characters.")
    return replace(project, objective=objective)


def set_training(project: Project, setup: TrainingSetup) -> Project:
    """Replace the training set-up after checking every field.

    Parameters that the chosen data set or optimizer does not have are refused, and values equal
    to the default are left out.
    """
    data_kind = _one_of("data set", setup.data.kind, catalogue.datasets())
    optimizer = _one_of("optimizer", setup.optimizer, catalogue.optimizers())
    loss = _one_of("loss", setup.loss, catalogue.losses())
    if not 0.0 < setup.data.validation_fraction < 1.0:
        raise EditError("The validation fraction must be between 0 and 1, such as 0.2.")
    for name, value, least, most in (
        ("split_seed", setup.data.split_seed, 0, MAX_SEED),
        ("workers", setup.data.loading.workers or 0, 0, MAX_WORKERS),
        ("prefetch_factor", setup.data.loading.prefetch_factor, 1, MAX_PREFETCH),
        ("batch_size", setup.batch_size, 1, MAX_BATCH_SIZE),
        ("epochs", setup.epochs, 1, MAX_EPOCHS),
        ("seed", setup.seed, 0, MAX_SEED),
        ("accumulate", setup.accumulate, 1, MAX_ACCUMULATE),
        ("clip_norm", setup.clip_norm, 0, MAX_CLIP),
        ("clip_value", setup.clip_value, 0, MAX_CLIP),
        ("warmup", setup.schedule.warmup, 0, MAX_WARMUP),
        ("warmup_from", setup.schedule.warmup_from, 1e-12, 1),
        ("decay", setup.averaging.decay, 0, 1),
        ("start", setup.averaging.start, 0, MAX_EPOCHS),
        ("patience", setup.stopping.patience, 0, MAX_PATIENCE),
        ("min_delta", setup.stopping.min_delta, 0, MAX_CLIP),
        *((name, getattr(setup.hold, name), 0, most) for name, most in HOLD_LIMITS.items()),
    ):
        if not least <= value <= most:
            wanted = f"at least {least}" if value < least else f"at most {most:,}"
            raise EditError(f"{name} is {value:,}: it must be {wanted}.")
    if problem := order_problem(setup.order):
        raise EditError(problem)
    if len(setup.data.transforms) > MAX_TRANSFORMS:
        raise EditError(f"A data set has at most {MAX_TRANSFORMS} transforms.")
    kinds = [_one_of("transform", t.kind, catalogue.transforms()) for t in setup.data.transforms]
    data = replace(
        setup.data,
        params=_checked(data_kind.params, setup.data.params),
        transforms=tuple(
            replace(transform, params=_checked(kind.params, transform.params))
            for transform, kind in zip(setup.data.transforms, kinds, strict=True)
        ),
    )
    loss_params = _checked(loss.params, setup.loss_params)
    optimizer_params = _checked(optimizer, setup.optimizer_params)
    groups = tuple(
        replace(group, params=_parsed(optimizer, group.params)) for group in setup.groups
    )
    if len({group.module for group in groups}) < len(groups):
        raise EditError("A module has its own options already: change them there.")
    schedule = setup.schedule
    if schedule.kind:
        scheduler = _one_of("scheduler", schedule.kind, catalogue.schedulers())
        schedule = replace(schedule, params=_checked(scheduler, schedule.params))
    checked = replace(
        setup,
        data=data,
        loss_params=loss_params,
        optimizer_params=optimizer_params,
        groups=groups,
        schedule=schedule,
    )
    return replace(project, training=checked)


def set_loss(project: Project, loss: str) -> Project:
    """Choose the loss: on the canvas's loss block if there is one, else in the set-up."""
    shared = {param.name for param in _one_of("loss", loss, catalogue.losses()).params}
    block = loss_block(project.model)
    given = block.params if block else project.training.loss_params
    kept = {name: value for name, value in given.items() if name in shared}
    params = {**catalogue.defaults(loss), **kept}
    if block is None:
        setup = replace(project.training, loss=loss, loss_params=params)
        return replace(project, training=setup)
    return _with_block(project, replace(block, kind=loss, params=params))


# -- console cells -------------------------------------------------------------------------------


def record_cell(project: Project, source: str) -> Project:
    """Add a cell that was run, so that it can be run again in a new engine."""
    cell = Cell(id=fresh_name("c", {cell.id for cell in project.cells}), source=source)
    return replace(project, cells=(*project.cells, cell))


def forget_cells(project: Project) -> Project:
    return replace(project, cells=())


# -- helpers -------------------------------------------------------------------------------------


def _kind(key: str) -> catalogue.BlockKind:
    try:
        return catalogue.kind(key)
    except KeyError:
        raise EditError(f"There is no kind of block “{key}”.") from None


def _block(project: Project, block_id: str) -> Block:
    try:
        return project.model.block(block_id)
    except KeyError:
        raise EditError("This block does not exist any more.") from None


def _ids(model: Model) -> set[str]:
    return {b.id for b in model.blocks}


def _names(model: Model) -> set[str]:
    return {b.name for b in model.blocks}


def _with_model(project: Project, **parts: tuple) -> Project:
    return replace(project, model=replace(project.model, **parts))


def _with_block(project: Project, block: Block) -> Project:
    return _with_model(
        project, blocks=tuple(block if b.id == block.id else b for b in project.model.blocks)
    )


def _wires_with_ports(model: Model) -> tuple[Wire, ...]:
    """The wires both of whose ports exist."""
    sources, targets = set(), set()
    for block in model.blocks:
        inputs, outputs = catalogue.ports(block)
        targets.update((block.id, port.name) for port in inputs)
        sources.update((block.id, port.name) for port in outputs)
    return tuple(
        w
        for w in model.wires
        if (w.source, w.source_port) in sources and (w.target, w.target_port) in targets
    )


def _parse(known: Iterable[catalogue.Param], name: str, value: ParamValue) -> ParamValue:
    param = next((param for param in known if param.name == name), None)
    if param is None:
        raise EditError(f"There is no parameter “{name}”.")
    try:
        return catalogue.parse_value(param, value)
    except ValueError as error:
        raise EditError(str(error)) from error


def _checked(
    known: tuple[catalogue.Param, ...], params: Mapping[str, ParamValue]
) -> dict[str, ParamValue]:
    defaults = {param.name: param.default for param in known}
    parsed = _parsed(known, params)
    return {name: value for name, value in parsed.items() if not _same(value, defaults[name])}


def _parsed(
    known: tuple[catalogue.Param, ...], params: Mapping[str, ParamValue]
) -> dict[str, ParamValue]:
    return {name: _parse(known, name, value) for name, value in params.items()}


def _same(value: ParamValue, default: ParamValue) -> bool:
    """Equal in type too: a default of 1 is not True, and 1.0 is not 1."""
    return type(value) is type(default) and value == default


def _one_of(what: str, key: str, known: Mapping[str, Each]) -> Each:
    if key in known:
        return known[key]
    *head, last = known
    raise EditError(f"There is no {what} “{key}”. Choose {', '.join(head)} or {last}.")
