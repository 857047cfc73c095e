"""How blocks may be wired: what is refused, in which order blocks run, what is still amiss.

Pure functions of the document; nothing here imports torch. Shapes are `engine.models.shapes`'.
"""

from __future__ import annotations

import heapq
from collections import defaultdict

from . import catalogue
from .document import Block, Model, Wire
from .names import name_problem
from .problems import Problem


class WiringError(ValueError):
    """The wires make a loop: `blocks` holds the ids of the blocks in it, in order."""

    def __init__(self, message: str, blocks: tuple[str, ...]) -> None:
        super().__init__(message)
        self.blocks = blocks


def can_connect(model: Model, wire: Wire) -> str | None:
    """Say in words why `wire` cannot be added; None when it can.

    An input port may have a wire already: the new wire takes its place.
    """
    blocks = {block.id: block for block in model.blocks}
    source, target = blocks.get(wire.source), blocks.get(wire.target)
    if source is None or target is None:
        return "This block does not exist any more."
    if source.id == target.id:
        return f"“{source.name}” cannot be its own input: a model runs from Input to Output."
    outputs = [port.name for port in _ports(source)[1]]
    if wire.source_port not in outputs:
        return _no_port(source, "output", wire.source_port, outputs)
    inputs = [port.name for port in _ports(target)[0]]
    if wire.target_port not in inputs:
        return _no_port(target, "input", wire.target_port, inputs)
    if wire in model.wires:
        return "These ports are connected already."
    if wire.source in downstream(model, wire.target):
        return f"This wire would close a loop: “{source.name}” depends on “{target.name}” already."
    return None


def topological_order(model: Model) -> tuple[str, ...]:
    """Return all block ids so that each comes after those it gets its input from.

    Among blocks that could come next, the first in the document does. Wires to or from blocks that
    do not exist are ignored. Raises WiringError if there is a loop.
    """
    place = {block.id: index for index, block in enumerate(model.blocks)}
    waiting = dict.fromkeys(place, 0)
    followers: dict[str, list[str]] = defaultdict(list)
    for wire in model.wires:
        if wire.source in place and wire.target in place:
            waiting[wire.target] += 1
            followers[wire.source].append(wire.target)
    ready = [place[block_id] for block_id, count in waiting.items() if not count]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        block_id = model.blocks[heapq.heappop(ready)].id
        order.append(block_id)
        for follower in followers[block_id]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, place[follower])
    if len(order) < len(place):
        raise _loop(model, {block_id for block_id in place if block_id not in order})
    return tuple(order)


def prediction_of(model: Model) -> tuple[str, str] | None:
    """Return (block id, output port) of what the model returns; None while nothing is wired.

    This is what the Output block gets or, without one, what the loss block gets.
    """
    ends = {
        block.id: call for block in model.blocks if (call := _call(block)) in ("output", "loss")
    }
    wires = [wire for wire in model.wires if wire.target in ends]
    wires.sort(key=lambda wire: ends[wire.target] != "output")
    return (wires[0].source, wires[0].source_port) if wires else None


def check(model: Model) -> tuple[Problem, ...]:
    """Return what is amiss with blocks and wires, before any shape is looked at."""
    try:
        topological_order(model)
    except WiringError as error:
        return (Problem(str(error), block=error.blocks[0]),)
    problems = [*_check_ends(model)]
    taken: set[str] = set()
    wired = {(wire.target, wire.target_port) for wire in model.wires}
    for block in model.blocks:
        problems += _check_block(block, taken, wired)
        taken.add(block.name)
    problems += _check_use(model)
    return tuple(problems)


# -- the checks -----------------------------------------------------------------------------------


