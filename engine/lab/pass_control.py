"""What a backward pass of the lab has: its namespace, and the controls that its edits go by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from ..autograd.backward.backward_pass import MakePassControl
from ..autograd.backward.pass_control import PassControl
from ..console.namespace import Namespace
from .lab import Lab


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
