"""A backward pass of the model or of the console, and its snapshots for the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor

from ...protocol import (
    BackwardSnapshot,
    GraphSnapshot,
    NextNode,
    NodeNumbers,
    NodeStep,
    PendingGradient,
)
from ...recording.writes import version_of
from ...system.errors import LabError
from ...tensors.summary import shown_values, summarise
from ..formulas import words_of
from ..graph.engine_run import Gradients
from ..graph.forward_values import ForwardValues
from ..graph.hooks import hooks_on
from ..graph.reading import Node
from ..graph.saved_for_backward import SavedForBackward
from ..graph.snapshot import graph_snapshots, title
from ..graph.stale import stale_tensors
from .breakpoints import Breakpoints
from .gradient_list import GradientList
from .held_engine import BreakMode
from .numbers import node_numbers
from .pass_control import PassControl
from .release import released_bytes
from .roots import Subject
from .stepper import BackwardStepper
from .stepping import Step, SteppedPass

MAX_PENDING = 24
"""Nodes whose pending gradients are in a snapshot."""

MAX_NUMBERED = 1_000
"""Nodes whose numbers are in a snapshot."""

MakePassControl = Callable[..., PassControl]
"""Makes a PassControl from `make`, which makes a SteppedPass, and `modules`."""


class BackwardPass:
    """Steps backward through the graph under a subject's roots.

    A pass of the model first sets every `.grad` to None, unless `accumulate`. A pass from a root in
    the console leaves `.grad` as it is. Raises LabError when a gradient does not fit its root.
    """

    def __init__(
        self,
        subject: Subject,
        debug: MakePassControl | None = None,
        *,
        real_engine: bool = False,
        retain_graph: bool = False,
        create_graph: bool = False,
        accumulate: bool = False,
        inputs: Sequence[str] = (),
    ) -> None:
        self.subject = subject
        self.real_engine, self.create_graph = real_engine, create_graph
        self.retain_graph = retain_graph or not real_engine
        self.numbered: Sequence[int] = ()
        """Nodes whose numbers each snapshot has."""
        self.inputs = {name: subject.input(name) for name in inputs}
        self.parameters = self.inputs or subject.shown
        self._has_begun = False
        self._versions = {name: version_of(t) for name, t in subject.names.items()}
        self._clears = subject.starts_empty and not accumulate and not inputs
        self._zeroed = False
        debug = debug or partial(PassControl, breakpoints=Breakpoints())
        self.control = debug(self._begin, modules={})
        graph, provenance = self.stepper.graph, subject.provenance
        self._leaves = {id(node.variable): node for node in self.stepper.plan if node.is_leaf}
        self._calls = provenance.calls(graph.nodes)
        modules = enumerate(map(provenance.module, graph.nodes, self._calls))
        self.control.modules.update({node: module for node, module in modules if module})
        self._kept = SavedForBackward(graph.nodes)
        self._freed = released_bytes(graph, self.stepper.plan, self._kept)
        self._gradients = GradientList(
            subject, graph, self.parameters, self.shown_gradient, only=bool(self.inputs)
        )
        self._values = ForwardValues(graph, subject.held(), provenance.chain)

    def _begin(self) -> SteppedPass:
        """Make a pass that stands before its first node. Only the first one clears `.grad`, and
        only once it has been made: a pass that cannot start changes nothing."""
        subject, inputs = self.subject, list(self.inputs.values()) or None
        make = partial(BackwardStepper, watch=subject.retained.values())
        if self.real_engine:
            make = partial(BreakMode, retain_graph=self.retain_graph)
        start = subject.roots, subject.gradient, self.create_graph
        try:
            stepped = make(*start, names=subject.names, inputs=inputs)
        except ValueError as error:
            raise LabError(str(error), hint="Give a gradient that fits its root.") from error
        subject.name_nodes(stepped.graph)
        self._zeroed = False
        if self._clears and not self._has_begun:
            for parameter in self.parameters.values():
                parameter.grad = None
        self.gradients_before = {
            name: p.grad.detach().clone() for name, p in subject.shown.items() if p.grad is not None
        }
        self._has_begun = True
        return stepped

    @property
    def is_zeroed(self) -> bool:
        """Whether zero_grad has emptied `.grad` since nodes of this pass have run."""
        return self._zeroed

    @property
    def graph_is_freed(self) -> bool:
        """Whether the real engine has freed what another pass over the graph would need."""
        return not self.retain_graph and self.stepper.position > 0

    @property
    def stepper(self) -> SteppedPass:
        return self.control.stepped

    def take_back(self) -> None:
        """Undo all steps, and what they have added to `.grad`."""
        if isinstance(self.stepper, BackwardStepper):
            self.stepper.reset()

    def close(self) -> None:
        """Drop the graph and the recorded gradients; nothing is asked of the pass afterwards. Its
        parts refer to it: without them, what it held is free at once."""
        self.control.close()
        vars(self).clear()

    # -- snapshots for the window ----------------------------------------------------------------

    def graph_snapshots(self) -> list[GraphSnapshot]:
        """The graph, in parts."""
        graph, subject = self.stepper.graph, self.subject
        return graph_snapshots(
            graph,
            self.stepper.plan,
            subject.provenance,
            subject.blocks(graph),
            subject.root,
            stale=stale_tensors(self._kept.written, subject.last_write),
            words_of=words_of,
            subject_path=subject.path,
            kept=self._kept,
            calls=self._calls,
        )

    def snapshot(self) -> BackwardSnapshot:
        """Where the pass stands, the last step in numbers, and every parameter's `.grad`."""
        control, stepped = self.control, self.stepper
        last, position = stepped.last, stepped.position
        waiting = sorted(stepped.arrived, key=stepped.step_position)
        return BackwardSnapshot(
            position=position,
            step=None if last is None else self.node_step(last),
            gradients=self._gradients.rows(self._all_came),
            gradients_more=self._gradients.more,
            next=self._next(),
            stopped_by=control.stopped_by,
            breakpoints=control.breakpoints.states_in(stepped.plan),
            edits=control.edits,
            pending=tuple(map(self._pending, waiting[:MAX_PENDING])),
            pending_more=max(0, len(waiting) - MAX_PENDING),
            freed_bytes=self._freed[position - 1] if position else 0,
            saved_bytes=self._freed[-1] if self._freed else 0,
            pass_number=control.pass_number,
            real_engine=self.real_engine,
            retain_graph=self.retain_graph,
            create_graph=stepped.create_graph,
            inputs=tuple(self.inputs),
            numbers=self.numbers(self.numbered),
        )

    def numbers(self, nodes: Sequence[int]) -> tuple[NodeNumbers, ...]:
        """The numbers of these nodes on the graph's picture."""
        shown = nodes[:MAX_NUMBERED]
        return tuple(node_numbers(self.stepper, self._values, shown, self._grad_of))

    def gradient_of(self, name: str) -> Tensor | None:
        """The gradient of one of `parameters`: its `.grad`, or the captured gradient of an input.
        Raises KeyError or ValueError for an unknown name."""
        if not self.inputs:
            return self.parameters[name].grad
        return self.stepper.captured[list(self.inputs).index(name)]

    def shown_gradient(self, name: str) -> Tensor | None:
        """As `gradient_of`, but of a leaf as `_grad_of`."""
        node = self._leaves.get(id(self.parameters[name]))
        return self.gradient_of(name) if self.inputs or node is None else self._grad_of(node)

    def _grad_of(self, node: Node) -> Tensor | None:
        """The `.grad` of a leaf, None for other nodes. At the end of the pass it is what the pass
        has left there: a run of Train or an optimizer may have changed that since."""
        variable = node.variable
        if variable is None:
            return None
        is_kept = self._all_came and id(variable) in self._leaves
        after = self.stepper.grad_after(node) if is_kept else None
        return variable.grad if after is None else after

    def has_changed(self, name: str) -> bool:
        """Whether a tensor of the pass has been written to since the pass was made."""
        tensor = self.subject.names.get(name)
        return tensor is not None and self._versions[name] != version_of(tensor)

    @property
    def listed(self) -> dict[str, Tensor]:
        """`parameters`, then those that get no gradient."""
        return self._gradients.tensors

    @property
    def _all_came(self) -> bool:
        return self.stepper.next_node is None and not self._zeroed

    def missing_words(self, name: str) -> str:
        """Why a row of the gradients gets none, and what to write instead; empty if it has one, or
        one can come."""
        return self._gradients.missing_words(name, self._all_came)

    def _pending(self, node_id: int) -> PendingGradient:
        return PendingGradient(
            node=node_id,
            arrived=self.stepper.arrived[node_id],
            expected=self.stepper.expected[node_id],
            gradients=tuple(
                None if g is None else summarise(g) for g in self.stepper.pending(node_id)
            ),
        )

    def _next(self) -> NextNode | None:
        node = self.stepper.next_node
        if node is None:
            return None
        problem = ""
        try:
            edited = self.control.preview()
        except LabError as error:
            edited, problem = (), str(error)
        arrived = self.stepper.pending(node)
        shown = shown_values(
            [*incoming_labels(arrived), *incoming_labels(edited, "after the edit")]
        )
        return NextNode(
            node=node.id,
            incoming=shown[: len(arrived)],
            edited=shown[len(arrived) :],
            problem=problem,
            hooks=self._hooks(node),
        )

    def node_step(self, step: Step) -> NodeStep:
        """A step as plain data."""
        stepper, grads = self.stepper, []
        if step.node.variable is not None and stepper.runs(step.node):
            before, after = stepper.grad_before(step.node), stepper.grad_after(step.node)
            grads = [(".grad before", before), (".grad after", after)]
        shown = shown_values([*incoming_labels(step.incoming), *self._outgoing(step), *grads])
        count, end = len(step.incoming), len(step.incoming) + len(step.outgoing)
        return NodeStep(
            node=step.node.id,
            incoming=shown[:count],
            outgoing=shown[count:end],
            grad_before=shown[end] if grads else None,
            grad_after=shown[end + 1] if grads else None,
            hooks=self._hooks(step.node),
            edited=self.control.is_edited(step.node),
        )

    def _hooks(self, node: Node) -> str:
        own = self.stepper.own_hooks if self.stepper.runs(node) else 0
        return hooks_on(node, self.subject.results_of(node).values(), own)

    def zero_gradients(self, set_to_none: bool) -> None:
        """As `module.zero_grad(set_to_none)`. Going back does not undo this, except that going back
        over a leaf restores the `.grad` that it had before it ran."""
        self._zeroed = self.stepper.position > 0
        for parameter in self.subject.shown.values():
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach().zero_()

    def _outgoing(self, step: Step) -> list[tuple[str, Tensor | None]]:
        if not self.stepper.runs(step.node):
            return []  # the gradient was only captured
        graph = self.stepper.graph
        labels = []
        for fn, _ in step.node.fn.next_functions:
            labels.append("to nothing" if fn is None else f"to {title(graph.node_of(fn))}")
        return list(zip(labels, step.outgoing, strict=True))


def incoming_labels(
    gradients: Gradients, words: str = "gradient in"
) -> list[tuple[str, Tensor | None]]:
    if len(gradients) == 1:
        return [(words, gradients[0])]
    return [(f"{words}, output {i}", gradient) for i, gradient in enumerate(gradients)]
