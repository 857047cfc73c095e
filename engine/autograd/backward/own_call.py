"""A `backward()` that the user's own code calls, stepped in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from torch import Tensor

from ...system.errors import LabError
from .roots import ConsoleSubject

if TYPE_CHECKING:
    from ...console.namespace import Namespace


class CallSubject(ConsoleSubject):
    """The roots and gradients of a call, with the names that the frame around it has for tensors.
    `resumed` sets the modes and random numbers of the code that called."""

    starts_empty = False

    def __init__(
        self,
        namespace: Namespace,
        roots: Sequence[Tensor],
        gradient: list[Tensor | None] | None,
        resumed: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._namespace, self._resumed = namespace, resumed
        self.roots, self.gradient = list(roots), gradient
        names = [namespace.name_of(root) for root in roots]
        self.root = ", ".join(name or "root" for name in names)
        self.name_tensors()

    def defaults(self) -> AbstractContextManager[None]:
        return self._resumed()

    def plain(self) -> tuple[list[Tensor], list[Tensor | None] | None]:
        raise LabError(
            "This pass is a backward() of your code: a comparison would run its hooks twice.",
            hint="Compare in a pass that you start here.",
        )


def arguments_of(
    tensors: object, grad_tensors: object
) -> tuple[list[Tensor], list[Tensor | None] | None] | None:
    """The roots of a call and their gradients; None if they are not tensors."""
    roots = list(tensors) if isinstance(tensors, tuple | list) else [tensors]
    if not roots or not all(isinstance(root, Tensor) and root.requires_grad for root in roots):
        return None
    if grad_tensors is None:
        return roots, None  # pyright: ignore[reportReturnType]
    given = list(grad_tensors) if isinstance(grad_tensors, tuple | list) else [grad_tensors]
    if not all(gradient is None or isinstance(gradient, Tensor) for gradient in given):
        return None
    return roots, given  # pyright: ignore[reportReturnType]
