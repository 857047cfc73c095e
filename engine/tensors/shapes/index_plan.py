"""Where each element of an indexing's result comes from, worked out without running it.

torch's rules (they follow NumPy's "Advanced indexing" but for one thing: integers are taken
first, so that they count as slices when it is asked whether index tensors stand side by side).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ...protocol import Cells, PickPart
from .index_text import Indexing

Shape = tuple[int, ...]


@dataclass
class Plan:
    """Where each element of the result comes from, per dimension of the source: at a `fixed`
    index; in a `ranges` (start, step, length, dimension of the result); or through `tables`,
    index tensors that are all of the result's `block` (its first dimension, its shape)."""

    shape: Shape = ()
    fixed: dict[int, int] = field(default_factory=dict)
    ranges: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    tables: dict[int, torch.Tensor] = field(default_factory=dict)
    block: tuple[int, Shape] = (0, ())
    parts: tuple[PickPart, ...] = ()

    def source_of(self, element: Shape) -> Shape:
        """The element of the source that `element` of the result is."""
        first, block_shape = self.block
        in_block = element[first : first + len(block_shape)]
        found = dict(self.fixed)
        found |= {d: start + step * element[r] for d, (start, step, _, r) in self.ranges.items()}
        found |= {d: int(table[in_block]) for d, table in self.tables.items()}
        return tuple(found[d] for d in sorted(found))

    def elements_from(self, place: Shape, most: int) -> list[Shape]:
        """The elements of the result that come from an element of the source, `most` at most."""
        if any(at != place[d] for d, at in self.fixed.items()):
            return []
        element = [0] * len(self.shape)
        for d, (start, step, length, r) in self.ranges.items():
            element[r], between = divmod(place[d] - start, step)
            if between or not 0 <= element[r] < length:
                return []
        if not self.tables:
            return [tuple(element)]
        meets = torch.stack([table == place[d] for d, table in self.tables.items()]).all(dim=0)
        first, block_shape = self.block
        found = []
        for in_block in meets.nonzero()[:most].tolist():
            element[first : first + len(block_shape)] = in_block
            found.append(tuple(element))
        return found

    def counts(self, cells: Cells) -> np.ndarray:
        """How often each cell of a window of the source was picked: int64 of shape `cells.size`."""
        counts = np.ones(cells.size, np.int64)
        if self.tables:
            counts = counts * self._table_counts(cells)
        for d, (first, size) in enumerate(zip(cells.start, cells.size, strict=True)):
            at = np.arange(first, first + size)
            if d in self.fixed:
                picked = at == self.fixed[d]
            elif d in self.ranges:
                start, step, length, _ = self.ranges[d]
                picked = ((at - start) % step == 0) & (at >= start) & (at < start + step * length)
            else:
                continue
            counts = counts * picked.reshape([-1 if k == d else 1 for k in range(counts.ndim)])
        return counts

    def _table_counts(self, cells: Cells) -> np.ndarray:
        """Of shape `cells.size` with 1 in the dimensions that no table indexes."""
        shown = [size if d in self.tables else 1 for d, size in enumerate(cells.size)]
        places = {d: table.reshape(-1).numpy() - cells.start[d] for d, table in self.tables.items()}
        inside = np.logical_and.reduce(
            [(at >= 0) & (at < cells.size[d]) for d, at in places.items()]
        )
        counts = np.zeros(shown, np.int64)
        where = tuple(
            places[d][inside] if d in places else np.zeros(int(inside.sum()), np.int64)
            for d in range(len(shown))
        )
        np.add.at(counts, where, 1)
        return counts


def plan_of(indexing: Indexing, shape: Shape) -> Plan:
    """The plan of an index that torch accepts for `shape`."""
    if indexing.call:
        return _call_plan(indexing, shape)
    return _bracket_plan(indexing.items, indexing.texts, shape)


# -- brackets --------------------------------------------------------------------------------------


