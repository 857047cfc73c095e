"""Backward, one node at a time, by torch's own engine.

Every node is executed by the C++ engine in a run that an exception ends after that one node: so
hooks, shapes, dtypes and rounding are the engine's own, and stepping to the end leaves in `.grad`
the bits that `backward()` leaves. Between the runs, the gradients on their way wait in buffers
here, and that is what can be looked at, changed and put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .engine_run import Gradients, execution_order, run_node
from .graph import Graph, Node, as_roots, gradient_edge, read_graph


@dataclass(frozen=True, eq=False)
class Step:
    """One executed node. `incoming` is what its rule was given (after hooks and edits), one per
    output of the forward operation; `outgoing` what it gave (after hooks, summed to the shape and
    cast to the dtype of its target), one per input. None is an undefined gradient: zero, for
    mathematics. `position` is the step's number in the plan, from 1."""

    node: Node
    incoming: Gradients
    outgoing: Gradients
    position: int


@dataclass
class _Undo:
    """What a step changed: buffers by node id as they were, and `.grad`s as they were."""

    step: Step
    buffers: dict[int, list[torch.Tensor | None] | None] = field(default_factory=dict)
    grads: list[tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]] = field(
        default_factory=list
    )


class BackwardStepper:
    """Steps backward from one tensor or several, forth and back, in the engine's own order.

    `gradient` is as for `torch.autograd.backward`: None for scalar roots (ones), a tensor, or one
    entry per root. With `create_graph`, gradients carry a graph of their own. The forward graph
    is kept, as by `retain_graph=True`. As in `backward()`, gradients are added to the `.grad` of
    leaves; going back takes them out again. `watch` names other tensors whose `.grad` going back
    shall restore: those on which `retain_grad()` was called. What hooks and custom Functions do
    outside of this (prints, counters, an optimizer in a hook) is not undone. A module's full
    backward hooks hold state from the module's output to its input: go back to before its output.

    Where a node gets no gradient at all, its hooks are not called (torch calls them with None). A
    step takes some 30 us, and 0.05 us more for every node below, as the engine walks them all.

    Raises ValueError when a root has no graph, a gradient is missing for a root that is no
    scalar, or does not fit its root.
    """

    def __init__(
        self,
        root: torch.Tensor | Iterable[torch.Tensor],
        gradient: torch.Tensor | Sequence[torch.Tensor | None] | None = None,
        create_graph: bool = False,
        *,
        names: Mapping[str, torch.Tensor] | None = None,
        watch: Iterable[torch.Tensor] = (),
    ) -> None:
        roots: list[Any] = as_roots(root)
        self.create_graph = create_graph
        self._start = list(zip(roots, _root_gradients(roots, gradient), strict=True))
        self.graph: Graph = read_graph(roots, names=names)
        self.plan: list[Node] = [self.graph.node_of(fn) for fn in execution_order(roots)]
        self._place = {node.id: place for place, node in enumerate(self.plan)}
        self._targets: dict[int, list[tuple[int, int, int]]] = {n.id: [] for n in self.graph.nodes}
        for source, input_nr, target, output_nr in self.graph.edges:
            self._targets[source].append((input_nr, target, output_nr))
        self._watched = list(watch)
        self._edits: dict[int, Gradients] = {}
        self._buffers: dict[int, list[torch.Tensor | None]] = {}
        self._done: list[_Undo] = []
        for (_, grad), (node_id, output_nr) in zip(self._start, self.graph.roots, strict=True):
            self._add(node_id, output_nr, grad)

    # -- where it stands -------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """How many nodes of the plan have run."""
        return len(self._done)

    @property
    def last(self) -> Step | None:
        """The last step, None at the start."""
        return self._done[-1].step if self._done else None

    @property
    def next_node(self) -> Node | None:
        """The node that `step()` will run, None at the end."""
        return self.plan[self.position] if self.position < len(self.plan) else None

    def step_of(self, node: Node | int) -> Step | None:
        """The step that ran `node`, None if it has not run. Raises ValueError as `run_to`."""
        place = self._place_of(node)
        return self._done[place].step if place < self.position else None

    def pending(self, node: Node | int) -> Gradients:
        """What has arrived at a node that has not run, so far summed; one per output."""
        node = self.graph.nodes[self._id(node)]
        return tuple(self._buffers.get(node.id) or [None] * len(node.fn._input_metadata))

    # -- moving ----------------------------------------------------------------------------------

    def step(self) -> Step | None:
        """Run the next node; None at the end.

        What the node raises comes out as it is (a graph that was freed, a hook, a custom
        Function); the stepper then stands where it stood.
        """
        node = self.next_node
        if node is None:
            return None
        undo = _Undo(Step(node, (), (), self.position + 1))
        watched = [(t, t.grad) for t in self._watched]
        variable = node.variable
        if variable is not None:
            old = variable.grad
            undo.grads.append((variable, old, None if old is None else old.detach().clone()))
        incoming, outgoing = self._run(node)
        undo.step = Step(node, incoming, outgoing, self.position + 1)
        undo.grads += [(t, old, None) for t, old in watched if t.grad is not old]
        undo.buffers[node.id] = self._buffers.pop(node.id, None)
        for input_nr, target, output_nr in self._targets[node.id]:
            if outgoing[input_nr] is not None:
                if target not in undo.buffers:
                    buffer = self._buffers.get(target)
                    undo.buffers[target] = None if buffer is None else list(buffer)
                self._add(target, output_nr, outgoing[input_nr])
        self._done.append(undo)
        return undo.step

    def back(self) -> Step | None:
        """Undo the last step: its gradients, and what it added to `.grad`. Returns the step
        undone, None at the start."""
        if not self._done:
            return None
        undo = self._done.pop()
        for node_id, buffer in undo.buffers.items():
            if buffer is None:
                self._buffers.pop(node_id, None)
            else:
                self._buffers[node_id] = buffer
        for tensor, grad, copy in undo.grads:
            _put_back(tensor, grad, copy)
        return undo.step

    def run_to(self, node: Node | int) -> Step:
        """Run, or go back, until `node` is the last that has run. Raises ValueError for a node
        that is not in this graph."""
        place = self._place_of(node)
        while self.position <= place:
            self.step()
        while self.position > place + 1:
            self.back()
        return self._done[place].step

    def run(self) -> None:
        """Run to the end."""
        while self.step() is not None:
            pass

    def reset(self) -> None:
        """Go back to the start. Edits stay."""
        while self.back() is not None:
            pass

    # -- changing --------------------------------------------------------------------------------

    def edit(
        self, node: Node | int, incoming: torch.Tensor | Sequence[torch.Tensor | None] | None
    ) -> None:
        """Let `node` run with `incoming` in place of what arrives: the same as a pre-hook on it
        that returns this tuple. One tensor will do for a node with one output; None cuts.

        Holds until `unedit`, also when the stepper goes back over the node and on again. Raises
        ValueError if the node has run already or a gradient does not fit.
        """
        node = self.graph.nodes[self._id(node)]
        if self._place[node.id] < self.position:
            raise ValueError(f"{node.name} has already run: step back before it, then edit")
        given = (incoming,) if incoming is None or torch.is_tensor(incoming) else tuple(incoming)
        expected = node.fn._input_metadata
        if len(given) != len(expected):
            raise ValueError(
                f"{node.name} takes {len(expected)} gradients, one per output; got {len(given)}"
            )
        for gradient, metadata in zip(given, expected, strict=True):
            if gradient is not None:
                _check_fits(gradient, metadata, node.name)
        self._edits[node.id] = given

    def unedit(self, node: Node | int) -> None:
        """Forget the edit of a node that has not run. Without an edit, nothing happens."""
        if self._place_of(node) < self.position:
            raise ValueError("the node has already run: step back before it, then undo its edit")
        self._edits.pop(self._id(node), None)

    def close(self) -> None:
        """Let go of the graph and all gradients. `.grad` stays as it is."""
        self._done.clear()
        self._buffers.clear()
        self._edits.clear()
        self._start.clear()
        self._watched.clear()
        self.plan = []
        self.graph = Graph([], [], [])

    def __enter__(self) -> BackwardStepper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- inside ----------------------------------------------------------------------------------

    def _run(self, node: Node) -> tuple[Gradients, Gradients]:
        arrived = self.pending(node)
        edit = self._edits.get(node.id)
        if edit is None and all(g is None for g in arrived):
            if not node.is_custom:
                return arrived, (None,) * len(node.fn.next_functions)
            edit = arrived  # a Python Function may turn undefined gradients into zeros: let it
        return run_node(node.fn, arrived, edit=edit, create_graph=self.create_graph)

    def _add(self, node_id: int, output_nr: int, grad: torch.Tensor | None) -> None:
        if grad is None:
            return
        buffer = self._buffers.get(node_id)
        if buffer is None:
            count = len(self.graph.nodes[node_id].fn._input_metadata)
            buffer = self._buffers[node_id] = [None] * count
        old = buffer[output_nr]
        buffer[output_nr] = grad if old is None else self._sum(old, grad)

    def _sum(self, old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """As InputBuffer::accumulate of torch/csrc/autograd/input_buffer.cpp: which operand comes
        first decides the rounding of duplicates in sparse sums."""
        with torch.set_grad_enabled(self.create_graph):
            if old.layout == torch.sparse_coo and not self.create_graph:
                return new + old
            return old + new

    def _id(self, node: Node | int) -> int:
        node_id = node.id if isinstance(node, Node) else node
        known = 0 <= node_id < len(self.graph.nodes)
        if not known or (isinstance(node, Node) and self.graph.nodes[node_id].fn != node.fn):
            raise ValueError(f"{node!r} is not a node of this graph")
        return node_id

    def _place_of(self, node: Node | int) -> int:
        return self._place[self._id(node)]


def _root_gradients(
    roots: list[torch.Tensor], gradient: torch.Tensor | Sequence[torch.Tensor | None] | None
) -> list[torch.Tensor]:
    """One gradient for each root, ones for scalars where none is given."""
    given = [gradient] if gradient is None or torch.is_tensor(gradient) else list(gradient)
    if gradient is None:
        given = [None] * len(roots)
    if len(given) != len(roots):
        raise ValueError(f"{len(roots)} roots need as many gradients; got {len(given)}")
    gradients = []
    for root, grad in zip(roots, given, strict=True):
        edge = gradient_edge(root)
        if grad is None:
            if root.numel() != 1:
                raise ValueError(
                    f"a gradient can be left out only for a scalar root; this one has shape "
                    f"{tuple(root.shape)}: give `gradient`, a tensor of that shape"
                )
            grad = torch.ones_like(root, memory_format=torch.preserve_format)
        metadata = edge.node._input_metadata[edge.output_nr]
        if grad.dtype != metadata.dtype and not grad.is_complex():
            grad = grad.to(metadata.dtype)  # as the engine does
        _check_fits(grad, metadata, "the root")
        gradients.append(grad)
    return gradients


def _check_fits(gradient: torch.Tensor, metadata: Any, whose: str) -> None:
    if metadata.is_nested_tensor:
        return  # torch tells no shape for these; the engine checks it
    expected = {
        "shape": tuple(metadata.shape),
        "dtype": metadata.dtype,
        "device": metadata.device,
    }
    got = {"shape": tuple(gradient.shape), "dtype": gradient.dtype, "device": gradient.device}
    for what, wanted in expected.items():
        if got[what] != wanted:
            raise ValueError(f"the gradient for {whose} has {what} {got[what]}, not {wanted}")


@torch.no_grad()
def _put_back(tensor: torch.Tensor, grad: torch.Tensor | None, copy: torch.Tensor | None) -> None:
    """Make `tensor.grad` the object `grad` again, with the content of `copy` if there is one."""
    if grad is not None and copy is not None:
        if grad.layout == torch.strided and not grad.requires_grad:
            grad.copy_(copy)
        elif not grad.requires_grad:
            grad = copy
    tensor.grad = grad
