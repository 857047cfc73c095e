"""Breakpoints in the real engine: `backward()` itself, held between two nodes.

`backward()` runs in a thread of its own. Before each node a pre-hook decides whether to hold the
engine there; while the engine is held, the caller reads and edits gradients, and lets it go on.
Order, sums, the freeing of saved tensors and the recomputation of checkpoints are those of
`backward()`. The pass cannot go back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import torch

from ...system.private_torch import current_graph_task_id, next_sequence
from ..graph.engine_run import Gradients
from ..graph.reading import Node
from .stepping import Step, SteppedPass
from .undo import copied

UNKNOWN: Gradients = ()

LOOK_UP_S = 0.2
"""A thread that waits for the engine wakes up this often (seconds). A signal that arrives just
before the thread blocks does not wake it, and Python handles the signal only when it is awake."""


class _Abort(BaseException):
    """Ends `backward()` from a hook. No error, so that no `except Exception` swallows it."""


class BreakMode(SteppedPass):
    """As BackwardStepper, in torch's own single run of the whole graph.

    `retain_graph` is that of `torch.autograd.backward`: without it the engine frees the saved
    tensors of each node that has run, and the graph cannot be used again. Only the last step is
    kept, and `pending` is known for the next node alone (other nodes: ()). The engine is held until
    `close`: call it, or use `with`. Leaves that ran before `close` keep their `.grad`.

    `step` and `run` raise what a node or hook raises. That ends the pass: they raise it at every
    later call, too. An edit that fails leaves the pass before its node.
    """

    own_hooks = 1

    def __init__(
        self,
        root: torch.Tensor | Iterable[torch.Tensor],
        gradient: torch.Tensor | Sequence[torch.Tensor | None] | None = None,
        create_graph: bool = False,
        *,
        retain_graph: bool = False,
        names: Mapping[str, torch.Tensor] | None = None,
        inputs: Sequence[torch.Tensor] | None = None,
    ) -> None:
        super().__init__(root, gradient, create_graph, names=names, inputs=inputs)
        self.retain_graph = retain_graph or create_graph
        self._position = 0
        self._last: Step | None = None
        self._incoming: Gradients = UNKNOWN
        self._grad_before: torch.Tensor | None = None
        self._grads_after: dict[int, torch.Tensor | None] = {}
        self._until: Callable[[Self], bool] = lambda _: True
        self._reached = False  # the engine is held because of `_until`, not for an edit only
        self._replacement: Gradients | None = None
        self._task: int | None = None  # the engine's number of our run; checkpoints start others
        # torch numbers nodes by thread, and runs nodes with higher numbers first. The nodes of a
        # gradient's graph shall have the numbers that they would have in this thread.
        self._sequence = next_sequence()
        self._condition = threading.Condition()  # guards the three flags below
        self._held = self._ended = self._aborted = False
        self._error: BaseException | None = None
        handles = []
        for node in filter(self.runs, self.plan):
            handles.append(node.fn.register_prehook(partial(self._before, node)))
            handles.append(node.fn.register_hook(partial(self._after, node)))
        self._thread = threading.Thread(
            target=self._backward, args=(handles,), name="backward", daemon=True
        )
        self._thread.start()
        self._wait()

    # -- where it stands -------------------------------------------------------------------------

    @property
    def position(self) -> int:
        return self._position

    @property
    def last(self) -> Step | None:
        return self._last

    def step_of(self, node: Node | int) -> Step | None:
        last = self._last
        return last if last is not None and last.node.id == self._id(node) else None

    def pending(self, node: Node | int) -> Gradients:
        following = self.next_node
        is_next = following is not None and following.id == self._id(node)
        return self._incoming if is_next else UNKNOWN

    def grad_before(self, node: Node | int) -> torch.Tensor | None:
        return self._grad_before if self.step_of(node) is not None else None

    def grad_after(self, node: Node | int) -> torch.Tensor | None:
        return self._grads_after.get(self._id(node))

    # -- moving ----------------------------------------------------------------------------------

    def step(self) -> Step | None:
        if self.next_node is None:
            return None
        self._advance(lambda _: True)
        return self._last

    def run(self, until: Callable[[Self], bool] | None = None) -> None:
        """Run to the end, or until `until` returns True. The engine's thread calls `until` between
        nodes."""
        if self.next_node is None:
            return
        self._advance(until or (lambda _: False))
        if self._ended and until is not None:
            until(self)  # the engine's thread does not call it after the last step

    def close(self) -> None:
        """End the pass where it stands, remove its hooks and drop the graph."""
        with self._condition:
            self._aborted = True
            was_held = self._held
            self._held = False
            self._condition.notify_all()
        if was_held or self._ended:
            self._thread.join()
            self._adopt_engine_numbering()
        super().close()
        self._last, self._incoming, self._grad_before = None, UNKNOWN, None
        self._grads_after.clear()

    def _advance(self, until: Callable[[Self], bool]) -> None:
        with self.guard():
            self._wait()
        if self._error is not None:
            raise self._error
        self._until = until
        while True:
            node = self.next_node
            if node is not None and node.id in self._edits:
                self._replacement = self.edited(node, self._incoming)
            with self.guard():  # an interrupt ends this wait, not the engine
                self._resume_engine()
                self._wait()
            if self._ended or self._reached:
                break
        if self._ended:
            self._adopt_engine_numbering()
        if self._error is not None:
            raise self._error

    def _adopt_engine_numbering(self) -> None:
        """Let the nodes made in this thread from now on have higher numbers than those that the
        engine's thread has made."""
        if self.create_graph:
            _skip_sequence_numbers(self._sequence)

    def _resume_engine(self) -> None:
        with self._condition:
            self._held = self._reached = False
            self._condition.notify_all()

    def _wait(self) -> None:
        """Wait until the engine is held or has ended."""
        with self._condition:
            self._condition.notify_all()  # in case `_resume_engine` was interrupted before it
            while not (self._held or self._ended):
                self._condition.wait(LOOK_UP_S)

    # -- in the engine's thread ------------------------------------------------------------------

    def _backward(self, handles: list[Any]) -> None:
        roots = [root for root, _ in self._start]
        gradients = [gradient for _, gradient in self._start]
        try:
            if self.create_graph:
                _skip_sequence_numbers(self._sequence)
            with torch.autograd.set_multithreading_enabled(False):  # all nodes in this thread
                self._run_engine(roots, gradients)
                self._pass_captures()
        except _Abort:
            pass
        except BaseException as error:  # `step` and `run` raise it in the caller's thread
            self._error = error
        finally:
            for handle in handles:
                handle.remove()
            self._sequence = next_sequence()
            with self._condition:
                self._ended = True
                self._held = False
                self._condition.notify_all()

    def _run_engine(self, roots: list[Any], gradients: list[Any]) -> None:
        options: Any = {"retain_graph": self.retain_graph, "create_graph": self.create_graph}
        if self.inputs is None:
            torch.autograd.backward(roots, gradients, **options)
        elif self._captures:
            self.captured = list(
                torch.autograd.grad(roots, self.inputs, gradients, allow_unused=True, **options)
            )

    def _pass_captures(self) -> None:
        """Count the next nodes of the plan that are only captured: the engine calls no hook at
        them."""
        while (node := self.next_node) is not None and not self.runs(node):
            self._position += 1
            self._count_step(node)

    def _before(self, node: Node, grads: Gradients) -> Gradients | None:
        task = current_graph_task_id()
        if self._task is None:
            self._task = task
        if task != self._task:
            return None
        if self._aborted:
            raise _Abort
        self._pass_captures()
        if self.next_node is not node:
            raise RuntimeError(f"the engine took {node.name} before its turn in the plan")
        self._incoming = grads
        self._reached = self._until(self)
        self._replacement = None
        if self._reached or node.id in self._edits:
            with self._condition:
                self._held = True
                self._condition.notify_all()
                while self._held:
                    self._condition.wait()
        if self._aborted:
            raise _Abort
        variable = node.variable
        self._grad_before = None if variable is None else copied(variable.grad)
        return self._replacement

    def _after(self, node: Node, grad_inputs: Gradients, grad_outputs: Gradients) -> None:
        if current_graph_task_id() != self._task:
            return
        outgoing = () if node.is_leaf else tuple(grad_inputs)
        if node.variable is not None:
            self._grads_after[node.id] = copied(node.variable.grad)
        self._incoming = UNKNOWN
        self._last = Step(node, tuple(grad_outputs), outgoing, self._position + 1)
        self._position += 1
        self._count_step(node)


def _skip_sequence_numbers(number: int) -> None:
    """Let this thread's next node have at least this number. Each number skipped takes some
    2 us."""
    t = torch.zeros((), requires_grad=True)
    with torch.enable_grad():
        while next_sequence() < number:
            t.view_as(t)
