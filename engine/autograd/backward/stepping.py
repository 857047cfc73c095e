"""The parts that both steppers share: the plan of a pass, its position, and edits of gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import torch

from ..graph.engine_run import Gradients, execution_order
from ..graph.inputs import above, wanted_from
from ..graph.reading import Graph, Node, as_roots, read_graph
from .gradients import check_all_fit, root_gradients

PreHook = Callable[[Gradients], Gradients]
Edit = Gradients | PreHook


@dataclass(frozen=True, eq=False)
class Step:
    """One executed node. `incoming` are the gradients that its rule got (after hooks and edits),
    one per output of the forward operation; `outgoing` those that it returned (after hooks, summed
    to the shape and cast to the dtype of their target), one per input. None is an undefined
    gradient, mathematically zero. `position` is the step's number in the plan, from 1."""

    node: Node
    incoming: Gradients
    outgoing: Gradients
    position: int


class SteppedPass(ABC):
    """A backward pass that stands between two nodes of its `plan`, the engine's own order.

    With `inputs` it is a pass of `torch.autograd.grad`: no `.grad` changes, only nodes on the way
    to an input run, and `captured` holds the gradient of each input once it has arrived. A step
    only captures where the gradient of a node is wanted and no other input needs the node to run.

    Raises ValueError when a root has no graph, when a root that is not a scalar has no gradient,
    and when a gradient does not fit its root.
    """

    own_hooks = 0
    """How many of the hooks of each kind on a node are the pass's own."""

    def __init__(
        self,
        root: torch.Tensor | Iterable[torch.Tensor],
        gradient: torch.Tensor | Sequence[torch.Tensor | None] | None = None,
        create_graph: bool = False,
        *,
        names: Mapping[str, torch.Tensor] | None = None,
        inputs: Sequence[torch.Tensor] | None = None,
    ) -> None:
        roots: list[Any] = as_roots(root)
        self.create_graph = create_graph
        self._start = list(zip(roots, root_gradients(roots, gradient), strict=True))
        self.graph: Graph = read_graph(roots, names=names)
        self.plan: list[Node] = [self.graph.node_of(fn) for fn in execution_order(roots)]
        self.inputs = None if inputs is None else list(inputs)
        self.captured: list[torch.Tensor | None] = [None] * len(self.inputs or ())
        self._captures = wanted_from(self.graph, self.inputs or ())
        self._needed: frozenset[int] | None = None
        if self.inputs is not None:
            self._needed = above(self.graph, self._captures)
            kept = self._needed | self._captures.keys()
            self.plan = [node for node in self.plan if node.id in kept]
        self._plan_index = {node.id: place for place, node in enumerate(self.plan)}
        self.guard: Callable[[], AbstractContextManager[object]] = nullcontext
        """Entered around code that may be the user's, which an interrupt can end."""
        self.shield: Callable[[], AbstractContextManager[object]] = nullcontext
        """Entered inside of `guard` around code that must not be interrupted."""
        self._edits: dict[int, Edit] = {}
        self._targets: dict[int, list[tuple[int, int, int]]] = {n.id: [] for n in self.graph.nodes}
        for edge in self.graph.edges:
            if edge.target in self._plan_index:
                self._targets[edge.source].append((edge.input, edge.target, edge.output))
        self.arrived: Counter[int] = Counter(
            node_id for node_id, _ in self.graph.roots if node_id in self._plan_index
        )
        """How many of its `expected` contributions have arrived at each node that has not run, by
        node id. Undefined ones count; nodes without any are left out."""

    # -- where the pass stands -------------------------------------------------------------------

    @property
    @abstractmethod
    def position(self) -> int:
        """How many nodes of the plan have run."""

    @property
    @abstractmethod
    def last(self) -> Step | None:
        """The last step, None at the start."""

    @property
    def next_node(self) -> Node | None:
        """The node that `step()` will run, None at the end."""
        return self.plan[self.position] if self.position < len(self.plan) else None

    def step_position(self, node: Node | int) -> int:
        """The number of the step, from 1, that runs `node`. Raises ValueError for a node that is
        not in the plan."""
        return self._index_of(node) + 1

    @abstractmethod
    def step_of(self, node: Node | int) -> Step | None:
        """The step that ran `node`, None if it has not run or the step was not kept. Raises
        ValueError for a node that is not in this graph."""

    @abstractmethod
    def pending(self, node: Node | int) -> Gradients:
        """The sums of the gradients that have arrived so far at a node that has not run, one per
        output. () where they are not known."""

    @abstractmethod
    def grad_before(self, node: Node | int) -> torch.Tensor | None:
        """A copy of a leaf's `.grad` as it was before its step; None if it had none, for other
        nodes, and where the step is not kept."""

    @abstractmethod
    def grad_after(self, node: Node | int) -> torch.Tensor | None:
        """A copy of a leaf's `.grad` as its step has left it; None for other nodes, and before."""

    def runs(self, node: Node) -> bool:
        """Whether the node runs; if not, its gradient is only captured."""
        return self._needed is None or node.id in self._needed

    @cached_property
    def expected(self) -> Counter[int]:
        """How many contributions each node waits for, by node id: one per edge, one per root."""
        edges, roots = self.graph.edges, self.graph.roots
        return Counter([edge.target for edge in edges] + [node_id for node_id, _ in roots])

    # -- moving ----------------------------------------------------------------------------------

    @abstractmethod
    def step(self) -> Step | None:
        """Run the next node; None at the end."""

    @abstractmethod
    def run(self, until: Callable[[Self], bool] | None = None) -> None:
        """Run to the end, or until `until`, called after every step, returns True."""

    # -- changing --------------------------------------------------------------------------------

    def edit(
        self,
        node: Node | int,
        incoming: torch.Tensor | Sequence[torch.Tensor | None] | PreHook | None,
    ) -> None:
        """Let `node` run with `incoming` in place of the gradients that arrive.

        `incoming` acts as a pre-hook on the node after all others: a tuple that the hook returns,
        or the hook itself, a function of the gradients that arrive. For a node with one output it
        may be one tensor, or None for no gradient. The edit holds until `unedit`, also when the
        pass goes back over the node and on again. A BackwardStepper that has run the node goes back
        before it. Raises ValueError where the pass cannot go back, or a gradient does not fit; what
        a function returns is checked when the node runs.
        """
        edit = self._fitting(node, incoming)
        self._go_back_before(node)
        self._edits[self._id(node)] = edit

    def _go_back_before(self, node: Node | int) -> None:
        """Go back until `node` has not run. Raises ValueError where the pass cannot go back."""
        if self._index_of(node) < self.position:
            raise ValueError("the node has already run: step back before it, then edit")

    def _fitting(
        self,
        node: Node | int,
        incoming: torch.Tensor | Sequence[torch.Tensor | None] | PreHook | None,
    ) -> Edit:
        """The edit of a node, checked against the shapes, dtypes and devices that it expects."""
        node = self.graph.nodes[self._id(node)]
        self._index_of(node)
        if not self.runs(node):
            raise ValueError(f"{node.name} does not run: its gradient is only captured")
        if callable(incoming) and not torch.is_tensor(incoming):
            return incoming
        given = (incoming,) if incoming is None or torch.is_tensor(incoming) else incoming
        if not isinstance(given, Sequence):
            raise TypeError(
                f"an edit is a tensor, a tuple with one per output, a function or None; got "
                f"{incoming!r:.60}"
            )
        given = tuple(given)
        check_all_fit(node, given)
        return given

    def unedit(self, node: Node | int) -> None:
        """Remove the edit, if any, of a node that has not run. Raises ValueError if it has run."""
        if self._index_of(node) < self.position:
            raise ValueError("the node has already run: step back before it, then undo its edit")
        self._edits.pop(self._id(node), None)

    def edited(self, node: Node | int, arrived: Gradients) -> Gradients:
        """The gradients `arrived` after the edit of `node`, if it has one.

        Raises ValueError when they do not fit, and what an edit that is a function raises.
        """
        node = self.graph.nodes[self._id(node)]
        edit = self._edits.get(node.id)
        if edit is None:
            return arrived
        with torch.set_grad_enabled(self.create_graph):  # as in a hook
            given = edit(arrived) if callable(edit) else edit
        check_all_fit(node, given, arrived)
        return given

    # -- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Drop the graph and all gradients. `.grad` stays as it is."""
        self._edits.clear()
        self._start.clear()
        self.plan = []
        self.graph = Graph([], [], [])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- inside ----------------------------------------------------------------------------------

    def _count_step(self, node: Node) -> None:
        """Count the contributions of a node that has run as arrived at the nodes below it."""
        del self.arrived[node.id]
        for _, target, _ in self._targets[node.id] if self.runs(node) else ():
            self.arrived[target] += 1

    def _uncount_step(self, node: Node) -> None:
        for _, target, _ in self._targets[node.id] if self.runs(node) else ():
            self.arrived[target] -= 1
            if not self.arrived[target]:
                del self.arrived[target]
        self.arrived[node.id] = self.expected[node.id]

    def _id(self, node: Node | int) -> int:
        node_id = node.id if isinstance(node, Node) else node
        if not isinstance(node_id, int):
            raise TypeError(f"a node of the graph, or its id, is wanted; got {node!r:.60}")
        known = 0 <= node_id < len(self.graph.nodes)
        if not known or (isinstance(node, Node) and self.graph.nodes[node_id].fn != node.fn):
            raise ValueError(f"{node!r} is not a node of this graph")
        return node_id

    def _index_of(self, node: Node | int) -> int:
        node_id = self._id(node)
        place = self._plan_index.get(node_id)
        if place is None:
            raise ValueError(f"{self.graph.nodes[node_id]} is not on the way to any of the inputs")
        return place
