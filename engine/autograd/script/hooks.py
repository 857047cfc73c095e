"""The hooks that repeat edits in a script, and the helper functions that a script may need."""

from __future__ import annotations

from ...console.journal import Edit

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


def edit_body(edit: Edit) -> str:
    """The body of a pre-hook that makes an edit."""
    label, node = edit.place.label, edit.place.name.rpartition("::")[2]
    what = f"{node} ({label})" if 0 < len(label) < 30 else node
    lines = [f'    """Changes what comes in at {what}."""']
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
    after = f" *grads[{edit.output + 1} :]" if edit.output + 1 < edit.outputs else ""
    lines.append(f"    return ({before}{changed},{after})")
    return "\n".join(lines)
