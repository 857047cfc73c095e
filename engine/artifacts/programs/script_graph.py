"""The graph of a TorchScript program, from a walk through its text. The file has no shapes."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...protocol import ProgramGraph, ProgramModule, ProgramNode, ProgramValue
from ..contents.artifact import plain
from ..contents.descriptions import OtherObject
from .script_code import ScriptCode
from .script_values import ModuleAt, TooLargeError, Value, names_in
from .script_walk import Walk

_NO_SHAPES = "A TorchScript file has no shapes of its inputs and values."
_NOTE = "What a loop repeats is shown once; of a branch that the data decide, both sides are shown."


def graph_of(
    modules: dict[str, OtherObject], code: ScriptCode, tensors: Collection[str]
) -> ProgramGraph:
    """The graph of the whole program's forward, without what its result does not need. `tensors`
    are the keys of those in the file."""
    whole = modules[""]
    forward = code.method(whole.name, "forward")
    if forward is None:
        return ProgramGraph(note="Its code has no forward: no graph is shown.")

    try:
        return _walked(Walk(modules, code, tensors), forward)
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
    has_branch = any(node.op == "if" for node in nodes)
    return ProgramGraph(
        inputs=tuple(
            ProgramValue(name, None, _type(each.annotation))
            for name, each in zip(names, parameters, strict=True)
        ),
        outputs=tuple(map(ProgramValue, ends)),
        modules=tuple(
            ProgramModule(path, walk.code.class_name(walk.modules[path].name))
            for path in sorted({"", *paths})
            if path in walk.modules
        ),
        nodes=tuple(nodes),
        note=f"{_NO_SHAPES} {_NOTE}" if walk.has_loop or has_branch else _NO_SHAPES,
    )


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
