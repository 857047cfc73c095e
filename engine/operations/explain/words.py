"""The words for an outcome, by its operation or its kind, and for a refusal, with the numbers of
the operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...tensors.error_help import meaning_of
from . import copy_words, view_words
from .indices import index_words
from .layout import Ints
from .steps import Kind, Outcome, Refusal, Step, Term

_STEP_WORDS = view_words.WORDS | copy_words.WORDS

_OF_KIND: dict[Kind, str] = {
    "view": "new strides read the same cells: nothing is copied.",
    "same": "there is nothing to do: the tensor itself.",
    "copy": copy_words.NEW,
    "in place": "the cells are overwritten: every tensor with this storage sees it, and its"
    " version increases by one.",
}
_RANKS = {"mm": (2, 2), "mv": (2, 1), "bmm": (3, 3)}
_RESHAPING = ("squeeze_", "unsqueeze_", "transpose_", "swapaxes_", "swapdims_", "t_", "detach_")


def with_words(
    step: Step, done: Outcome, warned: Sequence[str], written_to: Ints | None
) -> Outcome:
    """`done` with its words: torch's warnings, the rule, then what was not checked. `written_to` is
    the shape that `x[index] = value` assigns to."""
    why, reasoning = _words_of(step, done, written_to)
    warnings = [f"torch warns here: {_sentence(text)}" for text in warned]
    left_open = [f"not checked: torch refuses if {done.unless}"] if done.unless else []
    said = (*warnings, *(text for text in reasoning if text), *left_open)
    return replace(done, why=why, reasoning=said)


def _words_of(step: Step, done: Outcome, written_to: Ints | None) -> view_words.Words:
    name = step.operation
    if written_to is not None:
        if step.args[1] is False:
            return "False picks nothing: nothing is written.", ()
        return f"{written_to or 'one'} cells of it are overwritten.", index_words(step)
    if name == "requires_grad_":
        return "only requires_grad changes: operations on it are recorded from now on.", ()
    if done.kind == "in place":
        name = name.removesuffix("_") if name in _RESHAPING else ""
    own = _STEP_WORDS.get(name, copy_words.elementwise if done.kind == "copy" else None)
    if own is None:
        return _OF_KIND[done.kind], ()
    said = own if isinstance(own, str) else own(step, done)
    return (said, ()) if isinstance(said, str) else said


def _sentence(warning: str) -> str:
    """torch's warning without the place in torch's source."""
    return warning.partition(" (Triggered internally")[0].strip()


# -- refusals ------------------------------------------------------------------------------------


def refusal_of(step: Step, error: Exception, certain: bool) -> Refusal:
    """The refusal for an error. `certain` means that torch raises this error, not only fake
    mode."""
    message, hint = meaning_of(str(error)) or (_first_sentence(error), "")
    reasoning: list[str] = []
    if step.operation in ("view", "view_as") and "input tensor's size and stride" in str(error):
        x, asked = step.operands[0].layout, _asked_shape(step)
        message = f"view() cannot copy, and no strides describe shape {asked} in this order."
        reasoning = [
            *view_words.breaks_words(x.shape, x.stride),
            f"A dimension of the new shape {asked} spans dimensions that cannot merge.",
        ]
    elif (met := _not_met(step)) is not None:
        message, hint = met
    raises = type(error) if certain else None
    return Refusal(message, hint, reasoning, raises, said=str(error))


def _asked_shape(step: Step) -> tuple[int, ...]:
    """The shape that was asked for, with the size that -1 stands for."""
    sizes = step.args[1:] or [*step.kwargs.values()]
    if isinstance(sizes[0], Term):
        return sizes[0].layout.shape
    shape = tuple(sizes[0]) if isinstance(sizes[0], tuple | list) else tuple(sizes)
    known = -math.prod(shape)
    return tuple(step.operands[0].layout.numel // known if n == -1 else n for n in shape)


def _not_met(step: Step) -> tuple[str, str] | None:
    """The message and hint for a product whose inner sizes differ; None if they do not."""
    if step.operation not in ("matmul", "mm", "mv", "bmm", "linear") or len(step.operands) < 2:
        return None
    a, b = step.operands[0].layout.shape, step.operands[1].layout.shape
    ranks = _RANKS.get(step.operation)
    if len(a) == 0 or len(b) == 0 or ranks not in (None, (len(a), len(b))):
        return None
    if step.operation == "linear":
        b = tuple(reversed(b))
    inner = b[-min(2, len(b))]
    if a[-1] == inner:
        return None
    where = "second to last" if len(b) > 1 else "only one"
    hint = "Make these two sizes equal."
    if len(b) > 1 and a[-1] == b[-1]:
        hint = "Transpose the second: its .mT would fit."
    elif len(a) > 1 and a[-2] == inner:
        hint = "Transpose the first: its .mT would fit."
    return (
        f"{a} and {b} do not fit: the first has {a[-1]} elements along its last dimension, the"
        f" second {inner} along its {where}, and a product pairs them.",
        hint,
    )


def _first_sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