def _bracket_plan(items: tuple[Any, ...], texts: tuple[str, ...], shape: Shape) -> Plan:
    items, texts = _whole_index(items, texts, shape)
    plan = Plan()
    pieces: list[tuple[str, int, Any]] = []  # what makes dimensions of the result: kind, part, it
    dims_of: list[tuple[int, ...]] = []
    d = 0
    for number, item in enumerate(items):
        first = d
        if item is None:
            pieces.append(("new", number, 1))
        elif isinstance(item, int):
            plan.fixed[d] = item % shape[d]
            d += 1
        elif isinstance(item, slice):
            start, stop, step = item.indices(shape[d])
            pieces.append(("range", number, (d, start, step, len(range(start, stop, step)))))
            d += 1
        else:
            tables = item.nonzero(as_tuple=True) if item.dtype == torch.bool else (item.long(),)
            for table in tables:
                plan.tables[d] = torch.where(table < 0, table + shape[d], table)
                d += 1
            pieces.append(("table", number, None))
        dims_of.append(tuple(range(first, d)))
    block_shape: Shape = ()
    if plan.tables:
        block_shape = tuple(torch.broadcast_shapes(*(t.shape for t in plan.tables.values())))
        plan.tables = {d: t.expand(block_shape) for d, t in plan.tables.items()}
    made = _place(pieces, plan, block_shape)
    parts = [
        PickPart(text, _rule(item, dims, shape, plan), dims, made.get(number, ()))
        for number, (item, text, dims) in enumerate(zip(items, texts, dims_of, strict=True))
    ]
    plan.parts = tuple(parts)
    return plan


