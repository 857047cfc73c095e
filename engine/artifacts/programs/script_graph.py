"""The graph of a TorchScript program, from walks through its text, with shapes where some fit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress

from msgspec.structs import replace

from ...protocol import ProgramGraph, ProgramModule, ProgramNode, ProgramValue, shape_text
from ..contents.artifact import plain
from ..contents.descriptions import OtherObject
from .script_code import ScriptCode
from .script_inputs import Numbers, Weights, by_batch, likely_inputs
from .script_shapes import UNKNOWN, MisfitError, ShapeRun, spec_of
from .script_values import ModuleAt, TooLargeError, Value, names_in
from .script_walk import Walk

_SHAPES = "The file tells no shapes. These are for inputs that fit its weights:"
_NO_SHAPES = "The file tells no shapes, and its weights do not tell those of its inputs."
_NOTE = "What a loop repeats is shown once; of a branch that the data decide, both sides are shown."


def graph_of(
    modules: dict[str, OtherObject], code: ScriptCode, tensors: Weights, numbers: Numbers
) -> ProgramGraph:
    """The graph of the whole program's forward, without what its result does not need. `tensors`
    are those of the file, `numbers` the constants among them that are one number. Shapes are shown
    for the first usual inputs that fit the weights."""
    whole = modules[""]
    forward = code.method(whole.name, "forward")
    if forward is None:
        return ProgramGraph(note="Its code has no forward: no graph is shown.")

    try:
        best = graph = _walked(Walk(modules, code, tensors), forward)
        for inputs in likely_inputs(graph, tensors):
            for batches in (2, 3), (1,):  # a traced program may take batches of one size only
                runs = [ShapeRun(tensors, numbers, inputs, batch) for batch in batches]
                walks = [Walk(modules, code, tensors, run) for run in runs]
                with suppress(MisfitError):
                    graphs = [_walked(walk, forward) for walk in walks]
                    found = _with_batch_sizes(graphs[0], graphs[-1])
                    if all(value.shape is not None for value in found.outputs):
                        return found
                    if not any(walk.doubts for walk in walks):
                        best = max(best, found, key=_known)
        if best is graph:
            return replace(graph, note=" ".join(filter(None, (_NO_SHAPES, graph.note))))
        return best
    except (TooLargeError, RecursionError):
        return ProgramGraph(note="Its code is too large, or calls itself: no graph is shown.")


def _walked(walk: Walk, forward: ast.FunctionDef) -> ProgramGraph:
    parameters = forward.args.args[1:]
    names = [plain(each.arg, 200) for each in parameters]
    walk.used |= {name: 1 for name in names}
    result = walk.call(forward, [ModuleAt(""), *map(Value, names)], "")
    ends = tuple(dict.fromkeys(names_in(result)))
    nodes = _needed(walk.nodes, set(ends))
    paths = {node.module for node in nodes}
    paths |= {path[:at] for path in paths for at in range(len(path)) if path[at] == "."}

    def value(name: str, dtype: str = "") -> ProgramValue:
        known = walk.shapes.of(name) if walk.shapes else UNKNOWN
        shape, own = (None, dtype) if known is UNKNOWN else spec_of(known)
        return ProgramValue(name, shape, own)

    return ProgramGraph(
        inputs=tuple(
            value(name, _type(each.annotation))
            for name, each in zip(names, parameters, strict=True)
        ),
        outputs=tuple(map(value, ends)),
        modules=tuple(
            ProgramModule(path, walk.code.class_name(walk.modules[path].name))
            for path in sorted({"", *paths})
            if path in walk.modules
        ),
        nodes=tuple(nodes),
        note=_NOTE if walk.has_loop or any(node.op == "if" for node in nodes) else "",
    )


def _with_batch_sizes(two: ProgramGraph, three: ProgramGraph) -> ProgramGraph:
    """The graph with shapes in terms of the batch, from the graphs for batches of 2 and of 3. For a
    program that takes one size of batch only, both are the same graph."""
    threes = {each.name: each.shape for each in _values(three)}

    def with_batch_dims(values: tuple[ProgramValue, ...]) -> tuple[ProgramValue, ...]:
        return tuple(
            replace(each, shape=by_batch(each.shape, threes.get(each.name))) for each in values
        )

    inputs = with_batch_dims(two.inputs)
    sizes = ", ".join(f"{each.name} {shape_text(each.shape)}" for each in inputs if each.shape)
    return replace(
        two,
        inputs=inputs,
        outputs=with_batch_dims(two.outputs),
        nodes=tuple(replace(node, outputs=with_batch_dims(node.outputs)) for node in two.nodes),
        note=" ".join(filter(None, (f"{_SHAPES} {sizes}.", two.note))),
    )


def _known(graph: ProgramGraph) -> int:
    return sum(value.shape is not None for value in _values(graph))


def _values(graph: ProgramGraph) -> Iterator[ProgramValue]:
    yield from (*graph.inputs, *graph.outputs)
    for node in graph.nodes:
        yield from node.outputs


def _needed(nodes: list[ProgramNode], wanted: set[str]) -> list[ProgramNode]:
    """The nodes that lead to these values, and those that write in place."""
    found = []
    for node in reversed(nodes):
        in_place = node.op.endswith("_") and not node.op.endswith("__")
        if in_place or any(value.name in wanted for value in node.outputs):
            wanted |= set(node.inputs)
            found.append(node)
    return found[::-1]


def _type(annotation: ast.expr | None) -> str:
    return "" if annotation is None else plain(ast.unparse(annotation), 200)
