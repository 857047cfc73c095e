"""Answers about a stepped backward pass: breakpoints, edits, `.grad`s, its code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from ..autograd.backward.backward_pass import MakePassControl
from ..autograd.backward.pass_code import pass_code
from ..autograd.backward.pass_control import PassControl
from ..console.namespace import Namespace
from ..lab import Lab
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


def namespace_of(lab: Lab) -> Namespace:
    """The namespace of the pass under way: an example's or the console's."""
    return lab.backward.namespace or lab.console.namespace


def pass_control_maker(
    lab: Lab, defaults: Callable[[], AbstractContextManager[None]] = nullcontext
) -> MakePassControl:
    """A maker of pass controls for this lab: their edits see the variables of its namespace, and an
    InterruptSignal stops them. `defaults` is the context that the user's code runs in."""

    @contextmanager
    def guard() -> Iterator[None]:
        with defaults(), lab.control.user_code():
            yield

    return partial(
        PassControl,
        breakpoints=lab.backward.breakpoints,
        variables=namespace_of(lab).variables,
        guard=guard,
        shield=lab.control.own_code,
        stop=lab.control.stop.is_set,
    )
