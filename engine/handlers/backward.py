"""Answers about the backward pass, and about single values of the forward and the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from traceback import extract_tb

import torch
from torch import Tensor

from ..autograd.backward.backward_pass import BackwardPass
from ..autograd.backward.comparing import compare
from ..autograd.backward.roots import ConsoleSubject, GradientSubject, ModelSubject, Subject
from ..autograd.backward.step_roots import StepSubject, module_names
from ..autograd.graph.reading import Node, read_graph
from ..autograd.graph.snapshot import graph_snapshots
from ..lab import Lab
from ..lab.pass_control import namespace_of, pass_control_maker
from ..protocol import (
    CompareGradientsCommand,
    ForwardGraphSnapshot,
    GraphNumbersCommand,
    GraphNumbersSnapshot,
    InspectCommand,
    MoveBackwardCommand,
    ParameterUpdate,
    ReadForwardGraphCommand,
    Snapshot,
    StartBackwardCommand,
    Value,
    ValueSnapshot,
)
from ..recording.compiled import uncompiled
from ..recording.recorder import Recorder
from ..restoring.module_kept import module_kept
from ..system.errors import LabError
from ..system.user_files import is_user_file
from ..tensors.error_help import explain_error
from ..tensors.summary import shown_groups, shown_values
from ..training.optimization.first_update import first_update
from .subjects.find import subject_of
from .subjects.subject import Subject as WorkSubject
from .subjects.subject import first_batch


def start_backward(lab: Lab, command: StartBackwardCommand) -> Iterator[Snapshot | None]:
    """Start a backward pass: answer with GraphSnapshots and a BackwardSnapshot.

    Without a root, the model's forward pass is finished first, and a ForwardSnapshot says so; of a
    subject of code, one step runs. Raises LabError as ForwardPass, the subjects and BackwardPass
    do, and what the user's code raises.
    """
    subject: Subject
    lab.backward.check_start(command.real_engine)
    if command.of:
        subject = _gradient_subject(lab, command)
        lab.backward.close()
    elif command.root.strip():
        namespace = lab.console.of(command.example)
        subject = ConsoleSubject(namespace, lab.control, command.root, command.gradient)
        lab.backward.close()
        lab.backward.namespace = namespace
    elif (forward := (found := subject_of(lab, command)).forward()) is None:
        subject = _step_subject(found, command.batch)
        lab.backward.close()
        lab.backward.namespace = lab.console.namespace
    else:
        before = lab.backward.under_way
        if before is not None and not before.subject.root and before.graph_is_freed:
            forward.reset()
        lab.backward.close()
        if not forward.done:
            while not forward.done:
                forward.step()
                yield None
            yield forward.snapshot()
        subject = ModelSubject(forward)
        lab.backward.namespace = lab.console.namespace
    backward = lab.backward.under_way = BackwardPass(
        subject,
        pass_control_maker(lab, subject.defaults),
        real_engine=command.real_engine,
        retain_graph=command.retain_graph,
        create_graph=command.create_graph,
        accumulate=command.accumulate,
        inputs=command.inputs,
    )
    yield from backward.graph_snapshots()
    yield backward.snapshot()


def read_forward_graph(lab: Lab, command: ReadForwardGraphCommand) -> Iterator[Snapshot]:
    """Answer with ForwardGraphSnapshots. Raises LabError if there is no such subject or data, and
    for a loss without a graph, and what the user's code raises."""
    subject = _step_subject(subject_of(lab, command))
    graph = read_graph(subject.roots, names=subject.names)
    for part in graph_snapshots(graph, (), subject.provenance, root=subject.root):
        yield ForwardGraphSnapshot(graph=part)


def _step_subject(subject: WorkSubject, batch_number: int = 0) -> StepSubject:
    """The loss of one step of the subject on a batch, as a run would begin with it. The module's
    buffers and mode, and the random generators, are as before."""
    objective = subject.objective()
    recorder = Recorder(modules=module_names(subject.module))
    with subject.running(objective.generators):
        batch = first_batch(objective.batches(0, batch_number))
        with module_kept(subject.module), torch.enable_grad(), uncompiled(), recorder:
            loss = objective.outcome(batch).loss
    return StepSubject(subject.module, loss, recorder.recording)


def move_backward(lab: Lab, command: MoveBackwardCommand) -> Iterator[Snapshot]:
    """Move and answer with a BackwardSnapshot. A stop signal leaves the pass where it is.

    Raises LabError for a move that is impossible, and for an error that a node or its hook raises.
    """
    backward = lab.backward.require()
    if command.move == "again":
        lab.backward.check_again()
    try:
        backward.control.go(command.move, command.target)
    except (Exception, KeyboardInterrupt) as error:
        yield backward.snapshot()  # the nodes before the failing one have run
        if isinstance(error, LabError | KeyboardInterrupt):
            raise
        raise _node_error(backward.stepper.next_node, error) from error
    yield backward.snapshot()


def compare_gradients(lab: Lab, command: CompareGradientsCommand) -> Iterator[Snapshot]:
    """Answer with a ComparisonSnapshot. Raises LabError before the end of the backward pass."""
    yield compare(lab.backward.require())


