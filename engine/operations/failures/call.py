"""A call that torch refused, with the shapes of its tensors, and the rows of its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...protocol import FailedOperand
from ...system.errors import sendable

MAX_OPERANDS = 8
MAX_DIMS = 12
MAX_TEXT = 60

Shape = tuple[int, ...]


@dataclass(frozen=True)
class CallTensor:
    """A tensor of a call. `text` is its expression in the source; `extremes` are the smallest and
    the largest element of an integer tensor."""

    text: str
    shape: Shape
    dtype: str = "float32"
    device: str = "cpu"
    stride: Shape | None = None
    extremes: tuple[int, int] | None = None


@dataclass(frozen=True)
class Call:
    """A call of the operation `name` (`"add_"`, `"__getitem__"`), and torch's message."""

    name: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""

    @property
    def tensors(self) -> list[CallTensor]:
        found: list[CallTensor] = []
        for value in (*self.args, *self.kwargs.values()):
            items = value if isinstance(value, list | tuple) else (value,)
            found += [item for item in items if isinstance(item, CallTensor)]
        return found

    def given(self, place: int, *names: str, default: Any = None) -> Any:
        """The argument at a place or with one of the names, else `default`."""
        for name in names:
            if name in self.kwargs:
                return self.kwargs[name]
        return self.args[place] if len(self.args) > place else default


def row(
    seen: CallTensor,
    cells: Sequence[int | str] | None = None,
    columns: Sequence[int] | None = None,
    failing: Sequence[int] = (),
    **more: Any,
) -> FailedOperand:
    cells = seen.shape if cells is None else cells
    return FailedOperand(
        text=clip(seen.text),
        cells=tuple(cells),
        columns=tuple(range(len(cells)) if columns is None else columns),
        failing=tuple(sorted(failing)),
        dtype=seen.dtype,
        device=seen.device,
        **more,
    )


def headings_of(rows: Sequence[FailedOperand]) -> tuple[str, ...]:
    """The heading of each column: the number of its dimension, from 0."""
    count = 1 + max((column for row in rows for column in row.columns), default=-1)
    return tuple(map(str, range(count)))


def sizes_asked(call: Call) -> Shape | None:
    """The sizes in `f(x, 2, 3)`, `f(x, (2, 3))` or `f(x, size=(2, 3))`."""
    named = [call.kwargs[key] for key in ("size", "shape", "dims") if key in call.kwargs]
    values = named[0] if named else call.args[1:]
    if len(values) == 1 and isinstance(values[0], list | tuple):
        values = values[0]
    if not values or not all(type(value) is int for value in values):
        return None
    return tuple(values[:MAX_DIMS])


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clip(text: str) -> str:
    return sendable(text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…")
