"""The backward view's texts on a snapshot."""

from __future__ import annotations

import math

from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    GraphSnapshot,
    PendingGradient,
    TensorSummary,
)
from widgets.text import format_bytes, format_number
from widgets.values.value_card import bad_numbers

_COMPARED = ("parameters", "inputs")
UNDEFINED = "No gradient: it is undefined, which counts as zero"
NOT_NEEDED = "No gradient: this input does not need one"


def plain_call(graph: GraphSnapshot | None, inputs: tuple[str, ...] = ()) -> str:
    """The call that runs the whole pass in plain torch: `loss.backward()`."""
    if inputs:
        return "autograd.grad()"
    root = graph.root if graph else ""
    if not root:
        return "loss.backward()"
    return f"{root}.backward()" if root.isidentifier() else "backward()"


def comparison_text(
    snapshot: ComparisonSnapshot, plain: str = "loss.backward()", edited: bool = False
) -> str:
    """In words, whether the gradients of a pass equal those of the call `plain`. `edited` says that
    gradients were edited in the pass."""
    if snapshot.max_difference == 0:
        return f"Equals {plain}: max difference 0 over all {_COMPARED[plain.endswith('grad()')]}."
    if snapshot.zeroed:
        return f"Differs from {plain} because zero_grad emptied .grad during this pass."
    worst = max(snapshot.differences, key=lambda name: snapshot.differences[name], default="")
    where = f", in {worst}" if worst else ""
    head = "Differs because you edited a gradient" if edited else f"Differs from {plain}"
    if math.isinf(snapshot.max_difference):
        return f"{head}: only one of the two passes has a gradient{where}."
    difference = format_number(snapshot.max_difference)
    if edited:
        return f"{head}. Max difference {difference}{where}."
    return f"{head}: max difference {difference}{where}."


def start_text(graph: GraphSnapshot) -> str:
    """The state at the begin of a pass."""
    if graph.root:
        return (
            f"Step runs this node. Backward starts with a gradient for {graph.root}: 1 for a"
            " number, else what Options say."
        )
    return (
        "Step runs this node. Backward starts with the gradient of the loss with respect to"
        " itself, which is 1."
    )


def position_text(snapshot: BackwardSnapshot, graph: GraphSnapshot) -> str:
    """The position of the pass."""
    done, length = snapshot.position, len(graph.plan)
    words = f"{done:,} of {length:,} nodes have run."
    if snapshot.pass_number > 1:
        words = f"Pass {snapshot.pass_number}: {words}"
    if graph.truncated:
        words += f" {graph.truncated:,} more nodes are not shown."
    if done == length:
        plain = plain_call(graph, snapshot.inputs)
        words += (
            f" The gradients of the inputs are computed: Compare checks them against {plain}."
            if snapshot.inputs
            else f" Every .grad is filled in: Compare checks it against {plain}."
        )
    elif done and snapshot.real_engine and not snapshot.retain_graph:
        words += f" {format_bytes(snapshot.freed_bytes)} of saved tensors freed."
    return words


def facts_text(snapshot: BackwardSnapshot) -> str:
    """Words for the saved tensors that the pass frees."""
    freed, saved = format_bytes(snapshot.freed_bytes), format_bytes(snapshot.saved_bytes)
    if snapshot.real_engine and not snapshot.retain_graph:
        return f"The engine has freed {freed} of the {saved} that forward saved (parameters aside)."
    return (
        f"Of the {saved} that forward saved (parameters aside), backward() without retain_graph"
        f" would have freed {freed} by now."
    )


def incoming_text(snapshot: BackwardSnapshot, node: int) -> str:
    """The gradients that have arrived at a node that has not run, in a line."""
    pending = next((p for p in snapshot.pending if p.node == node), None)
    words = [gradients_text(pending)] if pending else ["no gradient has arrived yet"]
    following = snapshot.next if snapshot.next and snapshot.next.node == node else None
    if following and following.edited:
        norms = [_norm(value.summary if value else None) for value in following.edited]
        words[0] += f" → {', '.join(norms)}"
    if pending and pending.expected > 1:
        words.append(f"{pending.arrived} of {pending.expected} contributions")
    if following and following.hooks:
        words.append(following.hooks)
    return " · ".join(words)


def gradients_text(pending: PendingGradient) -> str:
    """The norms of what has arrived: `norm 0.353`; for several outputs `norms 1, –, 2.5`."""
    if not pending.gradients:
        return "held by the engine"
    norms = [_norm(gradient) for gradient in pending.gradients]
    return f"norm{'s' if len(norms) > 1 else ''} {', '.join(norms)}"


def _norm(gradient: TensorSummary | None) -> str:
    if gradient is None:
        return "–"
    return bad_numbers(gradient) or format_number(gradient.norm)
