"""Functions of one number: g times the derivative at each element."""

from __future__ import annotations

from ..book import pointwise

_SLOPES = (
    ("ExpBackward0", "g * y", "g · y: the exponential is its own slope."),
    ("Exp2Backward0", "g * y * log(2)", "g · y · log 2."),
    ("Expm1Backward0", "g * (y + 1)", "g · (y + 1): the slope of eˣ."),
    ("LogBackward0", "g / x", "g / x."),
    ("Log2Backward0", "g / (x * log(2))", "g / (x · log 2)."),
    ("Log10Backward0", "g / (x * log(10))", "g / (x · log 10)."),
    ("Log1PBackward0", "g / (x + 1)", "g / (x + 1)."),
    ("SqrtBackward0", "g / (2 * y)", "g / (2 · y): without bound near 0."),
    ("RsqrtBackward0", "-g * y**3 / 2", "-g · y³ / 2."),
    ("ReciprocalBackward0", "-g * y**2", "-g · y²."),
    ("SinBackward0", "g * cos(x)", "g · cos x."),
    ("CosBackward0", "-g * sin(x)", "-g · sin x."),
    ("TanBackward0", "g * (1 + y**2)", "g · (1 + y²)."),
    ("AsinBackward0", "g / sqrt(1 - x**2)", "g / √(1 - x²)."),
    ("AcosBackward0", "-g / sqrt(1 - x**2)", "-g / √(1 - x²)."),
    ("AtanBackward0", "g / (x**2 + 1)", "g / (x² + 1)."),
    ("SinhBackward0", "g * cosh(x)", "g · cosh x."),
    ("CoshBackward0", "g * sinh(x)", "g · sinh x."),
    ("AsinhBackward0", "g / sqrt(x**2 + 1)", "g / √(x² + 1)."),
    ("AcoshBackward0", "g / sqrt(x**2 - 1)", "g / √(x² - 1)."),
    ("AtanhBackward0", "g / (1 - x**2)", "g / (1 - x²)."),
    (
        "TanhBackward0",
        "g * (1 - y**2)",
        "g · (1 - y²): small where the output is near -1 or 1.",
    ),
    (
        "SigmoidBackward0",
        "g * y * (1 - y)",
        "g · y · (1 - y): small where the output is near 0 or 1, so many layers make it vanish.",
    ),
)
for _name, _source, _words in _SLOPES:
    pointwise(_name, _words, x=_source)

_REAL_SLOPES = (
    ("ErfBackward0", "g * 2 / sqrt(pi) * exp(-x**2)", "g times the bell curve 2/√π · exp(-x²)."),
    ("ErfcBackward0", "-g * 2 / sqrt(pi) * exp(-x**2)", "-g times the bell curve 2/√π · exp(-x²)."),
    ("ErfinvBackward0", "g * sqrt(pi) / 2 * exp(y**2)", "g · √π/2 · exp(y²)."),
    ("LgammaBackward0", "g * digamma(x)", "g · ψ(x)."),
    ("DigammaBackward0", "g * trigamma(x)", "g · ψ₁(x)."),
    ("I0Backward0", "g * i1(x)", "g · i1(x)."),
    ("SpecialEntrBackward0", "-g * (1 + log(x))", "-g · (1 + log x)."),
    ("FracBackward0", "g", "Passes the gradient on: the whole part is a step."),
    ("NanToNumBackward0", "where(isfinite(x), g, 0)", "g where x was finite, 0 elsewhere."),
    ("Deg2RadBackward0", "g * pi / 180", "g · π / 180."),
    ("Rad2DegBackward0", "g * 180 / pi", "g · 180 / π."),
    ("AbsBackward0", "g * sign(x)", "g with the sign of x; 0 where x is 0."),
)
for _name, _source, _words in _REAL_SLOPES:
    saved = {"y": "result"} if _name != "ErfinvBackward0" else {}
    pointwise(
        _name,
        _words,
        saved=saved,
        holomorphic=False,
        x=_source if _name != "ErfinvBackward0" else "g * sqrt(pi) / 2 * exp(erfinv(x)**2)",
    )

pointwise(
    "SignBackward0 FloorBackward0 CeilBackward0 RoundBackward0 RoundBackward1 TruncBackward0"
    " ZeroBackward0",
    "No gradient: the result is flat, or does not depend on the input.",
    x="0",
)
pointwise(
    "FillBackward0 FillBackward1 FillBackward2 FillBackward3",
    "Everything was overwritten: the input gets no gradient, the value gets the sum of g.",
    x="0",
    v="g",
)
pointwise(
    "SgnBackward0",
    "No gradient: the sign is flat.",
    when=lambda given: not given.gradient().is_complex(),
    x="0",
)
pointwise(
    "LogitBackward0",
    "g / (x · (1 - x)): without bound near 0 and 1.",
    when=lambda given: given.number("eps", None) is None,
    holomorphic=False,
    x="where(x < 0 or x > 1, nan, g / (x * (1 - x)))",
)
