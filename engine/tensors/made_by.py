"""The operation that made the numbers of a tensor."""

from __future__ import annotations

from torch import Tensor

MAX_WALK = 8
"""The most nodes that are followed back."""
_MOVING = frozenset(
    f"{name}Backward{number}"
    for number in (0, 1)
    for name in (
        *("View", "ReshapeAlias", "UnsafeView", "Permute", "Transpose", "T", "Squeeze"),
        *("Unsqueeze", "Slice", "Select", "Clone", "ToCopy", "Index", "Expand"),
    )
)
"""Nodes of operations that pass numbers on as they are."""


def made_by(value: Tensor) -> str:
    """The name of the node that made the numbers of a tensor, wherever they were moved since, such
    as `SoftmaxBackward0`; "" for a leaf."""
    node = value.grad_fn
    for _ in range(MAX_WALK):
        if node is None:
            return ""
        name = node.name()
        if name not in _MOVING:
            return name
        node = next((each for each, _ in node.next_functions if each is not None), None)
    return ""
