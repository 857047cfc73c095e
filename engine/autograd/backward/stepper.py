"""Backward, one node at a time, by torch's own engine.

Each step is a run of the C++ engine that an exception ends after one node. Hooks, shapes, dtypes
and rounding are therefore the engine's own, and stepping to the end leaves in `.grad` the bits that
`backward()` leaves. Between two runs the stepper holds the pending gradients in buffers, where they
can be read, changed and put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Self

import torch

from ..graph.engine_run import Gradients, capture, run_node, run_nodes
from ..graph.reading import Node
from .stepping import Step, SteppedPass
from .undo import GradBefore, Undo, copied, leaves_held, module_hooks

NODES_OF_A_RUN = 512
PARTS_OF_A_RUN = 16
"""An engine run executes up to 512 nodes, or a 16th of the nodes left if that is more: each run
walks all the nodes left."""


class BackwardStepper(SteppedPass):
    """Steps backward from one tensor or several in the engine's own order, and back again.

    `gradient` is as for `torch.autograd.backward`: None for scalar roots (ones), a tensor, or one
    entry per root. With `create_graph`, gradients have a graph of their own. The forward graph
    stays, as with `retain_graph=True`. As in `backward()`, gradients are added to the `.grad` of
    leaves; `back` restores it. `watch` names other tensors whose `.grad` `back` restores: those on
    which `retain_grad()` was called. `back` does not undo what else hooks and custom Functions do
    (prints, counters, an optimizer in a hook).

    The hooks of a node that gets no gradient at all are not called (torch calls them with None).
    Every step is a `backward()` of its own: a `register_multi_grad_hook` and callbacks at the end
    of backward see many short ones. BreakMode steps one single `backward()`. A step takes some
    30 us, and 0.05 us more for every node below, as the engine walks them all; `run` executes many
    nodes in one walk.

    Raises ValueError when a root has no graph, when a root that is not a scalar has no gradient,
    and when a gradient does not fit its root.
    """

    def __init__(
        self,
        root: torch.Tensor | Iterable[torch.Tensor],
        gradient: torch.Tensor | Sequence[torch.Tensor | None] | None = None,
        create_graph: bool = False,
        *,
        names: Mapping[str, torch.Tensor] | None = None,
        watch: Iterable[torch.Tensor] = (),
        inputs: Sequence[torch.Tensor] | None = None,
    ) -> None:
        super().__init__(root, gradient, create_graph, names=names, inputs=inputs)
        self._watched = list(watch)
        self._buffers: dict[int, list[torch.Tensor | None]] = {}
        self._undos: list[Undo] = []
        for (_, grad), (node_id, output_nr) in zip(self._start, self.graph.roots, strict=True):
            if node_id in self._plan_index:
                self._add(node_id, output_nr, grad)

    # -- where it stands -------------------------------------------------------------------------

    @property
    def position(self) -> int:
        return len(self._undos)

    @property
    def last(self) -> Step | None:
        return self._undos[-1].step if self._undos else None

    def step_of(self, node: Node | int) -> Step | None:
        place = self._index_of(node)
        return self._undos[place].step if place < self.position else None

    def pending(self, node: Node | int) -> Gradients:
        node = self.graph.nodes[self._id(node)]
        return tuple(self._buffers.get(node.id) or [None] * len(node.fn._input_metadata))

    def grad_before(self, node: Node | int) -> torch.Tensor | None:
        undo = self._undo_of_leaf(node)
        return None if undo is None else undo.grads[0].copy

    def grad_after(self, node: Node | int) -> torch.Tensor | None:
        undo = self._undo_of_leaf(node)
        return None if undo is None else undo.grad_after

    def _undo_of_leaf(self, node: Node | int) -> Undo | None:
        """Of a leaf that has added to its `.grad`; None for all other nodes."""
        place = self._index_of(node)
        node = self.plan[place]
        if place >= self.position or not node.is_leaf or not self.runs(node):
            return None
        return self._undos[place]

    # -- moving ----------------------------------------------------------------------------------

    def step(self) -> Step | None:
        """Run the next node; None at the end.

        Raises what the node raises (a freed graph, a hook, a custom Function); the stepper then
        stands where it stood.
        """
        node = self.next_node
        if node is None:
            return None
        undo = self._before(node)
        arrived = self.pending(node)
        try:
            incoming, outgoing = self._run(node, arrived)
        except BaseException:  # a leaf's hook is called when its `.grad` has grown already
            undo.note_changes()
            undo.put_back()
            raise
        return self._after(undo, arrived, incoming, outgoing)

    def run(self, until: Callable[[Self], bool] | None = None) -> None:
        """Run to the end, or until `until`, called after every step, returns True.

        One engine run executes many nodes where it can. On large graphs that is much faster, with
        the same result as single steps.
        """
        while (node := self.next_node) is not None:
            position = self.position
            stopped = False
            if self.inputs is None and not node.is_leaf and not self._has_undefined_node():
                stopped = self._run_many(until)
            if self.position == position:
                self.step()
                stopped = until is not None and until(self)
            if stopped:
                return

    def _run_many(self, until: Callable[[Self], bool] | None) -> bool:
        """Execute some of the next nodes in one engine run. Returns what `until` returned last."""
        nodes = self._nodes_of_a_run()
        if not nodes:
            return False
        undo = Undo(Step(nodes[0], (), (), 0))
        watched = self._watched_grads()
        stopped = False

        def before(place: int) -> None:
            nonlocal undo
            undo = self._before(nodes[place])
            undo.watched = watched  # read earlier: by now retain_grad() has set the node's `.grad`

        def after(place: int, outgoing: Gradients, incoming: Gradients) -> bool:
            nonlocal watched, stopped
            node = nodes[place]
            given = () if node.is_leaf else outgoing
            self._after(undo, self.pending(node), tuple(incoming), tuple(given))
            watched = self._watched_grads()
            stopped = until is not None and until(self)
            return stopped

        graph = self.graph
        waiting = [
            (graph.nodes[node_id].fn, i, gradient)
            for node_id, buffer in self._buffers.items()
            for i, gradient in enumerate(buffer)
            if gradient is not None
        ]
        fns = [node.fn for node in nodes]
        try:
            run_nodes(
                fns,
                waiting,
                before,
                after,
                create_graph=self.create_graph,
                guard=self.guard,
                shield=self.shield,
            )
        except BaseException:
            if undo.step.node is self.next_node:
                undo.note_changes()
                undo.put_back()
            raise
        return stopped

    def _nodes_of_a_run(self) -> list[Node]:
        """The next nodes that one engine run executes in the plan's order. It may order leaves that
        follow each other in the plan otherwise."""
        nodes: list[Node] = []
        limit = max(NODES_OF_A_RUN, (len(self.plan) - self.position) // PARTS_OF_A_RUN)
        following = self.plan[self.position : self.position + limit + 1]
        for node, after in zip_longest(following, following[1:]):
            tied = node.is_leaf and after is not None and after.is_leaf
            if tied or self._runs_alone(node) or len(nodes) == limit:
                break
            nodes.append(node)
        return nodes

    def _has_undefined_node(self) -> bool:
        """Whether only undefined gradients have arrived at a waiting node. An engine run starts
        from defined gradients: it would skip that node, and run the nodes below it too early."""
        return len(self._buffers) < len(self.arrived)

    def _runs_alone(self, node: Node) -> bool:
        """Whether the node needs a run of its own, to show and undo what the user's code in it
        does."""
        return node.id in self._edits or node.is_custom

    def _before(self, node: Node) -> Undo:
        """Save what `node` may change. To be called before it runs."""
        undo = Undo(Step(node, (), (), self.position + 1), watched=self._watched_grads())
        variable = node.variable if self.runs(node) else None
        if variable is not None:
            undo.grads.append(GradBefore(variable))
        elif node.is_custom and self.runs(node):
            undo.watched += map(GradBefore, leaves_held(node.fn))
            undo.hooks = [(hook, hook.grad_outputs) for hook in module_hooks(node.fn)]
        return undo

    def _after(
        self, undo: Undo, arrived: Gradients, incoming: Gradients, outgoing: Gradients
    ) -> Step:
        """Pass the gradients of a node that has run on to the nodes below."""
        node = undo.step.node
        undo.step = Step(node, incoming, outgoing, self.position + 1)
        undo.note_changes()
        if node.variable is not None and self.runs(node):
            undo.grad_after = copied(node.variable.grad)
        undo.buffers[node.id] = self._buffers.pop(node.id, None)
        for number, output_nr in self._captures.get(node.id, ()):
            # As in the engine: a node that runs captures the gradient before its hooks.
            taken = arrived if self.runs(node) else incoming
            self.captured[number] = taken[output_nr]
        for input_nr, target, output_nr in self._targets[node.id] if self.runs(node) else ():
            if outgoing[input_nr] is not None:
                if target not in undo.buffers:
                    buffer = self._buffers.get(target)
                    undo.buffers[target] = None if buffer is None else list(buffer)
                self._add(target, output_nr, outgoing[input_nr])
        self._count_step(node)
        self._undos.append(undo)
        return undo.step

    def back(self) -> Step | None:
        """Undo the last step and what it added to `.grad`. Returns that step, None at the start."""
        if not self._undos:
            return None
        undo = self._undos.pop()
        for node_id, buffer in undo.buffers.items():
            if buffer is None:
                self._buffers.pop(node_id, None)
            else:
                self._buffers[node_id] = buffer
        self._uncount_step(undo.step.node)
        for number, _ in self._captures.get(undo.step.node.id, ()):
            self.captured[number] = None
        undo.put_back()
        return undo.step

    def run_to(self, node: Node | int) -> Step:
        """Run, or go back, until `node` is the last node that has run. Raises ValueError for a node
        that is not in this graph."""
        place = self._index_of(node)
        if self.position <= place:
            self.run(lambda stepper: stepper.position > place)
        while self.position > place + 1:
            self.back()
        return self._undos[place].step

    def _go_back_before(self, node: Node | int) -> None:
        while self._index_of(node) < self.position:
            self.back()

    def reset(self) -> None:
        """Go back to the start. Edits stay."""
        while self.back() is not None:
            pass

    def close(self) -> None:
        super().close()
        self._undos.clear()
        self._buffers.clear()
        self._watched.clear()

    # -- inside ----------------------------------------------------------------------------------

    def _watched_grads(self) -> list[GradBefore]:
        return [GradBefore(t, is_copied=False) for t in self._watched]

    def _run(self, node: Node, arrived: Gradients) -> tuple[Gradients, Gradients]:
        if not self.runs(node):
            return capture(node.fn, arrived, create_graph=self.create_graph), ()
        nothing_came = all(gradient is None for gradient in arrived)
        if nothing_came and not self._runs_alone(node):
            return arrived, (None,) * len(node.fn.next_functions)
        # A Python Function may turn undefined gradients into zeros, an edit into any gradient.
        needs_edit = nothing_came or node.id in self._edits
        edit = (lambda grads: self.edited(node, grads)) if needs_edit else None
        watched = self._watched_grads() if nothing_came else []
        ran = run_node(
            node.fn, arrived, edit=edit, create_graph=self.create_graph, guard=self.guard
        )
        for grad in watched:  # retain_grad() has kept the zeros that the run began with
            if grad.has_changed and grad.tensor.grad_fn == node.fn:
                grad.put_back()
        return ran

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
        """The sum as in InputBuffer::accumulate of torch/csrc/autograd/input_buffer.cpp: the order
        of the operands decides the rounding of duplicates in sparse sums."""
        with torch.set_grad_enabled(self.create_graph):
            if old.layout == torch.sparse_coo and not self.create_graph:
                return new + old
            return old + new
