"""The index of `x[index]`, and the numbers of index tensors and masks. Fake tensors have none, so
small ones are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .layout import Layout, layout_of
from .steps import NoRule, Refusal, Step, Term

MASKS = (torch.bool, torch.uint8)
INDICES = (torch.int64, torch.int32)
MAX_COUNTED = 1 << 24
"""A mask of up to this many elements is counted: the count is the size of what it picks."""
MAX_CHECKED = 1 << 20
"""Up to this many indices are compared with the size of their dimension."""


@dataclass(frozen=True)
class Item:
    """One item of an index. It indexes `taken` dimensions of the tensor, from `dim` on. `value` is
    a Term for an index tensor, a mask or a list of numbers."""

    value: Any
    dim: int
    taken: int

    @property
    def is_mask(self) -> bool:
        return isinstance(self.value, Term) and self.value.layout.dtype in MASKS


def items_of(step: Step) -> list[Item]:
    """The items of the index of `x[index]`. A list of numbers is an index tensor, a list of other
    things a tuple of items (torch's `treatSequenceAsTuple`), a 0-D tensor its number."""
    x, index = step.operands[0].layout, step.args[1]
    if isinstance(index, list) and len(index) < 32:
        parts = (Term, list, tuple, slice, str)
        if any(item is None or item is Ellipsis or isinstance(item, parts) for item in index):
            index = tuple(index)
    values = [_readable(step, i) for i in (index if isinstance(index, tuple) else (index,))]
    taken = sum(map(_dims_of, values))
    found, dim = [], 0
    for value in values:
        count = max(x.ndim - taken, 0) if value is Ellipsis else _dims_of(value)
        found.append(Item(value, dim, count))
        dim += count
    return found


def _dims_of(value: Any) -> int:
    if value is None or value is Ellipsis or isinstance(value, bool):
        return 0
    if isinstance(value, Term) and value.layout.dtype in MASKS:
        return value.layout.ndim
    return 1


def _readable(step: Step, value: Any) -> Any:
    if isinstance(value, Term) and not value.layout.ndim and _is_whole(value.layout):
        number = value.read(1)
        if number is None:
            raise NoRule("an index that must be computed first")
        return bool(number) if value.layout.dtype in MASKS else int(number)
    if not isinstance(value, list | tuple):
        return value
    try:
        t = torch.tensor(value, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        raise NoRule("a list of other things than numbers as an index") from None
    return _constant(step, t if t.numel() else t.long())


def _constant(step: Step, t: torch.Tensor) -> Term:
    return Term("", layout_of(t), step.runner, leaf=t)


def fake_arguments(step: Step) -> Sequence[Any]:
    """The arguments for fake mode, in which no numbers of tensors can be read: a mask is replaced
    by an index tensor for each of its dimensions, a 0-D tensor by its number."""
    if step.operation not in ("__getitem__", "__setitem__"):
        return step.args
    index: list[Any] = []
    for item in items_of(step):
        if item.is_mask:
            _check_fits(step.operands[0].layout, item)
            columns = torch.empty((_true_count(item.value), item.taken), dtype=torch.int64)
            index += [_constant(step, column) for column in columns.unbind(1)]
        else:
            index.append(item.value)
    return [step.args[0], tuple(index), *step.args[2:]]


def _is_whole(layout: Layout) -> bool:
    return not (layout.dtype.is_floating_point or layout.dtype.is_complex)


def _check_fits(x: Layout, item: Item) -> None:
    mask, covered = item.value.layout.shape, x.shape[item.dim : item.dim + item.taken]
    for d, (size, there) in enumerate(zip(mask, covered, strict=False)):
        if size != there:
            raise IndexError(  # in torch's words
                f"The shape of the mask {list(mask)} at index {d} does not match the shape of the"
                f" indexed tensor {list(x.shape)} at index {item.dim + d}"
            )


def _true_count(mask: Term) -> int:
    numbers = mask.read(MAX_COUNTED)
    if numbers is None:
        raise NoRule("a mask of this size: how many are True must be counted first")
    return int(numbers.count_nonzero())


# -- words ---------------------------------------------------------------------------------------


def index_words(step: Step) -> list[str]:
    """For each item of an index, what it does to offset and strides."""
    x, lines, place = step.operands[0].layout, [], 0
    for item in items_of(step):
        value = item.value
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if value is None:
            lines.append(f"None: a new dimension, dim {place}, of size 1")
        elif isinstance(value, bool):
            kept = "is kept: everything is picked"
            lines.append(
                f"{value}: a mask without dimensions; its one place"
                f" {kept if value else 'is not kept: nothing is picked'}"
            )
        elif isinstance(value, Term):
            lines.append(_picked_words(item))
        elif is_number and item.dim < x.ndim:
            lines.append(f"{value}: offset + {value % x.shape[item.dim]}·{x.stride[item.dim]}")
        elif isinstance(value, slice) and value != slice(None) and item.dim < x.ndim:
            start, _, step_by = value.indices(x.shape[item.dim])
            stride = x.stride[item.dim]
            lines.append(
                f"{_slice_text(value)}: offset + {start}·{stride}, stride {stride}·{step_by}"
            )
        place += 0 if is_number else max(item.taken, value is None or isinstance(value, bool))
    return lines


def _picked_words(item: Item) -> str:
    mask = item.value.layout
    if not item.is_mask:
        return f"an index tensor of shape {mask.shape} in place of dim {item.dim}"
    return f"a mask of shape {mask.shape}: {_true_count(item.value)} of {mask.numel} are True"


def _slice_text(item: slice) -> str:
    ends = ("" if end is None else str(end) for end in (item.start, item.stop))
    return ":".join(ends) + ("" if item.step is None else f":{item.step}")


# -- ranges --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _IndexedDim:
    """An index tensor, and the dimension of `size` elements that it picks from."""

    index: Term
    size: int
    dim: int
    raises: type[Exception] | None = None
    from_end: bool = False


_GATHERING = ("gather", "scatter", "scatter_add", "scatter_reduce")
_SELECTING = ("index_select", "index_add", "index_copy", "index_fill")


def _indexed_dims(step: Step) -> Iterator[_IndexedDim]:
    name = step.operation.rstrip("_")
    if step.operation in ("__getitem__", "__setitem__"):
        x = step.operands[0].layout
        for item in items_of(step):
            if isinstance(item.value, Term) and not item.is_mask and item.dim < x.ndim:
                yield _IndexedDim(item.value, x.shape[item.dim], item.dim, IndexError, True)
        return
    tensor, index, dim = step.given(0, "input"), step.given(2, "index"), step.given(1, "dim")
    raises = RuntimeError if name in _GATHERING else None
    if name == "embedding":
        tensor, index, dim, raises = step.given(1, "weight"), tensor, 0, IndexError
    elif name in ("take", "take_along_dim"):
        index, dim = step.given(1, "index", "indices"), step.given(2, "dim")
        if dim is not None:
            return  # it takes indices modulo the size: none is out of range
        raises = IndexError if name == "take" else RuntimeError
    elif name not in (*_GATHERING, *_SELECTING):
        return
    if not isinstance(tensor, Term) or not isinstance(index, Term):
        return
    if dim is None:
        yield _IndexedDim(index, tensor.layout.numel, 0, raises, from_end=name == "take")
    elif type(dim) is int:
        dim %= max(tensor.layout.ndim, 1)
        yield _IndexedDim(index, (tensor.layout.shape or (1,))[dim], dim, raises)


def check_ranges(step: Step) -> str:
    """Raises Refusal for the first index that is out of range. Returns what could not be checked,
    in words: "" unless there are too many indices."""
    unless = ""
    for asked in _indexed_dims(step):
        if asked.index.layout.dtype in INDICES and asked.index.layout.numel:
            unless = _check_range(asked) or unless
    return unless


def _check_range(asked: _IndexedDim) -> str:
    values, size = asked.index.read(MAX_CHECKED), asked.size
    if values is None:
        return (
            f"an index lies outside dim {asked.dim}, which has {size} elements (the"
            f" {asked.index.layout.numel:,} indices are too many to be checked beforehand)"
        )
    least = -size if asked.from_end else 0
    places = ((values < least) | (values >= size)).nonzero()
    if not len(places):
        return ""
    place = tuple(int(at) for at in places[0])
    where = f", the index's element {place if len(place) != 1 else place[0]}," if place else ""
    hint = f"Choose from {least} to {size - 1}." if size else "This dimension is empty."
    if int(values[place]) < 0 and not asked.from_end:
        hint += " Negative indices do not count from the end here."
    raise Refusal(
        f"index {int(values[place])}{where} is out of range: dim {asked.dim} has {size} elements.",
        hint,
        raises=asked.raises,
    )
