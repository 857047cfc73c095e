"""What a script hooks into a graph: edits, and what was done in the midst of a pass."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass

from ...errors import LabError
from ..backward.pass_record import EditedNode, Given, Place
from .text import identifier

FIND_NODE = '''\
def find_node(name, number, *roots):
    """Node `number` of those with this name, going down from the roots level by level."""
    nodes = list(dict.fromkeys(get_gradient_edge(root).node for root in roots))
    seen = set(nodes)
    for node in nodes:  # grows while it is walked
        if node.name() == name:
            number -= 1
            if number == 0:
                return node
        for below, _ in node.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                nodes.append(below)
    raise LookupError(name)'''

STOP = '''\
class Stop(Exception):
    """Ends backward between two nodes."""


def stop(*_):
    raise Stop'''


_NOT_INSIDE = {
    r"import \*": "imports *",
    r"\bbackward\(|\bautograd\.grad\(": "runs backward",  # which would call the hooks, too
}
"""What code in a hook cannot do."""


@dataclass(frozen=True)
class CodeInside:
    """Code that ran in the midst of a pass at a node, and the names that it binds."""

    place: Place
    name: str
    title: str
    code: str
    bound: frozenset[str]

    def definition(self) -> str:
        """The code as a hook."""
        for pattern, what in _NOT_INSIDE.items():
            if re.search(pattern, self.code):
                raise LabError(
                    f"No script can repeat this: {self.title} {what} in the midst of a pass.",
                    hint="Do that before the pass, or at its end.",
                )
        code = ast.unparse(ast.parse(self.code)) if _has_long_text(self.code) else self.code
        names = f"    global {', '.join(sorted(self.bound))}\n" if self.bound else ""
        return (
            f'def {self.name}(*_):\n    """{self.title}, in the midst of the pass."""\n{names}'
            f"    with torch.enable_grad():\n{textwrap.indent(code, ' ' * 8)}"
        )


def given_text(given: Given, root: str) -> str:
    match given.how:
        case "none":
            return "None"
        case "ones":
            return f"torch.ones_like({root})"
        case "full":
            return f"torch.full_like({root}, {given.text})"
        case "tensor":
            return f"torch.as_tensor({given.text}, dtype={root}.dtype, device={root}.device)"
    return given.text


def hook_body(edited: EditedNode) -> str:
    """The body of a pre-hook that does the edits of a node one after the other."""
    place = edited.place
    what = place.label or place.module
    label = f" ({what})" if 0 < len(what) < 30 else ""
    node = place.name.rpartition("::")[2]
    lines = [f'    """Changes what comes in at {node}{label}."""']
    for edit in edited.edits:
        if edit.copies:
            lines.append("    grads = tuple(None if g is None else g.clone() for g in grads)")
        lines.append(f"    g = grads[{edit.output}]")
        changed = edit.expression
        if edit.seed is not None:
            lines.append("    with torch.random.fork_rng():")
            lines.append(f"        torch.manual_seed({edit.seed})")
            lines.append(f"        g = {changed}")
            changed = "g"
        before = [f"*grads[:{edit.output}]"] if edit.output else []
        after = [f"*grads[{edit.output + 1} :]"] if edit.output + 1 < edited.outputs else []
        given = ", ".join([*before, changed, *after])
        tuple_of = f"({given})" if before or after else f"({given},)"
        way = "return" if edit is edited.edits[-1] else "grads ="
        lines.append(f"    {way} {tuple_of}")
    return "\n".join(lines)


def word_for(place: Place) -> str:
    """What a node is called in names of the script."""
    return identifier(place.label if place.is_leaf and place.label else place.op)


def _has_long_text(code: str) -> bool:
    """Whether a text in it goes over several lines, which must not be indented."""
    return any(
        isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.expr)
    )
