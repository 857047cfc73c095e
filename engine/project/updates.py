"""The rule by which each optimizer makes a parameter's new value, in symbols. No torch.

Source: the pseudo code in the docstring of each class in torch.optim.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from .catalogue import optimizers
from .document import ParamValue


class UpdateRule(Struct, frozen=True):
    """`step` gives the new value of one number; `words` explain its symbols other than `old`,
    `grad` and the options. `first` is the first step, when the optimizer remembers nothing yet.
    Both are empty where one number cannot be told without the others."""

    step: str
    words: str
    first: str


def update_rule(optimizer: str, params: Mapping[str, ParamValue]) -> UpdateRule:
    """The rule of an optimizer (`"optim.SGD"`) with these options, the others being torch's
    defaults. Raises KeyError for one that the catalogue does not have."""
    if optimizer in _WORDS:
        return UpdateRule("", _WORDS[optimizer], "")
    options = options_of(optimizer, params)
    grad = "(−grad)" if options["maximize"] else "grad"
    if options.get("weight_decay") and optimizer != "optim.AdamW":
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


def _adagrad(options: Mapping[str, ParamValue], grad: str) -> UpdateRule:
    words = "total is the sum of all squared gradients, beginning at initial_accumulator_value."
    rate = "lr"
    if options["lr_decay"]:
        rate = "lr / (1 + steps · lr_decay)"
        words += " steps counts the steps before."
    first = f"old − lr · {grad} / (√(initial_accumulator_value + {grad}²) + eps)"
    return UpdateRule(f"old − {rate} · {grad} / (√total + eps)", words, first)


def _adadelta(options: Mapping[str, ParamValue], grad: str) -> UpdateRule:
    words = "square and moved are running means of the gradient's square and of the steps' square."
    first = f"old − lr · √(eps) / √((1 − rho) · {grad}² + eps) · {grad}"
    return UpdateRule(f"old − lr · √(moved + eps) / √(square + eps) · {grad}", words, first)


def _adamax(options: Mapping[str, ParamValue], grad: str) -> UpdateRule:
    words = (
        "mean is a running mean of the gradient, corrected for its start at 0; largest is the"
        " largest size of a gradient, those before it shrunk by the second of betas."
    )
    return UpdateRule("old − lr · mean / largest", words, f"old − lr · {grad} / (|{grad}| + eps)")


def _radam(options: Mapping[str, ParamValue], grad: str) -> UpdateRule:
    words = (
        "As Adam, with trust in the running square growing from 0: the first steps are"
        " old − lr · mean."
    )
    return UpdateRule("old − lr · trust · mean / (√square + eps)", words, f"old − lr · {grad}")


def _asgd(options: Mapping[str, ParamValue], grad: str) -> UpdateRule:
    words = "eta falls from lr: lr / (1 + lambd · lr · steps)^alpha."
    shrunk = "(1 − lambd · {0}) · old − {0} · " + grad
    return UpdateRule(shrunk.format("eta"), words, shrunk.format("lr"))


def _rprop(options: Mapping[str, ParamValue], grad: str) -> UpdateRule:
    words = (
        "size begins as lr. It grows while the gradient keeps its sign, and shrinks when the sign"
        " changes, by etas and within step_sizes; after a change of sign there is no step."
    )
    return UpdateRule(f"old − size · sign({grad})", words, f"old − lr · sign({grad})")


_RULES = {
    "optim.SGD": _sgd,
    "optim.Adam": _adam,
    "optim.AdamW": _adamw,
    "optim.RMSprop": _rmsprop,
    "optim.Adagrad": _adagrad,
    "optim.Adadelta": _adadelta,
    "optim.Adamax": _adamax,
    "optim.RAdam": _radam,
    "optim.ASGD": _asgd,
    "optim.Rprop": _rprop,
}
_WORDS = {
    "optim.NAdam": "As Adam, with Nesterov momentum: the mean looks one step ahead.",
    "optim.Adafactor": "As Adam, but keeps only the means of each row and column of a matrix.",
    "optim.LBFGS": "Searches along a direction made of the last gradients: several forward and"
    " backward passes a step, best with the whole data as one batch.",
    "optim.Muon": "For matrices only: makes the singular values of each step about equal. A model"
    " with biases needs another optimizer.",
    "optim.SparseAdam": "Adam for sparse gradients, as those of Embedding(sparse=True).",
}
