"""Answers about the trace: code, a batch or a node's rule runs once; then the trace is stepped
through, forward or back."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ..autograd.graph.engine_run import run_node
from ..autograd.graph.snapshot import title
from ..autograd.trace.roots import root_over
from ..autograd.trace.trace import Trace
from ..console.variables import list_variables
from ..lab import Lab
from ..protocol import (
    ErrorReport,
    ExampleSnapshot,
    MoveTraceCommand,
    Snapshot,
    StartTraceCommand,
    TraceRootCommand,
    TraceRootSnapshot,
)
from ..recording.recorder import Recorder
from ..recording.recording import Recording
from ..recording.statement_counts import StatementCounts
from ..system.errors import LabError, error_report
from .console import EXAMPLE, cell_error
from .rules import HELD

if TYPE_CHECKING:
    from ..console.namespace import Namespace
    from ..models.forward import ForwardPass


_NO_ROOT = (
    "No variable leads to this node: its result is gone, or needs no gradient. Assign its result"
    " to a name, and trace again."
)


def start_trace(lab: Lab, command: StartTraceCommand) -> Iterator[Snapshot | None]:
    """Run code, the batch or a rule, and answer with TraceSnapshots and a TraceStepSnapshot.

    After code the variables follow too, the console's or the example's. Raises LabError if there is
    no forward pass to take a batch from, or the node's rule cannot run.
    """
    lab.trace.drop()
    if command.node >= 0:
        trace = _of_rule(lab, command.node)
    elif command.source.strip():
        console = lab.console
        namespace = console.begin_example("trace") if command.example else console.namespace
        trace = _of_code(lab, command, namespace)
        lab.trace.namespace = namespace
    else:
        trace = yield from _of_batch(lab)
    lab.trace.current = trace
    if trace.source and lab.trace.namespace is not None:
        told = list_variables(lab.trace.namespace, lab.control)
        is_example = command.example
        yield ExampleSnapshot(variables=told.variables, error=trace.error) if is_example else told
    yield from trace.snapshots()
    yield trace.step_snapshot()


def move_trace(lab: Lab, command: MoveTraceCommand) -> Iterator[Snapshot]:
    """Answer with a TraceStepSnapshot. Raises LabError if there is no trace, and as `Trace.go`
    does."""
    trace = lab.trace.current
    if trace is None:
        raise LabError("Nothing has been traced yet.", hint="Trace some code, or the batch.")
    trace.go(command.move, command.target)
    yield trace.step_snapshot()


def find_root(lab: Lab, command: TraceRootCommand) -> Iterator[Snapshot]:
    """Answer with a TraceRootSnapshot. Raises LabError if there is no trace, or no such call in
    it."""
    trace = lab.trace.current
    calls = [] if trace is None else trace.recording.calls
    if not 0 <= command.position < len(calls):
        raise LabError(
            f"There is no call {command.position} in the trace.",
            hint=f"The trace has {len(calls):,} calls.",
        )
    call = calls[command.position]
    namespace = lab.trace.namespace or lab.console.namespace
    root = root_over(call, namespace.reached().tensors())
    yield TraceRootSnapshot(position=command.position, root=root, note="" if root else _NO_ROOT)


def _of_code(lab: Lab, command: StartTraceCommand, namespace: Namespace) -> Trace:
    output, source = lab.output(), command.source
    filename = EXAMPLE if command.example else "<cell>"
    recordings: list[Recording] = []

    def recorder(**options: Any) -> Recorder:
        made = Recorder(counts=StatementCounts(), **options)
        recordings.append(made.recording)
        return made

    with namespace.recorded_by(recorder):
        error, cell = namespace.run(source, filename, output, lab.control)
    recording = recordings[0] if recordings else Recording()
    named = list(namespace.reached().tensors().items())
    report = cell_error(error, cell, lab.control)
    return Trace(recording, source, cell, report, lambda t: _name_among(t, named))


def _of_rule(lab: Lab, node_id: int) -> Trace:
    backward = lab.backward.require()
    step = backward.control.step_of(node_id)
    if step.node.is_leaf:
        raise LabError(
            "Nothing runs inside a leaf: the gradient is added to its .grad.",
            hint="Choose a node that computes.",
        )
    if backward.real_engine:
        raise LabError(HELD)
    incoming = tuple(None if g is None else g.detach().clone() for g in step.incoming)
    recorder = Recorder(counts=StatementCounts())
    report: ErrorReport | None = None
    try:
        with lab.users_code(), recorder:
            run_node(step.node.fn, incoming, edit=lambda _: incoming)
    except (Exception, KeyboardInterrupt) as error:  # the rule is the user's own code
        report = error_report(error)
    gradients = [(f"g{i}" if len(incoming) > 1 else "g", g) for i, g in enumerate(incoming)]
    named = [(name, g) for name, g in gradients if g is not None]
    trace = Trace(
        recorder.recording,
        error=report,
        name_of=lambda t: _name_among(t, named),
        rule=title(step.node) if step.node.label else step.node.name,
    )
    trace.go("step")
    return trace


def _of_batch(lab: Lab) -> Generator[None, None, Trace]:
    shown = lab.models.forward
    if shown is None:
        raise LabError(
            "There is no batch to trace.", hint="Start a forward pass, or give code to run."
        )
    forward = shown.again()
    report: ErrorReport | None = None
    try:
        while not forward.done:
            forward.step()
            yield None
    except LabError as error:
        report = error_report(error)
    named = [*forward.state.state_dict(keep_vars=True).items(), ("x", forward.x), ("y", forward.y)]
    return Trace(
        forward.recording,
        error=report,
        name_of=lambda t: _name_among(t, named),
        node_of=lambda sequence: _same_node(sequence, forward, lab.models.forward),
    )


def _same_node(sequence: int, run: ForwardPass, shown: ForwardPass | None) -> int:
    """The sequence number in `shown` of a node of `run`, another run of the same pass; -1 if
    `shown` has not run that far."""
    if shown is None or shown.order != run.order:
        return -1
    for block, (first, end) in run.sequence_ranges.items():
        if first <= sequence < end:
            there = shown.sequence_ranges.get(block, (0, 0))
            is_same = there[1] - there[0] == end - first
            return there[0] + sequence - first if is_same else -1
    return -1


def _name_among(tensor: torch.Tensor, named: Sequence[tuple[str, torch.Tensor]]) -> str:
    return next((name for name, t in named if t is tensor), "")
