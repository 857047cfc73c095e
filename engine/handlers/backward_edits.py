"""Answers the window's commands of the backward debugger: breakpoints, edits, gradients, script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..autograd.backward.backward_pass import BackwardPass, MakeDebugger
from ..autograd.backward.breakpoints import Breakpoints
from ..autograd.backward.debugger import Debugger
from ..console.namespace import namespace_of
from ..errors import LabError
from ..exporting.weights import write
from ..protocol import (
    BackwardScriptSnapshot,
    EditGradientCommand,
    ExportBackwardCommand,
    SetBreakpointsCommand,
    Snapshot,
    UneditGradientCommand,
    ZeroGradientsCommand,
)

if TYPE_CHECKING:
    from ..lab import Lab


def set_breakpoints(lab: Lab, command: SetBreakpointsCommand) -> Iterator[Snapshot]:
    """Answer with a BackwardSnapshot if a pass is under way."""
    breakpoints_of(lab).replace(command.breakpoints)
    if lab.backward is not None:
        yield lab.backward.snapshot()


def edit_gradient(lab: Lab, command: EditGradientCommand) -> Iterator[Snapshot]:
    """Answer with a BackwardSnapshot. Raises LabError as `Debugger.edit` does."""
    backward = backward_of(lab)
    backward.debugger.edit(command.node, command.expression, command.output)
    yield backward.snapshot()


def unedit_gradient(lab: Lab, command: UneditGradientCommand) -> Iterator[Snapshot]:
    """Answer with a BackwardSnapshot. Raises LabError when the node has run already."""
    backward = backward_of(lab)
    backward.debugger.unedit(command.node)
    yield backward.snapshot()


def zero_gradients(lab: Lab, command: ZeroGradientsCommand) -> Iterator[Snapshot]:
    """Answer with a BackwardSnapshot."""
    backward = backward_of(lab)
    backward.zero_gradients(command.set_to_none)
    yield backward.snapshot()


def export_backward(lab: Lab, command: ExportBackwardCommand) -> Iterator[Snapshot]:
    """Answer with a BackwardScriptSnapshot; with a path write the script there, and beside it
    what it loads. Raises LabError when it cannot be written."""
    text, data = backward_of(lab).script()
    if not command.path:
        yield BackwardScriptSnapshot(text=text)
        return
    path = Path(command.path).expanduser()
    data_path = path.with_suffix(".pt") if data else None
    if data_path == path:
        raise LabError(
            f"{path.name} is what the script loads.", hint="Give it a name that ends with .py."
        )
    write(path, text.encode())
    if data_path is not None:
        write(data_path, data)
    yield BackwardScriptSnapshot(text=text, path=str(path), data_path=str(data_path or ""))


def backward_of(lab: Lab) -> BackwardPass:
    """The pass under way. Raises LabError when there is none."""
    if lab.backward is None:
        raise LabError(
            "No backward pass is under way on this forward pass.",
            hint="Start one: it runs the forward pass to the loss if need be.",
        )
    return lab.backward


def breakpoints_of(lab: Lab) -> Breakpoints:
    """The breakpoints, which outlive a pass."""
    if lab.breakpoints is None:
        lab.breakpoints = Breakpoints()
    return lab.breakpoints


def debugging(
    lab: Lab, defaults: Callable[[], AbstractContextManager[None]] = nullcontext
) -> MakeDebugger:
    """How a debugger is made in this lab: edits see the console's variables, and an
    InterruptSignal ends them. `defaults` is entered around code of the user's."""

    @contextmanager
    def guard() -> Iterator[None]:
        with defaults(), lab.control.user_code():
            yield

    return partial(
        Debugger,
        breakpoints=breakpoints_of(lab),
        variables=namespace_of(lab).variables,
        guard=guard,
        shield=lab.control.own_code,
        stop=lab.control.stop.is_set,
    )
