"""Edits of the canvas: its blocks and the wires between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .. import catalogue, wiring
from ..document import Block, Model, ParamValue, Project, Wire, replace
from ..limits import clamped
from ..names import fresh_name, name_problem
from .parameters import EditError, kind_of, parse, same


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
    names, stem = _names(model), kind_of(kind).stem
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
            name = fresh_name(name.rstrip("0123456789_") or kind_of(block.kind).stem, names)
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
    return with_block(project, replace(block, name=name))


def set_param(project: Project, block_id: str, param: str, value: ParamValue) -> Project:
    """Set a parameter to a value, or to what a text says. A value equal to torch's default is
    left out. Wires at ports that this takes away are removed."""
    block = _block(project, block_id)
    kind = kind_of(block.kind)
    params = {**block.params, param: parse(kind.params, param, value)}
    known = kind.param(param)
    if not known.required and same(params[param], known.default):
        del params[param]
    changed = with_block(project, replace(block, params=params))
    return _with_model(changed, wires=_wires_with_ports(changed.model))


def insert_on_wire(
    project: Project, kind: str, wire: Wire, x: float, y: float
) -> tuple[Project, str]:
    """Put a new block into a wire: its first input and first output take the wire's place."""
    known = kind_of(kind)
    if not known.inputs or not known.outputs:
        raise EditError(
            f"{known.title} cannot be inserted into a wire: it needs an input and an output."
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


# -- helpers -------------------------------------------------------------------------------------


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


def with_block(project: Project, block: Block) -> Project:
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
