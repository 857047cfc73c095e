"""The hooks of a script: edits of gradients, and what was done in the midst of a pass."""

from __future__ import annotations

from ...console.journal import EditedNode

HELPERS = {
    "find_node": '''\
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
    raise LookupError(name)''',
    "Stop": '''\
class Stop(Exception):
    """Ends backward between two nodes."""


def stop(*_):
    raise Stop''',
}


def hook_body(edited: EditedNode) -> str:
    """The body of a pre-hook that does the edits of a node one after the other."""
    label, node = edited.place.label, edited.place.name.rpartition("::")[2]
    what = f"{node} ({label})" if 0 < len(label) < 30 else node
    lines = [f'    """Changes what comes in at {what}."""']
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
        before = f"*grads[:{edit.output}], " if edit.output else ""
        after = f" *grads[{edit.output + 1} :]" if edit.output + 1 < edited.outputs else ""
        way = "return" if edit is edited.edits[-1] else "grads ="
        lines.append(f"    {way} ({before}{changed},{after})")
    return "\n".join(lines)


def inside(name: str, title: str, code: str) -> str:
    """The definition of a hook that runs `code`, which is indented for it."""
    return (
        f'def {name}(*_):\n    """{title}, in the midst of the pass."""\n'
        f"    with torch.enable_grad():\n{code}"
    )
