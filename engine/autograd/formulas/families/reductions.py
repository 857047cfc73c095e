"""Sums, means, extremes, norms and running totals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..book import pointwise
from ..node_values import NodeValues
from ..pointwise import Let


def spread(given: NodeValues, t: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """`t` with the reduced dimensions put back with size 1."""
    rank = len(given.shape())
    own = tuple(d for d in range(rank) if d not in given.dims() or given.number("keepdim", False))
    if t.dim() == rank:
        return t, own
    for d in given.dims():
        t = t.unsqueeze(d)
    return t, own


def folded(given: NodeValues) -> int:
    """The number of elements that are reduced to one."""
    shape = given.shape()
    return torch.Size([shape[d] for d in given.dims()]).numel()


_GY = {"g": spread, "y": spread}
_COUNT = Let("the number of elements reduced to one", lambda v: folded(v.given))

pointwise("SumBackward0", "Spreads the gradient: each element gets g.", x="g")
pointwise(
    "SumBackward1",
    "Spreads the gradient: each element gets the gradient of its sum.",
    align=_GY,
    x="g",
)
pointwise(
    "NansumBackward0",
    "Spreads the gradient over all elements but NaNs.",
    align=_GY,
    holomorphic=False,
    x="where(x == x, g, 0)",
)
pointwise(
    "MeanBackward0 MeanBackward1",
    "Spreads the gradient evenly: each element gets g / number of elements.",
    align=_GY,
    lets={"N": _COUNT},
    x="g / N",
)


def _product_of_others(v: Any) -> Tensor:
    """For each element, the product of all others that are reduced with it."""
    x: Tensor = v.x
    dims = v.given.dims()
    rest = [d for d in range(x.dim()) if d not in dims]
    lines = x.permute(*rest, *dims).flatten(len(rest)) if x.dim() else x.reshape(1)
    n = lines.shape[-1]
    mine = torch.eye(n, dtype=torch.bool)
    others = torch.where(mine, torch.ones((), dtype=x.dtype), lines.unsqueeze(-2)).prod(-1)
    shaped = others.reshape([x.shape[d] for d in (*rest, *dims)])
    return shaped.permute([(*rest, *dims).index(d) for d in range(x.dim())])


pointwise(
    "ProdBackward0 ProdBackward1",
    "g times the product of all the other elements.",
    align=_GY,
    lets={"p": Let("the product of the other elements", _product_of_others)},
    x="g * p",
)


def _correction(given: NodeValues) -> float:
    return folded(given) - given.number("correction", 1)


_MOMENTS = {
    "m": Let("mean of x", lambda v: v.x.mean(v.given.dims(), keepdim=True)),
    "N": Let("number of elements - correction", lambda v: _correction(v.given)),
}
_ALIGN = {"g": spread, "g0": spread, "g1": spread, "y": spread}
pointwise(
    "VarBackward0",
    "g times twice the distance from the mean, over N - 1.",
    align=_ALIGN,
    lets=_MOMENTS,
    holomorphic=False,
    x="g * 2 / N * (x - m)",
)
pointwise(
    "StdBackward0",
    "g times the distance from the mean, over (N - 1) · std.",
    align=_ALIGN,
    lets=_MOMENTS,
    holomorphic=False,
    x="where(y == 0, 0, g * (x - m) / (N * y))",
)
pointwise(
    "VarMeanBackward0",
    "Through the variance (twice the distance from the mean) plus through the mean (g / n).",
    align=_ALIGN,
    lets={**_MOMENTS, "n": _COUNT},
    holomorphic=False,
    x="g0 * 2 / N * (x - m) + g1 / n",
)
pointwise(
    "StdMeanBackward0",
    "Through the standard deviation plus through the mean (g / n).",
    saved={"y": "result0"},
    align=_ALIGN,
    lets={**_MOMENTS, "n": _COUNT},
    holomorphic=False,
    x="where(y == 0, 0, g0 * (x - m) / (N * y)) + g1 / n",
)

_NORMS = "NormBackward0 NormBackward1 LinalgVectorNormBackward0"


def _order(given: NodeValues) -> Any:
    order = given.number("p" if given.node.name.startswith("Norm") else "ord", 2)
    return float(order)


def _of_order(order: float) -> Callable[[NodeValues], bool]:
    return lambda given: _order(given) == order


pointwise(
    _NORMS,
    "g times x / norm: the direction of x, of length g.",
    align=_GY,
    when=_of_order(2),
    holomorphic=False,
    x="where(y == 0, 0, g * x / y)",
)
pointwise(
    _NORMS,
    "g with the sign of x.",
    align=_GY,
    when=_of_order(1),
    holomorphic=False,
    x="g * sign(x)",
)
pointwise(
    _NORMS,
    "g goes to the largest elements, with their sign; equal ones share it.",
    align=_GY,
    when=_of_order(float("inf")),
    holomorphic=False,
    lets={
        "N": Let(
            "how many elements are the largest",
            lambda v: (v.x.abs() == v.y).sum(v.given.dims(), keepdim=True),
        )
    },
    x="where(abs(x) == y, g * sign(x) / N, 0)",
)
pointwise(
    _NORMS,
    "g · sign(x) · (|x| / norm)^(p - 1).",
    align=_GY,
    when=lambda given: _order(given) > 1,
    holomorphic=False,
    lets={"p": Let("the order of the norm", lambda v: _order(v.given))},
    x="where(y == 0, 0, g * sign(x) * (abs(x) / y)**(p - 1))",
)


def _equal(v: Any) -> Tensor:
    return (v.x == v.y).sum(v.given.dims(), keepdim=True)


pointwise(
    "MaxBackward1 MinBackward1 MedianBackward0 NanmedianBackward0 AmaxBackward0 AminBackward0",
    "The gradient goes to the elements that equal the result; several share it.",
    align=_GY,
    holomorphic=False,
    lets={"N": Let("how many elements equal the result", _equal)},
    x="where(x == y, g / N, 0)",
)
pointwise(
    "LogsumexpBackward0",
    "g times the softmax: each element's share of the sum of exponentials.",
    align=_GY,
    x="g * exp(x - y)",
)


def _reverse_cumsum(t: Tensor, dim: int) -> Tensor:
    return t.flip(dim).cumsum(dim).flip(dim) if t.dim() else t


pointwise(
    "CumsumBackward0",
    "Each element went into its own total and all later ones: it gets the sum of their gradients.",
    lets={
        "s": Let(
            "Σ g from this place to the end, along dim",
            lambda v: _reverse_cumsum(v.g, v.given["dim"]),
        )
    },
    x="s",
)
pointwise(
    "CumprodBackward0",
    "Each element went into its own product and all later ones: Σ g·y from here on, over x.",
    when=lambda given: bool((given["x"] != 0).all()),
    lets={
        "s": Let(
            "Σ g·y from this place to the end, along dim",
            lambda v: _reverse_cumsum(v.g * v.y, v.given["dim"]),
        )
    },
    x="s / x",
)
pointwise(
    "LogcumsumexpBackward0",
    "Each element's share in its own total and all later ones.",
    lets={
        "s": Let(
            "Σ g·exp(-y) from this place to the end, along dim",
            lambda v: _reverse_cumsum(v.g * torch.exp(-v.y), v.given["dim"]),
        )
    },
    x="exp(x) * s",
)
