"""Inverses, determinants, distances, and parts of complex numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from ..book import enter, pointwise
from ..linear import Computed
from ..node_values import NodeValues
from ..pointwise import Let


def _g(given: NodeValues) -> Tensor:
    return given.gradient()


enter(
    "LinalgInvExBackward0",
    "-yᵀ · g · yᵀ, y the inverse: it grows as the matrix gets close to a singular one.",
    Computed("x", "-yᵀ · g · yᵀ", lambda v: -v["y"].mH @ _g(v) @ v["y"].mH, ("g", "y")),
    saved={"y": "inverse"},
    meanings={"y": "the inverse"},
)


def _det(given: NodeValues) -> Tensor:
    a = given["A"]
    return (_g(given) * given["y"]).unsqueeze(-1).unsqueeze(-1) * torch.linalg.inv(a).mT


enter(
    "LinalgDetBackward0",
    "g · det(A) · A⁻ᵀ, which is g times the cofactors.",
    Computed("A", "g · y · A⁻ᵀ", _det, ("g", "y", "A")),
    when=lambda given: not given.is_complex and bool((given["y"] != 0).all()),
    meanings={"y": "the determinant"},
)


def _solved(given: NodeValues) -> Tensor:
    """The gradient of the right-hand side b of A x = b."""
    a, g = given["A"], _g(given)
    return torch.linalg.solve(a.mH, g, left=given["left"])


def _solve_matrix(given: NodeValues) -> Tensor:
    gb, y = _solved(given), given["y"]
    if y.dim() == 1:
        return -torch.outer(gb, y.conj())
    return -gb @ y.mH if given["left"] else -y.mH @ gb


enter(
    "LinalgSolveExBackward0",
    "A·y = b: b gets A⁻ᵀ·g, found by solving again, and A gets minus its product with yᵀ.",
    Computed("A", "-(A⁻ᵀ · g) · yᵀ", _solve_matrix, ("g", "A", "y")),
    Computed("b", "A⁻ᵀ · g", _solved, ("g", "A")),
    when=lambda given: given["A"].dim() == 2,
    meanings={"y": "the solution"},
)
enter(
    "LinalgCrossBackward0",
    "y = a × b: b × g for a, and g × a for b.",
    Computed(
        "a",
        "b × g",
        lambda v: torch.linalg.cross(v["b"], _g(v), dim=v["dim"]),
        ("g", "b"),
    ),
    Computed(
        "b",
        "g × a",
        lambda v: torch.linalg.cross(_g(v), v["a"], dim=v["dim"]),
        ("g", "a"),
    ),
    saved={"a": "self", "b": "other"},
    when=lambda given: not given.is_complex,
)
pointwise(
    "DistBackward0",
    "The distance of a and b: g times the direction from b to a for a, the opposite for b.",
    saved={"a": "self", "b": "other"},
    when=lambda given: given["p"] == 2,
    holomorphic=False,
    a="where(y == 0, 0, g * (a - b) / y)",
    b="where(y == 0, 0, -g * (a - b) / y)",
)


def _cdist(given: NodeValues, *, of_first: bool) -> Tensor:
    a, b, y = given["a"], given["b"], given["y"]
    w = torch.where(y == 0, 0.0, _g(given) / torch.where(y == 0, 1.0, y))
    if of_first:
        return w.sum(-1, keepdim=True) * a - w @ b
    return w.sum(-2).unsqueeze(-1) * b - w.mT @ a


enter(
    "CdistBackward0",
    "The distances of all pairs: each row sums g times the directions to it from the other"
    " matrix's rows.",
    Computed(
        "a",
        "Σ g · (a - b) / y over the rows of b",
        lambda v: _cdist(v, of_first=True),
        ("g", "a", "b", "y"),
    ),
    Computed(
        "b",
        "Σ g · (b - a) / y over the rows of a",
        lambda v: _cdist(v, of_first=False),
        ("g", "a", "b", "y"),
    ),
    saved={"a": "x1", "b": "x2"},
    when=lambda given: given["p"] == 2,
)
pointwise(
    "SpecialXlog1PyBackward0",
    "y = a · log(1 + b): g · log(1 + b) for a, g · a / (1 + b) for b.",
    saved={"a": "self", "b": "other"},
    holomorphic=False,
    a="where(a == 0 and b <= -1, 0, g * log(b + 1))",
    b="g * a / (b + 1)",
)
pointwise(
    "Logaddexp2Backward0",
    "y = log2(2ᵃ + 2ᵇ): each gets g times its share of the sum.",
    saved={"a": "self", "b": "other"},
    holomorphic=False,
    a="g / (1 + 2**(b - a))",
    b="g / (1 + 2**(a - b))",
)
pointwise(
    "SincBackward0",
    "g · (cos(π·x) - y) / x, which is 0 at 0.",
    holomorphic=False,
    lets={"y": Let("sin(π·x) / (π·x)", lambda v: torch.sinc(v.x))},
    x="where(x == 0, 0, g * (cos(pi * x) - y) / x)",
)

# For complex numbers torch gives the conjugate of the derivative: the direction of steepest ascent.
enter(
    "ConjBackward0 ConjPhysicalBackward0",
    "The conjugate of g.",
    Computed("x", "conj(g)", lambda given: _g(given).conj()),
)
enter(
    "ViewAsRealBackward0",
    "Puts the real and the imaginary part together again.",
    Computed("x", "g[…, 0] + i · g[…, 1]", lambda v: torch.view_as_complex(_g(v).contiguous())),
)
enter(
    "ViewAsComplexBackward0",
    "Takes g apart into its real and its imaginary part.",
    Computed("x", "[real(g), imag(g)]", lambda v: torch.view_as_real(_g(v).resolve_conj())),
)
enter(
    "ComplexBackward0",
    "The real part of g for the real part, the imaginary for the imaginary.",
    Computed("a", "real(g)", lambda v: _g(v).real),
    Computed("b", "imag(g)", lambda v: _g(v).imag),
)
enter(
    "AbsBackward0",
    "g in the direction of x; 0 where x is 0.",
    Computed("x", "g · x / |x|", lambda v: _g(v) * v["x"].sgn(), ("g", "x")),
)
