"""Why a tensor gets no gradient from a root, told from the graph and the recorded calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from ...protocol import GraphCut, SourceLine, WhyNoGradientSnapshot
from .provenance import Provenance
from .reading import Graph

MAX_NAMED_CUTS = 3


def why_of_itself(name: str, t: Tensor) -> WhyNoGradientSnapshot | None:
    """Why a tensor gets no `.grad` whatever the root is; None if that depends on the root."""
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


class MissingGradients:
    """Tells why tensors get no gradient from the roots of `graph`; `root` is what the roots are
    called, `names` maps names to tensors. Looks for cuts once, when the first tensor needs it."""

    def __init__(
        self, graph: Graph, provenance: Provenance, names: Mapping[str, Tensor], root: str
    ) -> None:
        self._graph, self._provenance, self._root = graph, provenance, root
        self._name_of = {id(t): name for name, t in names.items()}

    def why(self, name: str, t: Tensor) -> WhyNoGradientSnapshot:
        """Why the tensor has no `.grad`. If the graph has a path to it, backward has not come, or a
        function on the path gave None."""
        return why_of_itself(name, t) or self._by_graph(name, t)

    @cached_property
    def _cuts(self) -> list[GraphCut]:
        graph = self._graph
        return [cut for i in graph.cut for cut in self._provenance.cuts(graph.nodes[i])]

    @cached_property
    def _used_before(self) -> dict[str, GraphCut]:
        """Tensors that did not require grad when they were used, by name."""
        return {cut.label: cut for cut in reversed(self._cuts) if cut.reason == "input"}

    def _by_graph(self, name: str, t: Tensor) -> WhyNoGradientSnapshot:
        root = self._root
        node = self._graph.get(get_gradient_edge(t).node)
        if node is not None:
            return WhyNoGradientSnapshot(
                reason="not_yet",
                text=f"The graph has a path from `{root}` to `{name}`, so backward from it gives a"
                f" gradient. It has not been called since {name}.grad was None, or a function on"
                " the path gave None.",
                hint=f"Call backward on {root}, or step through it to see where the gradient goes.",
                node=node.id,
            )
        late = self._used_before.get(self._name_of.get(id(t), name))
        if late is not None:
            call = self._provenance.call(self._graph.nodes[late.node])
            used = "" if call is None or call.source is None else _line_words(call.source)
            return WhyNoGradientSnapshot(
                reason="late",
                text=f"`{name}` requires grad now, but did not when it was used{used}, so the"
                " graph has no edge to it.",
                hint=f"Call {name}.requires_grad_() before it is used, then compute {root} again.",
                node=late.node,
                cut=late,
            )
        ends = [cut for cut in self._cuts if cut.reason in ("detach", "no_grad")]
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
            text=f"The graph has no path from `{root}` to `{name}`: {root} was computed without it,"
            " or its value went through item(), numpy() or tolist(), which keep no graph.",
            hint=f"Check that {name} itself is used where {root} is computed.",
        )


def _cut_words(cut: GraphCut) -> str:
    how = "by detach()" if cut.reason == "detach" else "under no_grad"
    where = "" if cut.source is None else _line_words(cut.source)
    return f"`{cut.label}` {how}{where}" if cut.label else f"{how}{where}"


def _line_words(source: SourceLine) -> str:
    return f" (line {source.line}: {source.text})"
