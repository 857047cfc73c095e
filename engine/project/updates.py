"""The rule by which each optimizer makes a parameter's new value, in symbols. No torch.

Sources: the pseudo code in the docstrings of torch.optim.SGD, Adam, AdamW and RMSprop.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from .catalogue import optimizers
from .document import ParamValue


class UpdateRule(Struct, frozen=True):
    """`step` gives the new value of one number; `words` explain its symbols other than `old`,
    `grad` and the options. `first` is the first step, when the optimizer remembers nothing yet."""

    step: str
    words: str
    first: str


def update_rule(optimizer: str, params: Mapping[str, ParamValue]) -> UpdateRule:
    """The rule of an optimizer (`"optim.SGD"`) with these options, the others being torch's
    defaults. Raises KeyError for one that the catalogue does not have."""
    options = options_of(optimizer, params)
    grad = "(−grad)" if options["maximize"] else "grad"
    if options["weight_decay"] and optimizer != "optim.AdamW":
        grad = f"({grad} + weight_decay · old)"
    return _RULES[optimizer](options, grad)


def options_of(optimizer: str, params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """All options of an optimizer: those chosen, else torch's defaults."""
    known = {param.name: param.default for param in optimizers()[optimizer]}
    return {**known, **{name: value for name, value in params.items() if name in known}}


def _sgd(options: Mapping[str, ParamValue], grad: str) -> UpdateRule:
    first = f"old − lr · {grad}"
    if not options["momentum"]:
        return UpdateRule(first, "", first)
    damped = f"(1 − dampening) · {grad}" if options["dampening"] else grad
    words = f"velocity = momentum · velocity + {damped}; it begins as the first gradient."
    if options["nesterov"]:
        ahead = f"({grad} + momentum · velocity)"
        first = f"old − lr · (1 + momentum) · {grad}"
        return UpdateRule(f"old − lr · {ahead}", words, first)
    return UpdateRule("old − lr · velocity", words, first)


def _adam(options: Mapping[str, ParamValue], grad: str, old: str = "old") -> UpdateRule:
    words = (
        "mean and square are running means of the gradient and of its square, corrected for their"
        " start at 0."
    )
    if options["amsgrad"]:
        words += " The largest square so far is used."
    first = f"{old} − lr · {grad} / (|{grad}| + eps)"
    return UpdateRule(f"{old} − lr · mean / (√square + eps)", words, first)


def _adamw(options: Mapping[str, ParamValue], grad: str) -> UpdateRule:
    shrunk = "(1 − lr · weight_decay) · old" if options["weight_decay"] else "old"
    return _adam(options, grad, shrunk)


def _rmsprop(options: Mapping[str, ParamValue], grad: str) -> UpdateRule:
    words = "square is a running mean of the gradient's square"
    spread, first = "√square", f"√((1 − alpha) · {grad}²)"
    if options["centered"]:
        words += ", mean one of the gradient"
        spread, first = "√(square − mean²)", f"√(alpha · (1 − alpha) · {grad}²)"
    step, first = f"{grad} / ({spread} + eps)", f"{grad} / ({first} + eps)"
    if options["momentum"]:
        words += f"; velocity = momentum · velocity + {step}"
        step = "velocity"
    return UpdateRule(f"old − lr · {step}", f"{words}.", f"old − lr · {first}")


_RULES = {
    "optim.SGD": _sgd,
    "optim.Adam": _adam,
    "optim.AdamW": _adamw,
    "optim.RMSprop": _rmsprop,
}
