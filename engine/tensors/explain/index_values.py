"""What index tensors hold, read before the operation runs, as far as that costs little."""

from __future__ import annotations

from .layout import Layout
from .registry import NotCovered, Refusal

MAX_COUNTED = 1 << 24
"""Masks are counted, to know the shape of what they pick, up to this many elements."""
MAX_CHECKED = 1 << 20
"""Indices are held against the size of their dimension up to this many."""


def _is_known(x: Layout, most: int) -> bool:
    return x.data is not None and x.device != "meta" and x.numel <= most


def true_count(mask: Layout) -> int:
    """How many elements of a mask are True. Raises NotCovered for large ones."""
    if mask.data is None or not _is_known(mask, MAX_COUNTED):
        raise NotCovered("a mask of this size: how many are True must be counted first")
    return int(mask.data().count_nonzero())


def whole_number(item: Layout) -> int:
    """The only element of an index. Raises NotCovered when reading it would take long."""
    if item.data is None or not _is_known(item, 1):
        raise NotCovered("an index that must be computed first")
    return int(item.data().item())


def check_range(
    index: Layout,
    size: int,
    dim: int,
    *,
    raises: type[Exception],
    from_end: bool = False,
) -> str:
    """Raises Refusal, which names the first index that lies outside a dimension of `size`
    elements; with `from_end` negative ones count from the end. Returns what is left open, in
    words: "" unless there are too many indices to look at."""
    if index.numel == 0:
        return ""
    if index.data is None or not _is_known(index, MAX_CHECKED):
        return (
            f"an index lies outside dimension {dim}, which has {size} elements (the"
            f" {index.numel:,} indices are too many to be checked beforehand)"
        )
    values, least = index.data(), -size if from_end else 0
    outside = (values < least) | (values >= size)
    places = outside.nonzero()
    if not len(places):
        return ""
    place = tuple(int(at) for at in places[0])
    where = f", the index's element {place if len(place) != 1 else place[0]}," if place else ""
    hint = f"Choose from {least} to {size - 1}." if size else "It has none to choose from."
    if int(values[place]) < 0 and not from_end:
        hint += " Negative ones do not count from the end here."
    raise Refusal(
        f"index {int(values[place])}{where} is out of range: dimension {dim} has {size} elements.",
        hint,
        raises=raises,
    )
