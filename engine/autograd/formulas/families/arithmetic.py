"""Sums, products, powers, and choices between elements."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..book import pointwise
from ..node_values import NodeValues
from ..pointwise import Let

_AB = {"a": "self", "b": "other"}
_INF = float("inf")


def _unscaled(given: NodeValues) -> bool:
    return given["alpha"] == 1


pointwise(
    "AddBackward0 AddBackward1",
    "Passes the gradient on to both terms, summed where one was broadcast.",
    saved=_AB,
    when=_unscaled,
    a="g",
    b="g",
)
pointwise(
    "AddBackward0 AddBackward1",
    "y = a + α · b: passes g on to a, and α · g to b.",
    saved=_AB,
    a="g",
    b="alpha * g",
)
pointwise(
    "SubBackward0 SubBackward1",
    "Passes g to the first term and -g to the second.",
    saved=_AB,
    when=_unscaled,
    a="g",
    b="-g",
)
pointwise(
    "SubBackward0 SubBackward1",
    "y = a - α · b: passes g on to a, and -α · g to b.",
    saved=_AB,
    a="g",
    b="-alpha * g",
)
pointwise("RsubBackward0", "y = b - α · a: passes -α · g to a and g to b.", a="-alpha * g", b="g")
pointwise("RsubBackward1", "y = number - α · x: -α · g.", x="-alpha * g")
pointwise(
    "MulBackward0",
    "Each factor gets the gradient times the other factor.",
    saved=_AB,
    a="g * b",
    b="g * a",
)
pointwise("MulBackward1", "g times the number.", saved={"c": "other"}, x="g * c")
pointwise(
    "DivBackward0",
    "g / divisor for the dividend, -g · quotient / divisor for the divisor.",
    saved=_AB,
    a="g / b",
    b="-g * a / b**2",
)
pointwise("DivBackward1", "g divided by the number.", saved={"c": "other"}, x="g / c")
pointwise("NegBackward0", "Changes the sign of the gradient.", x="-g")
pointwise(
    "PowBackward0",
    "g times the slope: exponent · x to the power of (exponent - 1).",
    saved={"n": "exponent"},
    when=lambda given: given["n"] != 0,
    x="g * n * x**(n - 1)",
)
pointwise(
    "PowBackward0",
    "x⁰ is 1 everywhere, so x gets no gradient.",
    saved={"n": "exponent"},
    x="0",
)
pointwise(
    "PowBackward1",
    "y = a to the power of b: g · b · a^(b - 1) for a, g · y · log(a) for b.",
    saved={"a": "self", "b": "exponent"},
    holomorphic=False,
    a="where(b == 0, 0, g * b * a**(b - 1))",
    b="where(a == 0 and b >= 0, 0, g * y * log(a))",
)
pointwise(
    "PowBackward2",
    "y = c to the power of x: g · y · log(c).",
    saved={"c": "self", "x": "exponent"},
    holomorphic=False,
    x="where(c == 0 and x >= 0, 0, g * y * log(c))",
)
pointwise(
    "AddcmulBackward0",
    "y = x + c · a · b: g for x, g · c · b for a, g · c · a for b.",
    saved={"a": "tensor1", "b": "tensor2", "c": "value"},
    x="g",
    a="g * c * b",
    b="g * c * a",
)
pointwise(
    "AddcdivBackward0",
    "y = x + c · a / b: g for x, g · c / b for a, -g · c · a / b² for b.",
    saved={"a": "tensor1", "b": "tensor2", "c": "value"},
    x="g",
    a="g * c / b",
    b="-g * c * a / b**2",
)
pointwise(
    "LerpBackward0",
    "y = a + w · (b - a): g · (1 - w) for a, g · w for b.",
    saved={"a": "self", "b": "end", "w": "weight"},
    a="g * (1 - w)",
    b="g * w",
)
pointwise(
    "LerpBackward1",
    "y = a + w · (b - a): g · (1 - w) for a, g · w for b, g · (b - a) for w.",
    saved={"a": "self", "b": "end", "w": "weight"},
    a="g * (1 - w)",
    b="g * w",
    w="g * (b - a)",
)
pointwise(
    "FmodBackward0 RemainderBackward0",
    "The remainder changes as its dividend does: g.",
    x="g",
)
pointwise(
    "FmodBackward1",
    "g for the dividend, -g times the quotient rounded toward zero for the divisor.",
    saved=_AB,
    a="g",
    b="-g * trunc(a / b)",
)
pointwise(
    "RemainderBackward1",
    "g for the dividend, -g times the quotient rounded down for the divisor.",
    saved=_AB,
    a="g",
    b="-g * floor(a / b)",
)
for _name, _sign, _word in (("Maximum", ">", "larger"), ("Minimum", "<", "smaller")):
    pointwise(
        f"{_name}Backward0",
        f"The {_word} of the two gets the gradient; equal ones share it.",
        saved=_AB,
        holomorphic=False,
        a=f"where(a {_sign} b, g, where(a == b, g / 2, 0))",
        b=f"where(b {_sign} a, g, where(a == b, g / 2, 0))",
    )
for _name, _sign in (("Fmax", ">="), ("Fmin", "<=")):
    pointwise(
        f"{_name}Backward0",
        "The chosen one of the two gets the gradient. NaN is chosen only if both are NaN.",
        saved=_AB,
        holomorphic=False,
        a=f"where(a {_sign} b or isnan(b), g, 0)",
        b=f"where(a {_sign} b or isnan(b), 0, g)",
    )
pointwise(
    "WhereBackward0",
    "The gradient goes to the one of the two that was chosen at each place.",
    saved={"c": "condition"},
    a="where(c, g, 0)",
    b="where(c, 0, g)",
    meanings={"c": "the condition"},
)
pointwise(
    "MaskedFillBackward0 MaskedFillBackward1",
    "Stops the gradient where the mask filled in the value. The value gets the sum of the"
    " gradients there.",
    saved={"m": "mask"},
    x="where(m, 0, g)",
    v="where(m, g, 0)",
    meanings={"m": "the mask"},
)
pointwise(
    "ClampBackward1",
    "Lets the gradient through where the input was within the limits, and stops it elsewhere.",
    saved={"lo": "min", "hi": "max"},
    defaults={"lo": -_INF, "hi": _INF},
    x="where(x >= lo and x <= hi, g, 0)",
)
pointwise(
    "ClampMinBackward0",
    "Lets the gradient through where the input was not below the limit.",
    saved={"lo": "min"},
    x="where(x >= lo, g, 0)",
)
pointwise(
    "ClampMaxBackward0",
    "Lets the gradient through where the input was not above the limit.",
    saved={"hi": "max"},
    x="where(x <= hi, g, 0)",
)
pointwise(
    "ClampMinBackward1",
    "The gradient goes to the input where it was not below the limit, else to the limit.",
    saved={"lo": "min"},
    x="where(x >= lo, g, 0)",
    lo="where(x < lo, g, 0)",
)
pointwise(
    "ClampMaxBackward1",
    "The gradient goes to the input where it was not above the limit, else to the limit.",
    saved={"hi": "max"},
    x="where(x <= hi, g, 0)",
    hi="where(x > hi, g, 0)",
)
pointwise(
    "ClampBackward0",
    "The gradient goes to the input within the limits. Beyond a limit it goes to that limit.",
    saved={"lo": "min", "hi": "max"},
    defaults={"lo": -_INF, "hi": _INF},
    x="where(x >= lo and x <= hi, g, 0)",
    lo="where(x < lo and lo < hi, g, 0)",
    hi="where(x > hi or hi < lo, g, 0)",
)
pointwise(
    "HypotBackward0",
    "y = √(a² + b²): g · a / y for a, g · b / y for b.",
    saved=_AB,
    a="g * a / y",
    b="g * b / y",
)
pointwise(
    "Atan2Backward0",
    "The angle of the point (b, a): g · b / r² and -g · a / r².",
    saved=_AB,
    a="where(a == 0 and b == 0, 0, g * b / (a**2 + b**2))",
    b="where(a == 0 and b == 0, 0, -g * a / (a**2 + b**2))",
)
pointwise(
    "XlogyBackward0",
    "y = a · log(b): g · log(b) for a, g · a / b for b.",
    saved=_AB,
    a="where(a == 0 and b <= 0, 0, g * log(b))",
    b="g * a / b",
)
pointwise(
    "LogaddexpBackward0",
    "y = log(eᵃ + eᵇ): each gets g times its share of the sum.",
    saved=_AB,
    a="g / (1 + exp(b - a))",
    b="g / (1 + exp(a - b))",
)
pointwise(
    "CopysignBackward0",
    "g, with its sign changed where forward changed the sign of x.",
    holomorphic=False,
    lets={"s": Let("1 where the sign was kept, -1 where it was changed", lambda v: _ratio(v))},
    x="g * s",
    other="0",
)


def _ratio(v: Any) -> Tensor:
    return (v.y / v.x).nan_to_num(0.0)
