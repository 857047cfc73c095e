"""The element of the source that each element of `source[index]` comes from.

torch says which dimension of the source becomes which of the result: a tensor without elements,
with a different size in each dimension, is indexed in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ...protocol import Cells, PickPart
from .index_text import Indexing
from .operands import Shape


@dataclass(frozen=True)
class Plan:
    """The elements that an index picks. `shape` is the result's. For each dimension of the source,
    `places` has the picked indices, as a range or a table (an index tensor), and `dims` the
    dimensions of the result that they lie along: none for a single index. All tables have one
    shape and the same dims."""

    shape: Shape
    places: tuple[range | torch.Tensor, ...]
    dims: tuple[tuple[int, ...], ...]
    parts: tuple[PickPart, ...]

    def source_of(self, element: Shape) -> Shape:
        """The element of the source from which `element` of the result is picked."""
        found = []
        for places, dims in zip(self.places, self.dims, strict=True):
            at = tuple(element[r] for r in dims)
            is_table = isinstance(places, torch.Tensor)
            found.append(int(places[at]) if is_table else places[at[0] if at else 0])
        return tuple(found)

    def elements_from(self, place: Shape, most: int) -> list[Shape]:
        """The elements of the result that are picked from one element of the source, at most
        `most`."""
        element, block = [0] * len(self.shape), ()
        meets = torch.tensor(True)
        for places, dims, at in zip(self.places, self.dims, place, strict=True):
            if isinstance(places, torch.Tensor):
                meets, block = meets & (places == at), dims
            elif at not in places:
                return []
            elif dims:
                element[dims[0]] = places.index(at)
        found = []
        for in_block in meets.nonzero()[:most].tolist():
            for r, at in zip(block, in_block, strict=True):
                element[r] = at
            found.append(tuple(element))
        return found

    def counts(self, cells: Cells) -> list[int]:
        """How often each element of a window of the source is picked, in C order."""
        counts = torch.ones(cells.size, dtype=torch.int64)
        inside = torch.tensor(True)
        index: list[torch.Tensor] = [torch.tensor(0)] * len(cells.size)
        for d, (places, start, size) in enumerate(
            zip(self.places, cells.start, cells.size, strict=True)
        ):
            if isinstance(places, torch.Tensor):
                index[d] = places - start
                inside = inside & (index[d] >= 0) & (index[d] < size)
                continue
            picked = [at in places for at in range(start, start + size)]
            counts *= torch.tensor(picked, dtype=torch.int64).reshape(
                [-1 if k == d else 1 for k in range(counts.ndim)]
            )
        if inside.ndim:
            index = [at[inside] if at.ndim else at for at in index]
            shown = [n if at.ndim else 1 for n, at in zip(cells.size, index, strict=True)]
            hits = torch.zeros(shown, dtype=torch.int64)
            counts = counts * hits.index_put_(tuple(index), torch.tensor(1), accumulate=True)
        return counts.reshape(-1).tolist()


def plan_of(indexing: Indexing, shape: Shape) -> Plan:
    """The plan of an index that torch accepts for `shape`."""
    name, arguments, texts = indexing.call.removesuffix("_"), indexing.arguments, indexing.texts
    if name == "":
        return _plan(indexing.items, texts, shape)
    if name == "index_put":
        return _plan(arguments[0], texts * len(arguments[0]), shape)
    if name in ("masked_fill", "masked_select"):
        whole = tuple(torch.broadcast_shapes(arguments[0].shape, shape))
        mask, extra = arguments[0].expand(whole), len(whole) - len(shape)
        plan = _plan((mask,), texts, whole)  # a source smaller than the mask is stretched
        places = _stretched(mask.nonzero(as_tuple=True)[extra:], shape)
        return replace(plan, places=places, dims=plan.dims[extra:])
    if name in ("gather", "scatter", "scatter_add"):
        return _gather_plan(indexing, shape, arguments[1], arguments[0] % len(shape))
    if name == "take_along_dim":  # it broadcasts all dimensions but the indexed one
        index, d = arguments[0], arguments[1] % len(shape)
        sizes = enumerate(zip(index.shape, shape, strict=True))
        wide = [size if own == 1 and k != d else own for k, (own, size) in sizes]
        return _gather_plan(indexing, shape, index.expand(wide), d)
    d, item = arguments[0] % max(len(shape), 1), arguments[1]
    if name == "narrow":
        start = item % shape[d] if item < 0 else item
        item = slice(start, start + arguments[2])
    return _plan((*(slice(None),) * d, item), ("",) * d + (", ".join(texts),), shape)


def _plan(items: tuple[Any, ...], texts: tuple[str, ...], shape: Shape) -> Plan:
    pieces = [(text, item, _by_dim(item)) for text, item in zip(texts, items, strict=True)]
    rest = len(shape) - sum(len(own) for *_, own in pieces)
    dots = next((k for k, item in enumerate(items) if item is Ellipsis), len(items))
    left_out = ("..." if dots < len(items) else "", slice(None), (slice(None),))
    pieces[dots : dots + 1] = [left_out] * rest
    by_dim = [index for *_, own in pieces for index in own]
    tables = [table for table in by_dim if isinstance(table, torch.Tensor)]
    block_shape = torch.broadcast_tensors(*tables)[0].shape if tables else ()
    places = tuple(_places(i, n, block_shape) for i, n in zip(by_dim, shape, strict=True))
    sizes = _sizes_made([own or (None,) for *_, own in pieces], len(shape), len(block_shape))
    dims = tuple(
        tuple(r for r, n in enumerate(sizes) if n == (2 if isinstance(at, torch.Tensor) else d + 3))
        for d, at in enumerate(places)
    )
    new, block_sizes, d = (r for r, n in enumerate(sizes) if n == 1), iter(block_shape), 0
    parts = []
    for text, item, own in pieces:
        taken = tuple(range(d, d + len(own)))
        made = dims[d] if own else (next(new),)
        parts.append(PickPart(text, _rule(item, taken, shape, places), taken, made))
        d += len(own)
    result = (1 if n == 1 else next(block_sizes) if n == 2 else len(places[n - 3]) for n in sizes)
    return Plan(tuple(result), places, dims, tuple(parts))


def _by_dim(item: Any) -> tuple[Any, ...]:
    """An index for each dimension of the source that a part of the index stands for."""
    if isinstance(item, torch.Tensor) and item.dtype == torch.bool:
        return item.nonzero(as_tuple=True)
    return () if item is None or item is Ellipsis else (item,)


def _places(index: Any, size: int, block_shape: Shape) -> range | torch.Tensor:
    if isinstance(index, torch.Tensor):
        return _from_start(index, size).expand(block_shape)
    return range(size)[index] if isinstance(index, slice) else range(size)[index:][:1]


def _sizes_made(pieces: Sequence[tuple[Any, ...]], ndim: int, block_ndim: int) -> torch.Size:
    """The result's sizes when a source of sizes 3, 4, 5, ... is indexed in the same way, with
    slices of whole dimensions and tables of size 2. A size of d + 3 is that of dimension d, 2 that
    of the tables, and 1 that of a new dimension. A last dimension of size 0 is added to the source,
    so that no element is copied."""
    table = torch.zeros((2,) * block_ndim, dtype=torch.int64)
    index = tuple(
        table if isinstance(part, torch.Tensor)
        else None if part is None else slice(None) if isinstance(part, slice) else 0
        for own in pieces for part in own
    )  # fmt: skip
    return torch.empty([*range(3, ndim + 3), 0])[index].shape[:-1]


def _from_start(table: torch.Tensor, size: int) -> torch.Tensor:
    return torch.where(table < 0, table + size, table).long()


def _stretched(tables: Sequence[torch.Tensor], shape: Shape) -> tuple[torch.Tensor, ...]:
    """The tables with 0 for each dimension of size 1, which is stretched."""
    return tuple(table * (size != 1) for table, size in zip(tables, shape, strict=True))


def _rule(
    item: Any, dims: tuple[int, ...], shape: Shape, places: Sequence[range | torch.Tensor]
) -> str:
    """The words for what a part of the index does."""
    if item is None:
        return "makes a new dimension of size 1"
    d, at = dims[0], places[dims[0]]
    if isinstance(item, int):
        return f"takes index {item % shape[d]} of dim {d}, which disappears"
    if isinstance(at, range):
        if len(at) == shape[d]:
            return f"keeps all {len(at)} of dim {d}"
        if not at:
            return f"keeps nothing of dim {d}"
        steps = f" in steps of {at.step}" if at.step != 1 else ""
        return f"keeps {len(at)} of {shape[d]} of dim {d}, from {at.start}{steps}"
    if item.dtype == torch.bool:
        where = f"dim {d}" if len(dims) == 1 else f"dims {d} to {dims[-1]}"
        return f"picks the {at.shape[-1]} True places of {where}, which become one dimension"
    listed = ", ".join(str(int(number)) for number in item.reshape(-1)[:6])
    more = ", …" if item.numel() > 6 else ""
    return f"picks {listed}{more} of dim {d}, in this order; an index may repeat"


def _gather_plan(indexing: Indexing, shape: Shape, index: torch.Tensor, d: int) -> Plan:
    """The plan of gather; for dim 1, result[i, j, k] = source[i, index[i, j, k], k]."""
    places = list(_stretched(torch.meshgrid(*map(torch.arange, index.shape), indexing="ij"), shape))
    places[d] = _from_start(index, shape[d])
    letters = "ijklmnop"[: len(shape)]
    place = ", ".join(letters)
    at = ", ".join(f"index[{place}]" if k == d else c for k, c in enumerate(letters))
    rule = f"result[{place}] = source[{at}]"
    if indexing.write is not None:
        rule = f"self[{at}] {'+=' if indexing.write.adds else '='} src[{place}]"
    rule = f"{rule}: the index gives the place along dim {d}"
    everywhere = tuple(range(index.ndim))
    part = PickPart(", ".join(indexing.texts), rule, (d,), everywhere)
    return Plan(tuple(index.shape), tuple(places), (everywhere,) * len(shape), (part,))