def graph_numbers(lab: Lab, command: GraphNumbersCommand) -> Iterator[Snapshot]:
    """Answer with a GraphNumbersSnapshot; without a pass, with nothing."""
    backward = lab.backward.under_way
    if backward is not None:
        backward.numbered = command.nodes
        yield GraphNumbersSnapshot(
            position=backward.stepper.position, numbers=backward.numbers(command.nodes)
        )


def inspect_value(lab: Lab, command: InspectCommand) -> Iterator[Snapshot]:
    """Answer with a ValueSnapshot. Raises LabError when there is no such value (yet)."""
    if command.of == "activation":
        yield _activation(lab, command.key)
        return
    find = {"parameter": _parameter, "gradient": _gradient}
    backward = lab.backward.under_way
    values = find[command.of](lab, command.key)
    yield ValueSnapshot(
        of=command.of,
        key=command.key,
        values=tuple(v for v in values if v is not None),
        update=_update(lab, command),
        missing="" if backward is None else backward.missing_words(command.key),
    )


def _node_error(node: Node | None, error: Exception) -> LabError:
    """The error that a node raised, in words, with the line of the user's code that raised it."""
    lines = [f for f in extract_tb(error.__traceback__) if is_user_file(f.filename)]
    place = f" in line {lines[-1].lineno} of {lines[-1].filename.strip('<>')}" if lines else ""
    kind = "" if type(error) is RuntimeError else f"{type(error).__name__}: "
    who = "The pass" if node is None else f"{node.name}{f' of {node.label}' if node.label else ''}"
    return LabError(
        f"{who} fails{place}: {kind}{error}",
        hint=explain_error(error)
        or "Fix what it uses and step again, or compute the root again and restart.",
    )


def _gradient_subject(lab: Lab, command: StartBackwardCommand) -> GradientSubject:
    backward = lab.backward.require()
    if command.of not in backward.parameters:
        raise LabError(
            f"The pass under way has no gradient for `{command.of}`.",
            hint="Choose a row of the gradients.",
        )
    value = None
    if command.gradient.strip():
        value = namespace_of(lab).evaluate(command.gradient, lab.control)
    gradient = backward.gradient_of(command.of)
    return GradientSubject(backward.subject, command.of, gradient, value, command.gradient.strip())


# -- looking -----------------------------------------------------------------------------------


def _activation(lab: Lab, block_id: str) -> ValueSnapshot:
    forward = lab.models.require_forward()
    if block_id not in forward.values:
        raise LabError(
            "This block has not run in the current pass.", hint="Step forward until it has."
        )
    outputs, inputs, weights = shown_groups(
        forward.outputs_of(block_id), forward.inputs_of(block_id), forward.weights_of(block_id)
    )
    return ValueSnapshot(
        of="activation", key=block_id, values=outputs, inputs=inputs, weights=weights
    )


def _parameter(lab: Lab, name: str) -> tuple[Value | None, ...]:
    return shown_values([(name, _parameters(lab)[name])])


def _gradient(lab: Lab, key: str) -> tuple[Value | None, ...]:
    if key.isdecimal():
        backward = lab.backward.require()
        step = backward.control.step_of(int(key))
        shown = backward.node_step(step)
        return (*shown.incoming, *shown.outgoing)
    backward = lab.backward.under_way
    if backward is not None and key in backward.parameters:
        gradient = backward.shown_gradient(key)
    else:
        gradient = _parameters(lab)[key].grad
    if gradient is None:
        raise LabError(f"{key} has no gradient yet.", hint="Step backward until its leaf has run.")
    return shown_values([(f"{key}.grad", gradient)])


def _update(lab: Lab, command: InspectCommand) -> ParameterUpdate | None:
    """The update that the optimizer would make to the parameter whose gradient is shown; None if
    that has changed since the pass."""
    if command.of != "gradient" or not command.optimizer or command.key.isdecimal():
        return None
    backward = lab.backward.under_way
    if backward is not None and backward.has_changed(command.key):
        return None
    parameter = _parameters(lab)[command.key]
    gradient = parameter.grad
    if gradient is None:  # torch.autograd.grad() sets no .grad, so no optimizer would see it
        return None
    return first_update(parameter, gradient, command.optimizer, command.optimizer_params)


class _NamedParameters(dict[str, Tensor]):
    def __missing__(self, name: str) -> Tensor:
        raise LabError(
            f"The model has no parameter {name!r}.",
            hint=f"It has: {', '.join(self)}." if self else "It has none at all.",
        )


def _parameters(lab: Lab) -> _NamedParameters:
    """The parameters of the current pass, or of the live model if there is no pass."""
    backward = lab.backward.under_way
    if backward is not None and backward.subject.root:
        return _NamedParameters(backward.listed)
    if lab.models.forward is not None:
        return _NamedParameters(lab.models.forward.state.named_parameters())
    if lab.models.live is not None:
        return _NamedParameters(lab.models.live.module.named_parameters())
    raise LabError("There is no model yet.", hint="Start a forward pass.")
