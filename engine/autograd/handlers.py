"""Answers the window's commands on the backward pass, and on single values of either pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch import Tensor

from ..errors import LabError
from ..models.forward import ForwardPass
from ..protocol import (
    CompareGradientsCommand,
    InspectCommand,
    MoveBackwardCommand,
    Snapshot,
    StartBackwardCommand,
    Value,
    ValueSnapshot,
)
from .backward_pass import BackwardPass, shown_values
from .stepper import BackwardStepper

if TYPE_CHECKING:
    from ..lab import Lab


def start_backward(lab: Lab, command: StartBackwardCommand) -> Iterator[Snapshot | None]:
    """Finish the forward pass (then a ForwardSnapshot says so), answer with a GraphSnapshot and
    a BackwardSnapshot. Raises LabError as ForwardPass and BackwardPass do."""
    forward = _forward(lab)
    if not forward.done:
        while not forward.done:
            forward.step()
            yield None
        yield forward.snapshot()
    if lab.backward is not None:
        lab.backward.close()
        lab.backward = None
    lab.backward = BackwardPass(forward)
    yield lab.backward.graph_snapshot()
    yield lab.backward.snapshot()


def move_backward(lab: Lab, command: MoveBackwardCommand) -> Iterator[Snapshot | None]:
    """Move and answer with a BackwardSnapshot. A stop signal leaves the pass where it is."""
    backward = _backward(lab)
    stepper = backward.stepper
    match command.move:
        case "step":
            stepper.step()
        case "back":
            stepper.back()
        case "reset":
            stepper.reset()
        case "end":
            yield from _run_until(lab, stepper, len(stepper.plan))
        case "to":
            yield from _run_until(lab, stepper, _position_of(stepper, command.target))
    yield backward.snapshot()


def compare_gradients(lab: Lab, command: CompareGradientsCommand) -> Iterator[Snapshot]:
    """Answer with a ComparisonSnapshot. Raises LabError before the end of the backward pass."""
    yield _backward(lab).compare()


def inspect_value(lab: Lab, command: InspectCommand) -> Iterator[Snapshot]:
    """Answer with a ValueSnapshot. Raises LabError when there is no such value (yet)."""
    find = {"activation": _activation, "parameter": _parameter, "gradient": _gradient}
    values = find[command.of](lab, command.key)
    yield ValueSnapshot(
        of=command.of, key=command.key, values=tuple(v for v in values if v is not None)
    )


# -- moving ------------------------------------------------------------------------------------


def _run_until(lab: Lab, stepper: BackwardStepper, position: int) -> Iterator[None]:
    while stepper.position < position and not lab.control.stop.is_set():
        stepper.step()
        yield None
    while stepper.position > position:
        stepper.back()


def _position_of(stepper: BackwardStepper, node_id: int) -> int:
    for place, node in enumerate(stepper.plan):
        if node.id == node_id:
            return place + 1
    raise LabError(
        f"There is no node {node_id} in the graph.", hint="Choose a node of the graph shown."
    )


def _forward(lab: Lab) -> ForwardPass:
    if lab.forward is None:
        raise LabError("There is no forward pass yet.", hint="Start one with a batch of the data.")
    return lab.forward


def _backward(lab: Lab) -> BackwardPass:
    if lab.backward is None:
        raise LabError(
            "No backward pass is under way on this forward pass.",
            hint="Start one: it runs the forward pass to the loss if need be.",
        )
    return lab.backward


# -- looking -----------------------------------------------------------------------------------


def _activation(lab: Lab, block_id: str) -> tuple[Value | None, ...]:
    forward = _forward(lab)
    if block_id not in forward.values:
        raise LabError(
            "This block has not run in the current pass.", hint="Step forward until it has."
        )
    return shown_values(list(zip(forward.labels(block_id), forward.values[block_id], strict=True)))


def _parameter(lab: Lab, name: str) -> tuple[Value | None, ...]:
    return shown_values([(name, _parameters(lab)[name])])


def _gradient(lab: Lab, key: str) -> tuple[Value | None, ...]:
    if key.isdecimal():
        backward = _backward(lab)
        stepper = backward.stepper
        _position_of(stepper, int(key))
        step = stepper.step_of(int(key))
        if step is None:
            raise LabError("This node has not run yet.", hint="Step backward until it has.")
        shown = backward.node_step(step)
        return (*shown.incoming, *shown.outgoing)
    gradient = _parameters(lab)[key].grad
    if gradient is None:
        raise LabError(f"{key} has no gradient yet.", hint="Step backward until its leaf has run.")
    return shown_values([(f"{key}.grad", gradient)])


class _Named(dict[str, Tensor]):
    def __missing__(self, name: str) -> Tensor:
        raise LabError(
            f"The model has no parameter {name!r}.",
            hint=f"It has: {', '.join(self)}." if self else "It has none at all.",
        )


def _parameters(lab: Lab) -> _Named:
    """Those of the current pass, or of the live model while there is none."""
    if lab.forward is not None:
        return _Named(lab.forward.module.named_parameters())
    if lab.live is not None:
        return _Named(lab.live.module.named_parameters())
    raise LabError("There is no model yet.", hint="Start a forward pass.")