def _check_ends(model: Model) -> list[Problem]:
    calls: dict[str, list[Block]] = defaultdict(list)
    for block in model.blocks:
        calls[_call(block)].append(block)
    problems = []
    if not calls["input"]:
        problems.append(
            Problem("The model has no Input. Drag one from the palette, group Input / Output.")
        )
    if not calls["output"] and not calls["loss"]:
        problems.append(
            Problem("The model has no Output. Drag one from the palette, group Input / Output.")
        )
    for call, title in (("input", "Input"), ("output", "Output"), ("loss", "loss")):
        for extra in calls[call][1:]:
            first = calls[call][0].name
            problems.append(
                Problem(
                    f"The model has more than one {title}: delete “{extra.name}” or “{first}”.",
                    extra.id,
                )
            )
    if calls["output"] and calls["loss"]:
        sources = {wire.target: (wire.source, wire.source_port) for wire in model.wires}
        output, loss = (sources.get(calls[call][0].id) for call in ("output", "loss"))
        if output and loss and output != loss:
            problems.append(
                Problem(
                    "The loss must get what the model returns: connect the loss and the Output"
                    " to the same port.",
                    calls["loss"][0].id,
                    "input",
                )
            )
    return problems


def _check_block(block: Block, taken: set[str], wired: set[tuple[str, str]]) -> list[Problem]:
    if block.kind not in catalogue.kinds():
        return [Problem(f"There is no kind of block “{block.kind}”.", block.id)]
    problems = []
    if reason := name_problem(block.name, taken):
        problems.append(Problem(reason, block.id))
    for param in catalogue.kind(block.kind).params:
        if param.name not in block.params:
            if param.required:
                problems.append(Problem(f"{param.name} is not set. {param.doc}", block.id))
            continue
        try:
            catalogue.parse_value(param, block.params[param.name])
        except ValueError as error:
            problems.append(Problem(str(error), block.id))
    inputs = _ports(block)[0]
    packs = {port.pack for port in inputs if port.pack and (block.id, port.name) in wired}
    for port in inputs:
        needed = not port.optional or port.pack in packs
        if needed and (block.id, port.name) not in wired:
            message = f"Input “{port.name}” ({port.doc}) is not connected."
            problems.append(Problem(message, block.id, port.name))
    return problems


def _check_use(model: Model) -> list[Problem]:
    ends = [block.id for block in model.blocks if _call(block) in ("output", "loss")]
    if prediction_of(model) is None:
        return []
    used = set().union(*(_upstream(model, end) for end in ends))
    return [
        Problem(
            f"“{block.name}” is not connected to the Output, so it has no effect.",
            block.id,
            severity="warning",
        )
        for block in model.blocks
        if block.id not in used and block.id not in ends
    ]


# -- walking --------------------------------------------------------------------------------------


def downstream(model: Model, start: str) -> set[str]:
    """The blocks that `start` feeds, directly or not, and itself."""
    return _reached(start, [(wire.source, wire.target) for wire in model.wires])


def _upstream(model: Model, start: str) -> set[str]:
    """The blocks that feed `start`, directly or not, and itself."""
    return _reached(start, [(wire.target, wire.source) for wire in model.wires])


def _reached(start: str, edges: list[tuple[str, str]]) -> set[str]:
    following: dict[str, list[str]] = defaultdict(list)
    for here, there in edges:
        following[here].append(there)
    seen, stack = {start}, [start]
    while stack:
        for there in following[stack.pop()]:
            if there not in seen:
                seen.add(there)
                stack.append(there)
    return seen


def _loop(model: Model, left: set[str]) -> WiringError:
    """The error for a loop, which names its blocks. Each of the blocks `left` gets an input from
    another one of them."""
    source_of = {
        wire.target: wire.source
        for wire in model.wires
        if wire.source in left and wire.target in left
    }
    path = [next(block.id for block in model.blocks if block.id in left)]
    while source_of[path[-1]] not in path:
        path.append(source_of[path[-1]])
    loop = tuple(reversed(path[path.index(source_of[path[-1]]) :]))
    names = [model.block(block_id).name for block_id in loop]
    text = " → ".join(f"“{name}”" for name in (*names, names[0]))
    return WiringError(f"The wires make a loop: {text}. Delete one of them.", loop)


def _ports(block: Block) -> tuple[tuple[catalogue.Port, ...], tuple[catalogue.Port, ...]]:
    return catalogue.ports(block) if block.kind in catalogue.kinds() else ((), ())


def _call(block: Block) -> str:
    found = catalogue.kinds().get(block.kind)
    return found.call if found else ""


def _no_port(block: Block, side: str, name: str, there: list[str]) -> str:
    known = f"it has {', '.join(there)}" if there else "it has none"
    return f"“{block.name}” has no {side} “{name}”: {known}."
