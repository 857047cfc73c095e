"""A backward pass as a Python script: its edits as pre-hooks on the right nodes.

A node is found as the debugger found it, by the way from a root through `next_functions`; so the
script needs nothing but torch and what made the root.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..protocol import breakpoint_words
from .debugger import Debugger
from .edits import GradientExpression
from .graph import Graph, Node

MAX_HOOKED_NODES = 20
"""Nodes of one breakpoint for which a hook is written."""

_NODE_BELOW = '''\
def node_below(root, *path):
    """The node reached from `root` by these places in next_functions."""
    node = get_gradient_edge(root).node
    for place in path:
        node = node.next_functions[place][0]
    return node'''


_CALLS = ("run_backward()", "gradients = run_backward()")


@dataclass(frozen=True)
class Source:
    """Where a script's roots come from.

    `title` is the docstring. `before` is code at the top level: a model. `made` are lines that run
    first in the function that runs backward; `arguments` are that function's parameters, `result`
    what it returns, and `call` the lines that call it if it takes any. `roots` and `gradients` are
    expressions, one for each root, "None" for ones; with `inputs`, expressions too, only their
    gradients are found, and returned.
    """

    title: str
    roots: tuple[str, ...]
    gradients: tuple[str, ...]
    before: str = ""
    made: tuple[str, ...] = ()
    arguments: str = ""
    result: str = ""
    inputs: tuple[str, ...] = ()
    is_alone: bool = False
    """Whether the script runs without the console: its variables must come with it."""
    call: tuple[str, ...] = ()


def write_script(debugger: Debugger, source: Source) -> str:
    """The pass as it stands, to its end: its roots, edits, and breakpoints as comments."""
    graph = debugger.stepped.graph
    paths = node_paths(graph)
    hooks = [
        f"handles.append({_node(paths[n])}.register_prehook({_hook_name(n)}))"
        for n in debugger.expressions
    ]
    hooks += _breakpoints(debugger, paths)
    create_graph = ", create_graph=True" if debugger.stepped.create_graph else ""
    gradients = ", ".join(source.gradients)
    options = f"retain_graph=True{create_graph}"
    backward = f"torch.autograd.backward(roots, [{gradients}], {options})"
    if source.inputs:
        inputs = ", ".join(source.inputs)
        backward = (
            f"gradients = torch.autograd.grad(roots, [{inputs}], [{gradients}], "
            f"allow_unused=True, {options})"
        )
    used = debugger.variables_used() if source.is_alone else {}
    loaded = ['globals().update(data["variables"])'] if any(map(_is_tensor, used.values())) else []
    body = [*source.made, *loaded, f"roots = [{', '.join(source.roots)}]"]
    if hooks:
        body += ["handles = []", *hooks, "try:", f"    {backward}", "finally:"]
        body += ["    for handle in handles:", "        handle.remove()"]
    else:
        body.append(backward)
    result = "gradients" if source.inputs else source.result
    if result:
        body.append(f"return {result}")
    parts = [
        source.before,
        "\n".join(_definitions(used)),
        _NODE_BELOW if hooks else "",
        *(_hook(graph.nodes[n], edits.values()) for n, edits in debugger.expressions.items()),
        "\n".join([f"def run_backward({source.arguments}):", *(f"    {line}" for line in body)]),
        "\n".join(source.call or (_CALLS[bool(source.inputs)],)),
    ]
    code = "\n\n\n".join(part for part in parts if part)
    return f'"""{source.title}\n"""\n\n{_imports(code)}\n\n\n{code}\n'


def _definitions(variables: Mapping[str, Any]) -> Iterator[str]:
    """Lines that make the variables; tensors are loaded."""
    for name, value in variables.items():
        if isinstance(value, bool | int | float | complex | str):
            yield f"{name} = {value!r}"
        elif not _is_tensor(value):
            yield f"# Define {name} here, a {type(value).__name__} of the console: an edit uses it."


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def node_paths(graph: Graph) -> dict[int, tuple[int, tuple[int, ...]]]:
    """For each node the number of a root and the places in next_functions that lead to it, by
    one of the shortest ways."""
    found: dict[int, tuple[int, tuple[int, ...]]] = {}
    for number, (node_id, _) in enumerate(graph.roots):
        found.setdefault(node_id, (number, ()))
    # Ids are breadth first and edges in the order of their sources, so one sweep is enough.
    for edge in graph.edges:
        if edge.target not in found:
            root, path = found[edge.source]
            found[edge.target] = root, (*path, edge.input)
    return found


def _imports(code: str) -> str:
    """The imports that the code needs."""
    named = {
        r"\bsys\.": "import sys\n",
        r"\bnp\.": "import numpy as np",
        r"": "import torch",
        r"\bF\.": "import torch.nn.functional as F",
        r"\bnn\.": "from torch import nn",
        r"\bget_gradient_edge\(": "from torch.autograd.graph import get_gradient_edge",
    }
    return "\n".join(line for pattern, line in named.items() if re.search(pattern, code))


def _node(path: tuple[int, tuple[int, ...]]) -> str:
    root, places = path
    return f"node_below({', '.join([f'roots[{root}]', *map(str, places)])})"


def _hook_name(node_id: int) -> str:
    return f"edit_{node_id}"


def _hook(node: Node, edits: Iterable[GradientExpression]) -> str:
    label = f" of {node.label}" if node.label else ""
    lines = [
        f"def {_hook_name(node.id)}(grads):",
        f'    """{node.name}{label}: what comes in is changed."""',
    ]
    for edit in edits:
        if edit.in_place:
            lines.append("    grads = tuple(None if g is None else g.clone() for g in grads)")
        lines.append(f"    g = grads[{edit.output}]")
        if len(node.fn._input_metadata) == 1:
            lines.append(f"    grads = ({edit.expression},)")
        else:
            lines.append(f"    edited = {edit.expression}")
            lines.append(
                f"    grads = (*grads[:{edit.output}], edited, *grads[{edit.output + 1}:])"
            )
    return "\n".join([*lines, "    return grads"])


def _breakpoints(
    debugger: Debugger, paths: dict[int, tuple[int, tuple[int, ...]]]
) -> Iterator[str]:
    """Each breakpoint as a comment, and where it names nodes a hook that can be switched on."""
    for state in debugger.breakpoints.states:
        breakpoint = state.breakpoint
        off = "" if breakpoint.enabled else " (off)"
        yield f"# Breakpoint: {breakpoint_words(breakpoint)}{off}."
        if breakpoint.condition != "always" or breakpoint.on not in ("node", "op"):
            continue
        nodes = [n for n in debugger.stepped.plan if debugger.breakpoints.is_at(breakpoint, n)]
        for node in nodes[:MAX_HOOKED_NODES]:
            at = _node(paths[node.id])
            yield f"# handles.append({at}.register_prehook(lambda grads: breakpoint()))"
        if len(nodes) > MAX_HOOKED_NODES:
            yield f"# ... and {len(nodes) - MAX_HOOKED_NODES:,} more"