def _whole_index(
    items: tuple[Any, ...], texts: tuple[str, ...], shape: Shape
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """The index with a `:` for every dimension that `...`, or the end, leaves out."""
    taken = sum(
        item.ndim if isinstance(item, torch.Tensor) and item.dtype == torch.bool
        else 0 if item is None or item is Ellipsis else 1
        for item in items
    )  # fmt: skip
    rest = len(shape) - taken
    at = next((k for k, item in enumerate(items) if item is Ellipsis), len(items))
    written = "..." if at < len(items) else ""
    return (
        (*items[:at], *(slice(None),) * rest, *items[at + 1 :]),
        (*texts[:at], *(written,) * rest, *texts[at + 1 :]),
    )


def _place(
    pieces: list[tuple[str, int, Any]], plan: Plan, block_shape: Shape
) -> dict[int, tuple[int, ...]]:
    """Give each piece its dimensions of the result, and return them by part: index tensors side by
    side make theirs in their place, others in front."""
    at = [k for k, (kind, _, _) in enumerate(pieces) if kind == "table"]
    together = at == list(range(at[0], at[0] + len(at))) if at else False
    made: dict[int, tuple[int, ...]] = {}
    sizes: list[int] = []

    def place_block() -> None:
        plan.block = (len(sizes), block_shape)
        block = tuple(range(len(sizes), len(sizes) + len(block_shape)))
        sizes.extend(block_shape)
        made.update({pieces[k][1]: block for k in at})

    if at and not together:
        place_block()
    for k, (kind, number, piece) in enumerate(pieces):
        if kind == "table":
            if together and k == at[0]:
                place_block()
            continue
        made[number] = (len(sizes),)
        if kind == "range":
            d, start, step, length = piece
            plan.ranges[d] = (start, step, length, len(sizes))
            sizes.append(length)
        else:
            sizes.append(1)
    plan.shape = tuple(sizes)
    return made


def _rule(item: Any, dims: tuple[int, ...], shape: Shape, plan: Plan) -> str:
    """What a part of the index does, in words."""
    if item is None:
        return "makes a new dimension of size 1"
    d = dims[0] if dims else 0
    if isinstance(item, int):
        return f"takes index {item % shape[d]} of dimension {d}, which disappears"
    if isinstance(item, slice):
        start, step, length, _ = plan.ranges[d]
        if length == shape[d]:
            return f"keeps all {length} of dimension {d}"
        if not length:
            return f"keeps nothing of dimension {d}"
        step_text = f" in steps of {step}" if step != 1 else ""
        return f"keeps {length} of {shape[d]} of dimension {d}, from {start}{step_text}"
    block = plan.block[1]
    if item.dtype == torch.bool:
        where = f"dimension {d}" if len(dims) == 1 else f"dimensions {dims[0]} to {dims[-1]}"
        return f"picks the {block[-1]} True places of {where}, which become one dimension"
    listed = ", ".join(str(int(at)) for at in item.reshape(-1)[:6])
    more = ", …" if item.numel() > 6 else ""
    return f"picks {listed}{more} of dimension {d}, in this order; it may repeat"


# -- methods ---------------------------------------------------------------------------------------


def _call_plan(indexing: Indexing, shape: Shape) -> Plan:
    name, arguments = indexing.call.removesuffix("_"), indexing.arguments
    if name == "index_put":
        return _bracket_plan(arguments[0], indexing.texts * len(arguments[0]), shape)
    if name == "masked_fill":
        mask = arguments[0].expand(shape)
        return _bracket_plan((mask,), indexing.texts, shape)
    if name == "masked_select":
        mask = arguments[0].expand(torch.broadcast_shapes(arguments[0].shape, shape))
        plan = _bracket_plan((mask,), indexing.texts, tuple(mask.shape))
        extra = mask.ndim - len(shape)  # the source is stretched to a larger mask
        plan.tables = {
            d: torch.zeros_like(plan.tables[d + extra]) if size == 1 else plan.tables[d + extra]
            for d, size in enumerate(shape)
        }
        return plan
    if name in ("select", "index_select", "narrow", "index_add", "index_copy", "index_fill"):
        d = arguments[0] % max(len(shape), 1)
        item = arguments[1]
        if name == "narrow":
            item = slice(
                item % shape[d] if item < 0 else item, item % max(shape[d], 1) + arguments[2]
            )
        items = (*(slice(None),) * d, item)
        plan = _bracket_plan(items, ("",) * d + (", ".join(indexing.texts),), shape)
        return plan
    index, d = arguments if name == "take_along_dim" else (arguments[1], arguments[0])
    return _gather_plan(indexing, shape, index, d)


def _gather_plan(indexing: Indexing, shape: Shape, index: torch.Tensor, d: int) -> Plan:
    """result[i, j, k] = source[i, index[i, j, k], k] for dimension 1."""
    d %= len(shape)
    if indexing.call == "take_along_dim":  # the other dimensions broadcast
        joined = torch.broadcast_shapes(_without(index.shape, d), _without(shape, d))
        index = index.expand((*joined[:d], index.shape[d], *joined[d:]))
    tables = {}
    for k, size in enumerate(index.shape):
        own = torch.arange(size).reshape([-1 if j == k else 1 for j in range(index.ndim)])
        tables[k] = torch.zeros_like(own) if k < len(shape) and shape[k] == 1 else own
    tables[d] = torch.where(index < 0, index + shape[d], index).long()
    letters = "ijklmnop"[: len(shape)]
    place = ", ".join(letters)
    at = ", ".join(f"index[{place}]" if k == d else c for k, c in enumerate(letters))
    rule = f"result[{place}] = source[{at}]: the index says where along dimension {d}"
    if indexing.write is not None:
        sign = "+=" if indexing.write.adds else "="
        rule = f"self[{at}] {sign} src[{place}]: the index says where along dimension {d}"
    everywhere = tuple(range(index.ndim))
    return Plan(
        shape=tuple(index.shape),
        tables={k: table.expand(index.shape) for k, table in tables.items()},
        block=(0, tuple(index.shape)),
        parts=(PickPart(", ".join(indexing.texts), rule, (d,), everywhere),),
    )


def _without(shape: Shape | torch.Size, d: int) -> Shape:
    return (*shape[:d], *shape[d + 1 :])
