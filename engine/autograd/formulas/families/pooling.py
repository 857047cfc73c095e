"""Pooling, resizing and windows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from ..book import enter
from ..linear import Transposed
from ..node_values import NodeValues
from .views import move


def _from_places(given: NodeValues, p: Tensor, spatial: int) -> Tensor:
    """The elements at the saved places: max_pool saves for each output the flat index of its
    maximum in the image."""
    index = given["result1"]
    lead = index.dim() - spatial
    return p.flatten(lead).gather(lead, index.flatten(lead)).reshape(index.shape)


for _rank in (2, 3):
    move(
        f"MaxPool{_rank}DWithIndicesBackward0 AdaptiveMaxPool{_rank}DBackward0"
        f" FractionalMaxPool{_rank}DBackward0",
        "Sends each gradient to the place that held the maximum.",
        "Σ g over the windows in which x was the maximum",
        lambda given, p, spatial=_rank: _from_places(given, p, spatial),
    )


def linear(
    names: str, words: str, text: str, again: Callable[[NodeValues, Tensor], Tensor]
) -> None:
    """Enter an operation that is a linear map of its only tensor; `again` is the operation."""
    enter(names, words, Transposed("x", text, lambda given, z, _: again(given, z)))


def _average(pool: Callable[..., Tensor]) -> Callable[[NodeValues, Tensor], Tensor]:
    def again(given: NodeValues, z: Tensor) -> Tensor:
        return pool(
            z,
            given["kernel_size"],
            given.number("stride", None) or None,
            given["padding"],
            given["ceil_mode"],
            given["count_include_pad"],
            given.number("divisor_override", None),
        )

    return again


_SPREADS = "Spreads each gradient evenly over its window."
_WINDOW = "Σ g / size of the window, over the windows that hold x"
linear("AvgPool2DBackward0", _SPREADS, _WINDOW, _average(F.avg_pool2d))
linear("AvgPool3DBackward0", _SPREADS, _WINDOW, _average(F.avg_pool3d))
linear(
    "AdaptiveAvgPool2DBackward0",
    _SPREADS,
    _WINDOW,
    lambda given, z: torch.ops.aten.adaptive_avg_pool2d(z, given.gradient().shape[-2:]),
)
linear(
    "AdaptiveAvgPool3DBackward0",
    _SPREADS,
    _WINDOW,
    lambda given, z: torch.ops.aten.adaptive_avg_pool3d(z, given.gradient().shape[-3:]),
)


def _resize(mode: str) -> Callable[[NodeValues, Tensor], Tensor]:
    def again(given: NodeValues, z: Tensor) -> Tensor:
        corners = given["align_corners"] if mode not in ("nearest", "nearest-exact") else None
        return F.interpolate(z, tuple(given["output_size"]), mode=mode, align_corners=corners)

    return again


_SHARES = "Σ g · the share of x in each output"
for _node, _mode in (
    ("UpsampleNearest1D", "nearest"),
    ("UpsampleNearest2D", "nearest"),
    ("UpsampleNearest3D", "nearest"),
    ("UpsampleLinear1D", "linear"),
    ("UpsampleBilinear2D", "bilinear"),
    ("UpsampleTrilinear3D", "trilinear"),
    ("UpsampleBicubic2D", "bicubic"),
):
    linear(
        f"{_node}Backward0",
        "Each pixel gets the gradients of all outputs that were made from it, by its share in"
        " them.",
        _SHARES,
        _resize(_mode),
    )
linear(
    "Im2ColBackward0",
    "Windows overlap: each element sums the gradients of all windows that it lies in.",
    "Σ g over the windows that hold x",
    lambda given, z: F.unfold(
        z, given["kernel_size"], given["dilation"], given["padding"], given["stride"]
    ),
)
linear(
    "Col2ImBackward0",
    "Each element of a window gets the gradient of the place it was added to.",
    "g at the place where x was added",
    lambda given, z: F.fold(
        z,
        tuple(given.gradient().shape[-2:]),
        given["kernel_size"],
        given["dilation"],
        given["padding"],
        given["stride"],
    ),
)
