"""Answers why a tensor's `.grad` is None, from the graph and the recorded calls."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from ..autograd.backward.roots import ConsoleSubject, Subject
from ..autograd.graph.reading import Graph, read_graph
from ..lab import Lab
from ..protocol import (
    GraphCut,
    Snapshot,
    SourceLine,
    WhyNoGradientCommand,
    WhyNoGradientSnapshot,
)
from .backward_edits import namespace_of

MAX_NAMED_CUTS = 3


def why_no_gradient(lab: Lab, command: WhyNoGradientCommand) -> Iterator[Snapshot]:
    """Answer with a WhyNoGradientSnapshot. Raises LabError if the name is not that of a tensor, or
    the root has no graph."""
    namespace = lab.console.of(command.example) if command.example else namespace_of(lab)
    name, root = command.name.strip(), command.root.strip()
    shown = None if command.example or root else lab.backward.under_way
    named = {} if shown is None else shown.subject.names  # of a model, its parameters
    tensor = named[name] if name in named else namespace.tensor(name)
    answer = _by_itself(name, tensor)
    if answer is None and shown is not None:
        answer = _by_graph(name, tensor, shown.subject)
    elif answer is None and root:
        answer = _by_graph(name, tensor, ConsoleSubject(namespace, lab.control, root, "0"))
    if answer is None:
        answer = WhyNoGradientSnapshot(
            reason="not_yet",
            text=f"`{name}` is a leaf that requires grad: backward from something computed from it"
            " will fill its .grad.",
            hint="Name the tensor that backward is called on, to see whether its graph has a path"
            f" to {name}.",
        )
    yield answer


def _by_itself(name: str, t: Tensor) -> WhyNoGradientSnapshot | None:
    if (t.is_leaf or t.retains_grad) and t.grad is not None:
        return WhyNoGradientSnapshot(
            reason="has_gradient", text=f"`{name}.grad` is there.", hint=f"Look at {name}.grad."
        )
    if not (t.is_floating_point() or t.is_complex()):
        kind = str(t.dtype).removeprefix("torch.")
        return WhyNoGradientSnapshot(
            reason="integer",
            text=f"`{name}` is {kind}: a derivative asks what a very small change would do, and"
            f" {kind} knows none.",
            hint=f"Make it floating where it is made: {name} = {name}.float().requires_grad_().",
        )
    if not t.requires_grad:
        return WhyNoGradientSnapshot(
            reason="not_required",
            text=f"`{name}` does not require grad: autograd does not follow what is done with it.",
            hint=f"Call {name}.requires_grad_() before it is used. If it was computed from tensors"
            " that do, look for detach(), no_grad, item() or numpy() on the way.",
        )
    if not t.is_leaf and not t.retains_grad:
        made_by = t.grad_fn.name() if t.grad_fn is not None else "an operation"
        return WhyNoGradientSnapshot(
            reason="not_leaf",
            text=f"`{name}` is not a leaf: it was computed, by {made_by}. A gradient passes through"
            " it and is not kept.",
            hint=f"Call {name}.retain_grad() before backward().",
        )
    return None


def _by_graph(name: str, t: Tensor, subject: Subject) -> WhyNoGradientSnapshot:
    graph, root = read_graph(subject.roots, names=subject.names), subject.root or "loss"
    node = _node_of(graph, t)
    if node is not None:
        return WhyNoGradientSnapshot(
            reason="not_yet",
            text=f"The graph has a path from `{root}` to `{name}`, so backward from it gives a"
            f" gradient. It has not been called since {name}.grad was None, or a function on the"
            " path gave None.",
            hint=f"Call backward on {root}, or step through it to see where the gradient goes.",
            node=node,
        )
    known = next((key for key, other in subject.names.items() if other is t), name)
    cuts = [cut for each in graph.nodes for cut in subject.provenance.cuts(each)]
    late = next((cut for cut in cuts if cut.label == known and cut.reason == "input"), None)
    if late is not None:
        call = subject.provenance.call(graph.nodes[late.node])
        used = "" if call is None or call.source is None else _line_words(call.source)
        return WhyNoGradientSnapshot(
            reason="late",
            text=f"`{name}` requires grad now, but did not when it was used{used}, so the"
            " graph has no edge to it.",
            hint=f"Call {name}.requires_grad_() before it is used, then compute {root} again.",
            node=late.node,
            cut=late,
        )
    ends = [cut for cut in cuts if cut.reason in ("detach", "no_grad")]
    if ends:
        words = "; ".join(_cut_words(cut) for cut in ends[:MAX_NAMED_CUTS])
        more = len(ends) - MAX_NAMED_CUTS
        words += f"; and {more} more" if more > 0 else ""
        return WhyNoGradientSnapshot(
            reason="cut",
            text=f"The graph has no path from `{root}` to `{name}`. It was cut: {words}."
            " Gradients do not pass a cut.",
            hint="Leave out the detach() or no_grad there if gradients are to pass.",
            node=ends[0].node,
            cut=ends[0],
        )
    return WhyNoGradientSnapshot(
        reason="no_path",
        text=f"The graph has no path from `{root}` to `{name}`: {root} was computed without it, or"
        " its value went through item(), numpy() or tolist(), which keep no graph.",
        hint=f"Check that {name} itself is used where {root} is computed.",
    )


def _node_of(graph: Graph, t: Tensor) -> int | None:
    try:
        return graph.node_of(get_gradient_edge(t).node).id
    except KeyError:
        return None


def _cut_words(cut: GraphCut) -> str:
    how = "by detach()" if cut.reason == "detach" else "under no_grad"
    where = "" if cut.source is None else _line_words(cut.source)
    return f"`{cut.label}` {how}{where}" if cut.label else f"{how}{where}"


def _line_words(source: SourceLine) -> str:
    return f" (line {source.line}: {source.text})"
