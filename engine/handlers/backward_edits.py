"""Answers about a stepped backward pass: breakpoints, edits, `.grad`s, its code."""

from __future__ import annotations

from collections.abc import Iterator

from ..autograd.backward.pass_code import pass_code
from ..lab import Lab
from ..lab.pass_control import namespace_of
from ..protocol import (
    BackwardCodeSnapshot,
    EditGradientCommand,
    ReadBackwardCodeCommand,
    SetBreakpointsCommand,
    Snapshot,
    UneditGradientCommand,
    ZeroGradientsCommand,
)


def set_breakpoints(lab: Lab, command: SetBreakpointsCommand) -> Iterator[Snapshot]:
    """Replace all breakpoints. Answer with a BackwardSnapshot if a pass is under way."""
    lab.backward.breakpoints.replace(command.breakpoints)
    if lab.backward.under_way is not None:
        yield lab.backward.under_way.snapshot()


def edit_gradient(lab: Lab, command: EditGradientCommand) -> Iterator[Snapshot]:
    """Answer with a BackwardSnapshot. Raises LabError as `PassControl.edit` does."""
    backward = lab.backward.require()
    backward.control.edit(command.node, command.expression, command.output)
    yield backward.snapshot()


def unedit_gradient(lab: Lab, command: UneditGradientCommand) -> Iterator[Snapshot]:
    """Answer with a BackwardSnapshot. Raises LabError when the node has run already."""
    backward = lab.backward.require()
    backward.control.unedit(command.node)
    yield backward.snapshot()


def zero_gradients(lab: Lab, command: ZeroGradientsCommand) -> Iterator[Snapshot]:
    """Zero every `.grad`, or set it to None. Answer with a BackwardSnapshot."""
    backward = lab.backward.require()
    backward.zero_gradients(command.set_to_none)
    yield backward.snapshot()


def read_code(lab: Lab, command: ReadBackwardCodeCommand) -> Iterator[Snapshot]:
    """Answer with a BackwardCodeSnapshot. Raises LabError as `pass_code` does."""
    yield BackwardCodeSnapshot(text=pass_code(lab.backward.require(), namespace_of(lab)))
