"""Indexing, gathering, scattering and sorting: gradients go back to the picked elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..book import enter
from ..linear import Computed
from ..moves import Moves
from ..node_values import NodeValues
from ..pointwise import Pointwise, Setting
from .views import move, written

_PICKED = "Puts the gradient at the places that were picked, zero elsewhere."


def _index(given: NodeValues) -> Any:
    return tuple(slice(None) if i is None else i for i in given.saved_list("indices"))


def _indexed(given: NodeValues, p: Tensor) -> Tensor:
    return torch.ops.aten.index(p, given.saved_list("indices"))


move("IndexBackward0", _PICKED, "Σ g over the places where x was picked", _indexed)
move(
    "IndexSelectBackward0",
    _PICKED,
    "Σ g over the places where x was picked along `dim`",
    lambda given, p: p.index_select(given["dim"], given["index"]),
)
move(
    "GatherBackward0",
    _PICKED,
    "Σ g over the places where `index` names x along `dim`",
    lambda given, p: p.gather(given["dim"], given["index"]),
)
move(
    "TakeBackward0",
    _PICKED,
    "Σ g over the places where x was taken",
    lambda given, p: p.take(given["index"]),
)
move(
    "MaskedSelectBackward0",
    _PICKED,
    "g where the mask is true, 0 elsewhere",
    lambda given, p: p.masked_select(given["mask"]),
)


def _chosen(given: NodeValues, p: Tensor) -> Tensor:
    """The elements that a reduction along `dim` chose, by its saved indices."""
    dim, index = given["dim"], given["indices"]
    if p.dim() == 0:
        return p
    if index.dim() == p.dim():
        return p.gather(dim, index)
    return p.gather(dim, index.unsqueeze(dim)).squeeze(dim)


move(
    "MaxBackward0 MinBackward0 MedianBackward1 NanmedianBackward1 ModeBackward0 KthvalueBackward0"
    " SortBackward0 SortBackward1 TopkBackward0 CummaxBackward0 CumminBackward0",
    "Sends each gradient to the place that held the chosen value, zero elsewhere.",
    "Σ g over the places where x was chosen along `dim`",
    _chosen,
)


def known(p: Tensor | None) -> Tensor:
    """The positions of an input whose shape is known."""
    assert p is not None
    return p


_NOTHING = torch.zeros((), dtype=torch.float64)


def _index_put(given: NodeValues, x: Tensor, v: Tensor | None) -> Tensor:
    return x.index_put(_index(given), _NOTHING if v is None else v)


def _scatter(given: NodeValues, x: Tensor, v: Tensor | None) -> Tensor:
    dim, index = given["dim"], given["index"]
    return x.scatter(dim, index, torch.zeros(index.shape, dtype=x.dtype) if v is None else v)


def _index_copy(given: NodeValues, x: Tensor, v: Tensor | None) -> Tensor:
    dim, index = given["dim"], given["index"]
    return x.index_fill(dim, index, 0) if v is None else x.index_copy(dim, index, v)


for _name, _again in (
    ("IndexPutBackward0", _index_put),
    ("ScatterBackward0", _scatter),
    ("IndexCopyBackward0", _index_copy),
):
    enter(
        _name,
        "The places written over get no gradient; what was written there gets g at those places.",
        Moves("x", "g, 0 at the places written", written(_again)),
        Moves("v", "g at the places where it was written", written(_again)),
        when=lambda given: not given.number("accumulate", False),
    )


def _adds(name: str, read: Callable[[NodeValues], Tensor], when: Any = None) -> None:
    enter(
        name,
        "The tensor that was added to gets g. What was added gets g at its places.",
        Pointwise("x", "g", Setting()),
        Computed("v", "g at the places where it was added", read),
        when=when,
    )


_adds("ScatterAddBackward0", lambda given: given.gradient().gather(given["dim"], given["index"]))
_adds(
    "IndexAddBackward0",
    lambda given: given["alpha"] * given.gradient().index_select(given["dim"], given["index"]),
)
_adds(
    "IndexPutBackward0",
    lambda given: torch.ops.aten.index(given.gradient(), given.saved_list("indices")),
    lambda given: bool(given["accumulate"]),
)
move(
    "ScatterBackward1 IndexFillBackward0",
    "The places written over get no gradient.",
    "g, 0 at the places written",
    lambda given, p: (
        p.index_fill(given["dim"], given["index"], 0)
        if given.node.name.startswith("IndexFill")
        else p.scatter(given["dim"], given["index"], 0)
    ),
)


def _looked_up(given: NodeValues, p: Tensor) -> Tensor:
    index = given["indices"]
    found = p[index]
    padding = given["padding_idx"]
    return found * (index != padding).unsqueeze(-1) if padding >= 0 else found


def _per_use(given: NodeValues) -> Tensor:
    """`scale_grad_by_freq`: each row's sum divided by the number of its look-ups."""
    index, g = given["indices"].reshape(-1), given.gradient()
    rows = torch.zeros(given.shape(), dtype=g.dtype)
    uses = torch.bincount(index, minlength=len(rows)).clamp(min=1)
    found = rows.index_add(0, index, g.reshape(-1, g.shape[-1])) / uses.unsqueeze(-1).to(g.dtype)
    padding = given["padding_idx"]
    if padding >= 0:
        found = found.index_fill(0, torch.tensor([padding]), 0)
    return found


_LOOKED_UP = "Adds each gradient to the row of the table that was looked up."
enter(
    "EmbeddingBackward0",
    _LOOKED_UP,
    Moves(
        "W",
        "Σ g over the places where the row was looked up",
        lambda given, positions: _looked_up(given, known(positions[0])),
    ),
    saved={"W": "weight"},
    when=lambda given: not given["scale_grad_by_freq"],
)
enter(
    "EmbeddingBackward0",
    _LOOKED_UP,
    Computed("W", "Σ g over the places where the row was looked up, over their number", _per_use),
)
