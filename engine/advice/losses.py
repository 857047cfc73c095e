"""What is given to a loss function: shapes that broadcast, and what its input was made by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..autograd.formulas.node_values import signed
from ..recording.modes import Running, Tell
from ..recording.recording import Place
from ..tensors.made_by import made_by
from .notes import Notes, argument, is_plain

MAX_STRETCHED = 64
"""The most differences that are noted between two backward calls."""
MAX_LOOKED_AT = 64
"""The most nodes of a loss that are looked at, those near it first."""
VALUES_READ = 3
"""The calls of nll_loss whose values are read: the first ones."""

_SAME_SHAPES = (
    F.mse_loss,
    F.l1_loss,
    F.smooth_l1_loss,
    F.huber_loss,
    F.kl_div,
    F.poisson_nll_loss,
    F.gaussian_nll_loss,
    F.soft_margin_loss,
    F.hinge_embedding_loss,
)
"""Losses that compare element by element, and broadcast."""
_SUBTRACTIONS = (Tensor.sub, torch.sub, Tensor.subtract, torch.subtract)
_REDUCING = frozenset(
    f"{name}Backward{number}"
    for number in (0, 1)
    for name in (
        "Add",
        "Mean",
        "Sum",
        "Pow",
        "Abs",
        "Mul",
        "Div",
        "Sqrt",
        "Neg",
        "Norm",
        "LinalgVectorNorm",
    )
)
"""Nodes of operations that lead from a difference to a loss, which may have other terms."""
_LOGARITHMS = frozenset({"LogSoftmaxBackward0", "LogBackward0", "LogSigmoidBackward0"})


_SQUASHING = {
    "SigmoidBackward0": (
        "sigmoid",
        "lies between 0 and 1",
        "gradients become small, and the loss cannot come near 0",
    ),
    "ReluBackward0": (
        "ReLU",
        "is never below 0",
        "no class can get a negative score, and those at 0 get no gradient",
    ),
}
"""Nodes after which scores have less room than cross_entropy gives them."""


class Losses:
    """Checks each call of a loss function, and each difference that has led to a loss."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._stretched: dict[int, Callable[[], None]] = {}
        """What to tell of a difference, by the sequence number of its node."""
        self._read = 0
        self.told: Mapping[Callable, Tell] = {
            **dict.fromkeys(_SAME_SHAPES, self._compared),
            **dict.fromkeys(_SUBTRACTIONS, self._subtracted),
            F.cross_entropy: self._cross_entropy,
            F.nll_loss: self._nll_loss,
            F.binary_cross_entropy_with_logits: self._bce_with_logits,
        }

    def saw_loss(self, loss: Tensor) -> None:
        """Backward is called on `loss`."""
        if not self._stretched:
            return
        waiting = [loss.grad_fn]
        for _ in range(MAX_LOOKED_AT):
            node = waiting.pop(0) if waiting else None
            if node is None:
                break
            tell = self._stretched.get(node._sequence_nr())
            if tell is not None and node.name().startswith(("Sub", "Rsub")):
                tell()
            if node.name() in _REDUCING:
                waiting += [each for each, _ in node.next_functions if each is not None]
        self._stretched.clear()

    # -- shapes ----------------------------------------------------------------------------------

    def _compared(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        prediction = argument(args, kwargs, 0, "input")
        target = argument(args, kwargs, 1, "target")
        if not is_plain(prediction) or not is_plain(target) or not _stretches(prediction, target):
            return
        name = f"F.{func.__name__}"
        fix = self._reshaped(args, 1, "target", prediction, target, f"{name}(prediction, {{}})")
        tell_broadcast(self._notes, f"`{name}`", prediction, target, fix, self._notes.place())()

    def _subtracted(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        if len(args) != 2 or not is_plain(result) or not result.requires_grad:
            return
        a, b = args
        if not is_plain(a) or not is_plain(b):
            return
        # Of a prediction and a target; pairs of points have both dimensions already.
        if a.numel() != b.numel() or a.ndim == b.ndim or a.requires_grad is b.requires_grad:
            return
        if not _stretches(a, b) or len(self._stretched) >= MAX_STRETCHED:
            return
        prediction, target, index = (a, b, 1) if a.requires_grad else (b, a, 0)
        fix = self._reshaped(
            args, index, "other", prediction, target, "difference = prediction - {}"
        )
        self._notes.is_waiting = True
        self._stretched[result.grad_fn._sequence_nr()] = tell_broadcast(
            self._notes, "The difference", prediction, target, fix, self._notes.place()
        )

    def _reshaped(
        self,
        args: tuple,
        place: int,
        keyword: str,
        prediction: Tensor,
        target: Tensor,
        otherwise: str,
    ) -> str:
        """The line of the call, with the target in the shape of the prediction."""
        name = self._notes.name_of(target, "target")

        def changed(text: str) -> str:
            return f"{text}{suffix_for(target, prediction)}"

        return self._notes.fixed_line(
            self._notes.frame(), args, place, keyword, changed, otherwise.format(changed(name))
        )

    # -- what the input was made by --------------------------------------------------------------

    def _cross_entropy(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        made = _made_by(argument(args, kwargs, 0, "input"))
        if made in _SQUASHING:
            name, limits, effect = _SQUASHING[made]
            self._notes.find(
                "softmax",
                f"`F.cross_entropy` gets the result of a {name}, which {limits}: {effect}.",
                (f"the input was made by {made}", *self._least_between(made, args, kwargs)),
                f"loss = F.cross_entropy(scores, target)  # the scores, before {name}",
                self._notes.place(),
            )
        elif made == "SoftmaxBackward0":
            self._notes.find(
                "softmax",
                "`F.cross_entropy` gets the result of a softmax, and applies log_softmax itself:"
                " gradients become small, and the loss cannot come near 0.",
                (f"the input was made by {made}", self._least(args, kwargs)),
                "loss = F.cross_entropy(scores, target)  # the scores, before softmax",
                self._notes.place(),
            )
        elif made == "LogSoftmaxBackward0":
            self._notes.find(
                "softmax",
                "`F.cross_entropy` gets the result of a log_softmax and applies it once more; the"
                " second one changes nothing.",
                (f"the input was made by {made}",),
                "loss = F.nll_loss(log_probabilities, target)  # or the scores, before log_softmax",
                self._notes.place(),
            )

    def _least(self, args: tuple, kwargs: dict[str, Any]) -> str:
        """The smallest loss that probabilities allow: one class has 1, all others 0."""
        classes = argument(args, kwargs, 0, "input")
        count = classes.shape[1 if classes.ndim > 1 else 0]
        least = math.log(1 + (count - 1) * math.exp(-1))
        return f"with probabilities of {count} classes the loss is at least {least:.3g}"

    def _least_between(self, made: str, args: tuple, kwargs: dict[str, Any]) -> tuple[str, ...]:
        """The smallest loss that scores between 0 and 1 allow, as with probabilities."""
        if made != "SigmoidBackward0":
            return ()
        return (self._least(args, kwargs).replace("probabilities", "scores between 0 and 1"),)

    def _bce_with_logits(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        made = _made_by(argument(args, kwargs, 0, "input"))
        if made in ("SigmoidBackward0", "SoftmaxBackward0"):
            of = made.removesuffix("Backward0").lower()
            self._notes.find(
                "softmax",
                f"`F.binary_cross_entropy_with_logits` gets the result of a {of}, and applies"
                " sigmoid itself: it takes every input for at least 0.5.",
                (f"the input was made by {made}",),
                "loss = F.binary_cross_entropy_with_logits(scores, target)"
                f"  # the scores, before {of}",
                self._notes.place(),
            )

    def _nll_loss(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        given = argument(args, kwargs, 0, "input")
        if is_plain(given) and given.requires_grad:
            self._along(given)
        if self._read >= VALUES_READ or not is_plain(given) or not given.requires_grad:
            return
        if _made_by(given) in _LOGARITHMS:
            return
        self._read += 1
        with torch.no_grad():
            most = float(given.max()) if given.numel() else 0.0
        if most > 0:
            self._notes.find(
                "softmax",
                "`F.nll_loss` takes logarithms of probabilities, which are never above 0; its"
                " input has larger values, so log_softmax is missing.",
                (f"the largest value of the input is {most:.3g}",),
                "loss = F.nll_loss(F.log_softmax(scores, dim=1), target)",
                self._notes.place(),
            )

    def _along(self, given: Tensor) -> None:
        """Tells of a log_softmax over another dimension than that of the classes."""
        node = given.grad_fn
        if node is None or node.name() != "LogSoftmaxBackward0":
            return
        classes = 1 if given.ndim > 1 else 0
        dim = signed(node._saved_dim) % given.ndim  # pyright: ignore[reportAttributeAccessIssue]
        if dim == classes:
            return
        over = "the samples of the batch" if dim == 0 else f"dim {dim}"
        self._notes.find(
            "softmax",
            f"`F.nll_loss` gets a log_softmax over dim={dim}, that is over {over}; the classes are"
            f" dim {classes}, so those of one sample do not add up to 1.",
            (f"the input has shape {tuple(given.shape)}, and was made by log_softmax(dim={dim})",),
            f"log_probabilities = F.log_softmax(scores, dim={classes})",
            self._notes.place(),
        )


def tell_broadcast(
    notes: Notes, what: str, prediction: Tensor, target: Tensor, fix: str, place: Place | None
) -> Callable[[], None]:
    """Tells that a prediction and a target are compared each with each. It keeps neither."""
    shapes = tuple(prediction.shape), tuple(target.shape)
    result = tuple(torch.broadcast_shapes(*shapes))
    return partial(
        notes.find,
        "broadcast",
        f"{what} stretches prediction {shapes[0]} and target {shapes[1]} to {result}: it compares"
        " each prediction with every target, not only with its own.",
        (
            f"prediction {shapes[0]}",
            f"target {shapes[1]}",
            f"compared: {result}, that is {math.prod(result):,} pairs"
            f" in place of {prediction.numel():,}",
        ),
        fix,
        place,
    )


def suffix_for(target: Tensor, prediction: Tensor) -> str:
    """The call that brings a target to the shape of the prediction."""
    old, new = tuple(target.shape), tuple(prediction.shape)
    if target.numel() != prediction.numel():
        return f".expand({', '.join(map(str, new))})"
    if new == (*old, 1):
        return ".unsqueeze(-1)"
    if old == (*new, 1):
        return ".squeeze(-1)"
    return f".reshape({', '.join(map(str, new))})"


def _stretches(a: Tensor, b: Tensor) -> bool:
    """Whether both are stretched by broadcasting, so that the result is larger than both."""
    if a.shape == b.shape:
        return False
    count = math.prod(torch.broadcast_shapes(a.shape, b.shape))
    return count > a.numel() and count > b.numel()


def _made_by(value: Any) -> str:
    return made_by(value) if is_plain(value) else ""
