"""Moves a stepped backward pass (to breakpoints, leaves, ends of modules), and edits gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...protocol import BackwardMove, GradientEdit
from ...system.errors import LabError
from ..graph.engine_run import Gradients
from ..graph.reading import Node
from .breakpoints import Breakpoints, is_inside
from .edits import GradientExpression
from .stepper import BackwardStepper
from .stepping import PreHook, Step, SteppedPass


class PassControl:
    """Moves `stepped`. `make` makes it, and makes another for each further pass over the graph.

    `modules` maps node ids to dotted module paths. `variables` are the names that the expression of
    an edit may use. `guard` is entered around code that may be the user's (expressions, and the
    runs of nodes, for their hooks), `shield` inside of `guard` around code that must not be
    interrupted. `stop` is called between the nodes of a long move; True ends the move.
    """

    def __init__(
        self,
        make: Callable[[], SteppedPass],
        breakpoints: Breakpoints,
        *,
        modules: dict[int, str] | None = None,
        variables: Mapping[str, Any] | None = None,
        guard: Callable[[], AbstractContextManager[object]] = nullcontext,
        shield: Callable[[], AbstractContextManager[object]] = nullcontext,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._make, self._guard, self._shield, self._stop = make, guard, shield, stop
        self._variables: Mapping[str, Any] = {} if variables is None else variables
        self.stepped = self._new_pass()
        self.breakpoints = breakpoints
        self.modules = {} if modules is None else modules
        self.pass_number = 1
        self._interrupted = False
        self.stopped_by = ""
        """Why the last move ended before its goal, in words."""
        self.expressions: dict[int, dict[int, GradientExpression]] = {}
        """The edits by node id and output."""
        self._edits_made = 0
        breakpoints.begin(self.modules)

    def close(self) -> None:
        self.stepped.close()
        self.expressions.clear()

    # -- moving ----------------------------------------------------------------------------------

    def go(self, move: BackwardMove, target: int = -1) -> None:
        """Make a move of MoveBackwardCommand; `stop` can end a long one. Raises LabError for a move
        that is not possible, and what a node, hook or edit raises."""
        self.stopped_by = ""
        self._interrupted = False
        try:
            self._go(move, target)
        except KeyboardInterrupt:
            self._interrupted = True
            raise

    def _go(self, move: BackwardMove, target: int) -> None:
        stepped = self.stepped
        match move:
            case "step":
                if stepped.step() is not None:
                    self.stopped_by = self.breakpoints.reach(stepped)
            case "end":
                self._forward(lambda: False, at_breakpoints=False)
            case "run":
                self._forward(lambda: False)
            case "leaf":
                self._forward(lambda: self._last_is_leaf)
            case "out":
                self._forward_to(self._end_of_module())
            case "to":
                self._go_to(self._position_after(target))
            case "back":
                self._require_stepper().back()
            case "back_run":
                self._back_run()
            case "reset":
                self._require_stepper().reset()
                self.breakpoints.begin(self.modules)
            case "again":
                self._start_again()

    def _forward(self, reached: Callable[[], bool], at_breakpoints: bool = True) -> None:
        def until(stepped: SteppedPass) -> bool:
            reason = self.breakpoints.reach(stepped)
            if at_breakpoints:
                self.stopped_by = reason
            return bool(self.stopped_by) or reached() or self._stop()

        self.stepped.run(until)

    def _forward_to(self, position: int) -> None:
        if self.stepped.position < position:
            self._forward(lambda: self.stepped.position >= position)

    def _go_to(self, position: int) -> None:
        self._forward_to(position)
        while self.stepped.position > position:
            self._require_stepper().back()

    def _back_run(self) -> None:
        stepper = self._require_stepper()
        while not self._stop() and stepper.back() is not None:
            self.stopped_by = self.breakpoints.reason(stepper)
            if self.stopped_by:
                break

    def _start_again(self) -> None:
        if self.stepped.next_node is not None:
            raise LabError(
                "This pass is not at its end yet.",
                hint="Run it to its end, then start another over the same graph.",
            )
        following = self._new_pass()
        self.stepped.close()
        self.stepped = following
        self.pass_number += 1
        for node_id, edits in self.expressions.items():
            following.edit(node_id, self._hook(following.graph.nodes[node_id], edits))
        self.breakpoints.begin(self.modules)

    def _new_pass(self) -> SteppedPass:
        stepped = self._make()
        stepped.guard, stepped.shield = self._guard, self._shield
        return stepped

    def _require_stepper(self) -> BackwardStepper:
        if not isinstance(self.stepped, BackwardStepper):
            raise LabError(
                "The real engine is running this pass, and it cannot go back.",
                hint="Restart the pass, or choose stepping node by node.",
            )
        return self.stepped

    @property
    def _last_is_leaf(self) -> bool:
        last = self.stepped.last
        return last is not None and last.node.is_leaf

    def _position_after(self, node_id: int) -> int:
        """The position of the pass right after a node has run."""
        try:
            return self.stepped.step_position(node_id)
        except ValueError as error:
            if 0 <= node_id < len(self.stepped.graph.nodes):
                raise LabError(
                    f"This node does not run: {error}.", hint="Start the pass without inputs."
                ) from None
            raise LabError(
                f"There is no node {node_id} in the graph.",
                hint="Choose a node of the graph shown.",
            ) from None

    def _end_of_module(self) -> int:
        stepped = self.stepped
        after = stepped.next_node
        if after is None:
            return stepped.position
        module = self.modules.get(after.id, "")
        if not module:
            raise LabError(
                f"The next node, {after.name}, belongs to no module.",
                hint="Run to a node, to the next leaf, or to the end.",
            )
        places = range(len(stepped.plan), stepped.position, -1)
        return next(
            p for p in places if is_inside(self.modules.get(stepped.plan[p - 1].id, ""), module)
        )

    def step_of(self, node_id: int) -> Step:
        """The step that ran a node. Raises LabError if the node has not run, or its step was not
        kept."""
        has_run = self._position_after(node_id) <= self.stepped.position
        step = self.stepped.step_of(node_id)
        if step is not None:
            return step
        if has_run:
            raise LabError(
                "The gradients of this step are gone: the real engine keeps none.",
                hint="To look at every step again, choose stepping node by node.",
            )
        raise LabError("This node has not run yet.", hint="Step backward until it has.")

    # -- changing --------------------------------------------------------------------------------

    @property
    def edits(self) -> tuple[GradientEdit, ...]:
        """All edits, in the order in which their nodes run."""
        in_turn = sorted(self.expressions, key=self.stepped.step_position)
        return tuple(
            GradientEdit(node_id, edit.expression, edit.output, edit.names)
            for node_id in in_turn
            for edit in self.expressions[node_id].values()
        )

    def edit(self, node_id: int, expression: str, output: int = 0) -> None:
        """Replace the incoming gradient for an output of a node by the value of `expression`.

        At the next node, whose gradients have arrived, the expression is tried at once. Raises
        LabError when it is not an expression, fails, or gives a value that does not fit; an earlier
        edit of this output then stays.
        """
        self._position_after(node_id)
        node = self.stepped.graph.nodes[node_id]
        count = len(node.fn._input_metadata)
        if not 0 <= output < count:
            raise LabError(
                f"{node.name} has no output {output}.", hint=f"Choose one from 0 to {count - 1}."
            )
        if self.stepped.step_position(node) <= self.stepped.position:
            raise LabError(
                f"{node.name} has already run.",
                hint="Step back before it, then edit what comes in.",
            )
        self._edits_made += 1
        edit = GradientExpression(
            expression, output, self._variables, self._guard, seed=self._edits_made
        )
        if not self.stepped.runs(node):
            raise LabError(
                f"{node.name} does not run: the gradient that comes to it is what is asked for.",
                hint="Edit at a node above it, or start the pass without inputs.",
            )
        edits = {**self.expressions.get(node_id, {}), output: edit}
        if node is self.stepped.next_node:
            self._hook(node, edits)(self.stepped.pending(node))
        self._interrupted = False
        self.stepped.edit(node, self._hook(node, edits))
        self.expressions[node_id] = edits

    def unedit(self, node_id: int) -> None:
        """Remove the edits of a node. Raises LabError when the node has run already."""
        self._position_after(node_id)
        self._interrupted = False
        try:
            self.stepped.unedit(node_id)
        except ValueError as error:
            raise LabError(str(error)) from None
        self.expressions.pop(node_id, None)

    def is_edited(self, node: Node) -> bool:
        return node.id in self.expressions

    def preview(self) -> Gradients:
        """The gradients at the next node after its edits; () if it has none. Raises LabError when
        an edit fails or gives what does not fit."""
        node = self.stepped.next_node
        if node is None or node.id not in self.expressions:
            return ()
        if self._interrupted:  # maybe in this edit: it would run long again
            raise LabError("The last move was interrupted.", hint="Step to try again.")
        arrived = self.stepped.pending(node)
        if not arrived:
            return ()  # the pass has ended with an error
        return self.stepped.edited(node, arrived)

    @staticmethod
    def _hook(node: Node, edits: Mapping[int, GradientExpression]) -> PreHook:
        """One pre-hook that applies all edits of a node in order."""

        def apply(grads: Gradients) -> Gradients:
            for edit in edits.values():
                grads = edit(grads, node)
            return grads

        return apply
