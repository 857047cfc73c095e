"""Activations of torch.nn, dropout and softmax."""

from __future__ import annotations

import torch

from ..book import enter, pointwise
from ..linear import Computed
from ..node_values import NodeValues
from ..pointwise import Let

pointwise(
    "ReluBackward0",
    "Lets the gradient through where the output was above zero, and stops it elsewhere.",
    holomorphic=False,
    x="where(y <= 0, 0, g)",  # in this order: NaN lets it through
)
pointwise(
    "ThresholdBackward0 ThresholdBackward1",
    "Lets the gradient through where the input was above the threshold.",
    saved={"c": "threshold"},
    x="where(x <= c, 0, g)",
)
pointwise(
    "LeakyReluBackward0",
    "Lets the gradient through where the input was above zero, a fraction elsewhere.",
    saved={"c": "negative_slope"},
    x="where(x > 0, g, g * c)",
)
pointwise(
    "LeakyReluBackward1",
    "Lets the gradient through where the output was above zero, a fraction elsewhere.",
    saved={"c": "negative_slope"},
    x="where(y > 0, g, g * c)",
)
pointwise(
    "EluBackward0",
    "g where the input was above zero, g times the exponential elsewhere.",
    saved={"s": "scale", "k": "input_scale"},
    x="where(x <= 0, g * alpha * s * k * exp(k * x), g * s)",
)
pointwise(
    "EluBackward1",
    "g where the output was above zero, g times the exponential elsewhere.",
    saved={"s": "scale", "k": "input_scale"},
    x="where(y <= 0, g * k * (y + alpha * s), g * s)",
)
pointwise(
    "CeluBackward0",
    "g where the input was above zero, g times the exponential elsewhere.",
    x="where(x > 0, g, g * exp(x / alpha))",
)
pointwise(
    "GeluBackward0",
    "g times the slope of GELU at the input.",
    when=lambda given: given["approximate"] == "none",
    x="g * ((1 + erf(x / sqrt(2))) / 2 + x * exp(-x**2 / 2) / sqrt(2 * pi))",
)
pointwise(
    "GeluBackward0",
    "g times the slope of GELU's tanh approximation at the input.",
    lets={
        "t": Let(
            "tanh(√(2/π) · (x + 0.044715 · x³))",
            lambda v: torch.tanh((2 / torch.pi) ** 0.5 * (v.x + 0.044715 * v.x**3)),
        )
    },
    x="g * ((1 + t) / 2 + x / 2 * (1 - t**2) * sqrt(2 / pi) * (1 + 0.134145 * x**2))",
)
pointwise(
    "SiluBackward0",
    "g times the slope of x·sigmoid(x) at the input.",
    lets={"s": Let("σ(x)", lambda v: torch.sigmoid(v.x))},
    x="g * s * (1 + x * (1 - s))",
)
pointwise(
    "MishBackward0",
    "g times the slope of x·tanh(softplus(x)) at the input.",
    lets={
        "s": Let("σ(x)", lambda v: torch.sigmoid(v.x)),
        "t": Let("tanh(softplus(x))", lambda v: torch.nn.functional.softplus(v.x).tanh()),
    },
    x="g * (t + x * s * (1 - t**2))",
)
pointwise(
    "HardswishBackward0",
    "0 below -3, g above 3, and g times a slope that rises between.",
    x="where(x <= -3, 0, where(x < 3, g * (x / 3 + 0.5), g))",
)
pointwise(
    "HardtanhBackward0",
    "Lets the gradient through where the input was between the limits.",
    saved={"lo": "min_val", "hi": "max_val"},
    x="where(x > lo and x < hi, g, 0)",
)
pointwise(
    "HardsigmoidBackward0",
    "g / 6 between -3 and 3, 0 elsewhere.",
    x="where(x > -3 and x < 3, g / 6, 0)",
)
pointwise(
    "SoftplusBackward0",
    "g · σ(β·x): g where the input is large, almost 0 where it is very negative.",
    saved={"c": "threshold"},
    x="where(beta * x > c, g, g * sigmoid(beta * x))",
)
pointwise("LogSigmoidBackward0", "g · σ(-x).", x="g * sigmoid(-x)")
pointwise(
    "PreluKernelBackward0",
    "g where the input was above zero, elsewhere g times the learned slope. The slope gets g · x.",
    saved={"w": "weight"},
    x="where(x > 0, g, g * w)",
    w="where(x > 0, 0, g * x)",
)
pointwise(
    "SoftshrinkBackward0 HardshrinkBackward0",
    "Stops the gradient between -λ and λ.",
    saved={"lambd": "lambd"},
    x="where(abs(x) <= lambd, 0, g)",
)
pointwise(
    "RreluWithNoiseBackward0",
    "g where the input was above zero, elsewhere g times the random slope of forward.",
    saved={"r": "noise"},
    when=lambda given: bool(given["training"]),
    x="g * r",
)
pointwise(
    "NativeDropoutBackward0",
    "Lets the gradient through where the value was kept, scaled as in forward.",
    saved={"m": "result1"},
    lets={"s": Let("1 / (1 - p)", lambda v: _scale(v.given))},
    x="g * m * s",
    meanings={"m": "the mask: true where a value was kept"},
)
pointwise(
    "SoftmaxBackward0 SafeSoftmaxBackward0",
    "y · (g - Σ g·y): raising one probability lowers the others.",
    lets={
        "s": Let(
            "Σ g·y along the softmax's `dim`",
            lambda v: (v.g * v.y).sum(v.given["dim"], keepdim=True),
        )
    },
    x="y * (g - s)",
)
pointwise(
    "LogSoftmaxBackward0",
    "g - softmax(x) · Σ g.",
    lets={
        "s": Let("Σ g along the softmax's `dim`", lambda v: v.g.sum(v.given["dim"], keepdim=True))
    },
    x="g - exp(y) * s",
)


def _scale(given: NodeValues) -> float:
    if not given.number("train", True):
        return 1.0
    p = given["p"]
    return 0.0 if p == 1 else 1.0 / (1.0 - p)


def _glu(given: NodeValues) -> torch.Tensor:
    dim, g = given["dim"], given.gradient()
    a, b = given["x"].chunk(2, dim)
    s = torch.sigmoid(b)
    return torch.cat([g * s, g * a * s * (1 - s)], dim)


enter(
    "GluBackward0",
    "y = a · σ(b), a and b the halves of x: g · σ(b) for a, g · a · σ(b) · (1 - σ(b)) for b.",
    Computed("x", "[g · σ(b), g · a · σ(b) · (1 - σ(b))], x = [a, b]", _glu, ("g", "x")),
)
