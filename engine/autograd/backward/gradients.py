"""Gradients that enter a graph: defaults at the roots, and the check that a gradient fits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import torch

from ..graph.engine_run import Gradients
from ..graph.reading import Node, gradient_edge


def root_gradients(
    roots: Sequence[torch.Tensor], gradient: torch.Tensor | Sequence[torch.Tensor | None] | None
) -> list[torch.Tensor]:
    """One gradient for each root; ones where a scalar root has none.

    Raises ValueError when a root that is not a scalar has no gradient, and when a gradient does not
    fit its root; TypeError for a gradient that is not a tensor.
    """
    several = isinstance(gradient, Sequence) and not isinstance(gradient, torch.Tensor)
    given: list[torch.Tensor | None] = list(gradient) if several else [gradient]  # type: ignore
    if gradient is None:
        given = [None] * len(roots)
    if len(given) != len(roots):
        raise ValueError(f"{len(roots)} roots need as many gradients; got {len(given)}")
    gradients = []
    for root, grad in zip(roots, given, strict=True):
        if grad is not None and not isinstance(grad, torch.Tensor):
            raise TypeError(f"`gradient` is a tensor, or one for each root; got {grad!r:.60}")
        edge = gradient_edge(root)
        if grad is None:
            grad = _ones(root)
        metadata = edge.node._input_metadata[edge.output_nr]
        if grad.dtype != metadata.dtype and not grad.is_complex():
            grad = grad.to(metadata.dtype)  # as the engine does
        check_fits(grad, metadata, "the root")
        gradients.append(grad)
    return gradients


def check_fits(
    gradient: torch.Tensor, metadata: Any, whose: str, instead_of: torch.Tensor | None = None
) -> None:
    """Raise ValueError unless `gradient` has the shape, dtype and device that the engine expects
    (`metadata`, an entry of a node's `_input_metadata`) and the layout of the gradient that it
    replaces, `instead_of`."""
    if metadata.is_nested_tensor:
        return  # torch tells no shape for these; the engine checks it
    expected = {
        "shape": tuple(metadata.shape),
        "dtype": metadata.dtype,
        "device": metadata.device,
    }
    got = {"shape": tuple(gradient.shape), "dtype": gradient.dtype, "device": gradient.device}
    if instead_of is not None:
        expected["layout"], got["layout"] = instead_of.layout, gradient.layout
    for what, wanted in expected.items():
        if got[what] != wanted:
            raise ValueError(f"the gradient for {whose} has {what} {got[what]}, not {wanted}")


def check_all_fit(node: Node, gradients: Gradients, arrived: Gradients = ()) -> None:
    """Raise ValueError unless there is one gradient for each output of `node`, and each fits what
    the node expects and the gradient `arrived` in its place, if any; TypeError for what is no
    tensor."""
    expected = node.fn._input_metadata
    if len(gradients) != len(expected):
        raise ValueError(
            f"{node.name} takes {len(expected)} gradients, one per output; got {len(gradients)}"
        )
    for gradient, metadata, old in zip_longest(gradients, expected, arrived):
        if gradient is None:
            continue
        if not isinstance(gradient, torch.Tensor):
            raise TypeError(
                f"a gradient for {node.name} is a tensor, or None; got {gradient!r:.60}"
            )
        check_fits(gradient, metadata, node.name, instead_of=old)


def _ones(root: torch.Tensor) -> torch.Tensor:
    if root.numel() != 1:
        raise ValueError(
            f"a gradient can be left out only for a scalar root; this one has shape "
            f"{tuple(root.shape)}: give `gradient`, a tensor of that shape"
        )
    return torch.ones_like(root, memory_format=torch.preserve_format)
