"""What a rule is: a pure function from layouts to an outcome, found by torch's name for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from .layout import Ints, Layout

Kind = Literal["view", "same", "copy", "in place"]


@dataclass(frozen=True)
class Outcome:
    """What torch will give back, whether it has memory of its own, and why.

    view: a new tensor over an operand's memory; same: the operand itself; copy: new memory;
    in place: the first operand, changed. `reasoning` is the rule, step by step. `many`: torch
    returns a tuple (or list) of `results`, even of one, which may have `names`. `unless` names
    what torch may still refuse it for, because too many numbers would have to be read to know.
    `work` counts elements read or multiplied, where they are more than the results have.
    """

    kind: Kind
    results: tuple[Layout, ...]
    why: str
    reasoning: tuple[str, ...] = ()
    many: bool = False
    names: tuple[str, ...] = ()
    unless: str = ""
    work: int = 0

    @property
    def result(self) -> Layout:
        return self.results[0]


class Refusal(Exception):
    """Torch will raise: what is wrong, what to try, and, where it is predicted, the error's class
    (one of its subclasses may come)."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        reasoning: Sequence[str] = (),
        raises: type[Exception] | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.reasoning = tuple(reasoning)
        self.raises = raises


class NotCovered(Exception):
    """There is no rule for this form of the operation."""


RULES: dict[str, Callable[..., Outcome]] = {}
"""Torch's name (`"transpose"`, `"add_"`) -> the rule. Its parameters are named as torch's; a
tensor is a `Layout`, everything else is the Python value itself."""

R = TypeVar("R", bound=Callable[..., Outcome])


def rule(*names: str) -> Callable[[R], R]:
    def register(function: R) -> R:
        for name in names:
            RULES[name] = function
        return function

    return register


# -- for the rules -------------------------------------------------------------------------------


def wrap(dim: object, ndim: int) -> int:
    """`dim` counted from 0; a tensor without dimensions takes 0 and -1 too. Raises Refusal."""
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise Refusal(f"A dimension is a whole number, not {dim!r}.")
    reach = max(ndim, 1)
    if not -reach <= dim < reach:
        raise Refusal(
            f"There is no dimension {dim}: the tensor has {ndim}.",
            f"Choose one from {-reach} to {reach - 1}.",
            raises=IndexError,
        )
    return dim % reach


def wrap_all(dims: Sequence[Any], ndim: int) -> Ints:
    """Dimensions counted from 0. Raises Refusal when one occurs twice."""
    wrapped = tuple(wrap(dim, ndim) for dim in dims)
    if len(set(wrapped)) < len(wrapped):
        raise Refusal(f"A dimension occurs twice in {tuple(dims)}.", raises=RuntimeError)
    return wrapped


def spread(values: tuple[Any, ...]) -> Ints:
    """Sizes given as `f(2, 3)` or as `f((2, 3))`. Raises Refusal for other things."""
    if len(values) == 1 and isinstance(values[0], tuple | list):
        values = tuple(values[0])
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Refusal(f"Whole numbers are needed here, not {value!r}.")
    return tuple(values)


def view(result: Layout, why: str, reasoning: Sequence[str] = ()) -> Outcome:
    return Outcome("view", (result,), why, tuple(reasoning))


def copy(result: Layout, why: str, reasoning: Sequence[str] = ()) -> Outcome:
    return Outcome("copy", (result,), why, tuple(reasoning))


def same(result: Layout, why: str, reasoning: Sequence[str] = ()) -> Outcome:
    return Outcome("same", (result,), why, tuple(reasoning))
