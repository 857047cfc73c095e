"""Views, copies and joins: operations that only move elements; backward moves gradients back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..book import enter, pointwise
from ..input_rules import TextOnly
from ..linear import Computed
from ..moves import Moves, Positions
from ..node_values import MissingValue, NodeValues

_REARRANGED = "Rearranges the gradient back into the input's shape; no number changes."


def move(
    names: str,
    words: str,
    text: str,
    again: Callable[[NodeValues, Tensor], Tensor | Sequence[Tensor]],
) -> None:
    """Enter an operation that moves the elements of one tensor; `again` is the operation."""

    def forward(given: NodeValues, positions: Positions) -> Tensor | Sequence[Tensor]:
        (p,) = positions
        assert p is not None
        return again(given, p)

    enter(names, words, Moves("x", text, forward))


def _as_output(given: NodeValues, p: Tensor) -> Tensor:
    return p.reshape(given.gradient().shape)


move(
    "ViewBackward0 UnsafeViewBackward0 ReshapeAliasBackward0 SqueezeBackward0 SqueezeBackward1"
    " SqueezeBackward2 UnsqueezeBackward0",
    _REARRANGED,
    "g.reshape(shape of x)",
    _as_output,
)
pointwise(
    "CloneBackward0 ToCopyBackward0 AliasBackward0",
    "Passes the gradient on as it is, in the input's dtype.",
    x="g",
)
move(
    "TBackward0",
    "Transposes the gradient back; no number changes.",
    "gᵀ",
    lambda given, p: p.t(),
)
move(
    "TransposeBackward0",
    "Swaps the gradient's dimensions back; no number changes.",
    "g with dim0 and dim1 swapped",
    lambda given, p: p.transpose(given["dim0"], given["dim1"]),
)
move(
    "PermuteBackward0",
    "Permutes the gradient's dimensions back; no number changes.",
    "g, its dimensions permuted back",
    lambda given, p: p.permute(given["dims"]),
)
move(
    "ExpandBackward0",
    "Sums the gradient over the dimensions that were expanded.",
    "Σ g over the expanded dimensions",
    lambda given, p: p.expand(given.gradient().shape),
)
move(
    "RepeatBackward0",
    "Sums the gradients of all copies.",
    "Σ g over the copies",
    lambda given, p: p.repeat(given["repeats"]),
)
move(
    "SelectBackward0",
    "Puts the gradient at the slice that was picked, zero elsewhere.",
    "g at `index` along `dim`, 0 elsewhere",
    lambda given, p: p.select(given["dim"], given["index"]),
)
move(
    "SliceBackward0",
    "Puts the gradient at the part that was taken, zero elsewhere.",
    "g at start:end:step along `dim`, 0 elsewhere",
    lambda given, p: torch.ops.aten.slice(
        p, given["dim"], given.number("start", 0), given.number("end", 2**63 - 1), given["step"]
    ),
)
move(
    "SplitBackward0 UnsafeSplitBackward0",
    "Joins the pieces' gradients again.",
    "cat(g0, g1, …) along `dim`",
    lambda given, p: p.split(given["split_size"], given["dim"]),
)
move(
    "SplitWithSizesBackward0 UnsafeSplitWithSizesBackward0",
    "Joins the pieces' gradients again.",
    "cat(g0, g1, …) along `dim`",
    lambda given, p: p.split(given["split_sizes"], given["dim"]),
)
move(
    "UnbindBackward0",
    "Stacks the slices' gradients again.",
    "stack(g0, g1, …) along `dim`",
    lambda given, p: p.unbind(given["dim"]),
)
move(
    "UnfoldBackward0",
    "Windows overlap: each element sums the gradients of all windows that it lies in.",
    "Σ g over the windows that hold x",
    lambda given, p: p.unfold(given["dimension"], given["size"], given["step"]),
)
move(
    "FlipBackward0",
    "Flips the gradient back; no number changes.",
    "g flipped along `dims`",
    lambda given, p: p.flip(given["dims"]),
)
move(
    "RollBackward0",
    "Rolls the gradient back; no number changes.",
    "g rolled by -shifts",
    lambda given, p: p.roll(given["shifts"], given["dims"]),
)
move(
    "Rot90Backward0",
    "Turns the gradient back; no number changes.",
    "g turned back by 90° · k",
    lambda given, p: p.rot90(given["k"], given["dims"]),
)
move(
    "TrilBackward0",
    "Keeps the gradient on and below the diagonal.",
    "tril(g)",
    lambda given, p: p.tril(given["diagonal"]),
)
move(
    "TriuBackward0",
    "Keeps the gradient on and above the diagonal.",
    "triu(g)",
    lambda given, p: p.triu(given["diagonal"]),
)
move(
    "DiagonalBackward0 DiagonalBackward0_copy",
    "Puts the gradient on the diagonal, zero elsewhere.",
    "g on the diagonal, 0 elsewhere",
    lambda given, p: p.diagonal(given["offset"], given["dim1"], given["dim2"]),
)
move(
    "DiagEmbedBackward0",
    "Takes the diagonal of the gradient.",
    "the diagonal of g",
    lambda given, p: p.diag_embed(given["offset"], given["dim1"], given["dim2"]),
)
move(
    "PixelShuffleBackward0",
    "Shuffles the gradient back; no number changes.",
    "pixel_unshuffle(g)",
    lambda given, p: F.pixel_shuffle(p, given["upscale_factor"]),
)
move(
    "PixelUnshuffleBackward0",
    "Shuffles the gradient back; no number changes.",
    "pixel_shuffle(g)",
    lambda given, p: F.pixel_unshuffle(p, given["downscale_factor"]),
)
move(
    "ChannelShuffleBackward0",
    "Shuffles the channels of the gradient back; no number changes.",
    "g, its channels shuffled back",
    lambda given, p: F.channel_shuffle(p, given["groups"]),
)
move(
    "ConstantPadNdBackward0",
    "Cuts the padding off the gradient.",
    "g without the padding",
    lambda given, p: F.pad(p, given["pad"]),
)


def _mode(mode: str) -> Callable[[NodeValues, Tensor], Tensor]:
    return lambda given, p: F.pad(p, given["padding"], mode=mode)


for _name, _how in (("Reflection", "reflect"), ("Replication", "replicate")):
    for _rank in (1, 2, 3):
        move(
            f"{_name}Pad{_rank}DBackward0",
            "Cuts the padding off, and adds its gradients to the elements that were copied there.",
            "Σ g over x and its copies in the padding",
            _mode(_how),
        )


def _trace(given: NodeValues) -> Tensor:
    return torch.eye(*given.shape(), dtype=given.gradient().dtype) * given.gradient()


enter(
    "TraceBackward0",
    "Each element of the diagonal gets g, the others nothing.",
    Computed("x", "g on the diagonal, 0 elsewhere", _trace),
)

# -- joins -----------------------------------------------------------------------------------------


def _cat(given: NodeValues, positions: Positions) -> Tensor:
    dim, whole = given["dim"], given.gradient().shape
    known = [p for p in positions if p is not None]
    missing = len(positions) - len(known)
    if missing > 1:
        raise MissingValue("the sizes of the parts that need no gradient")
    left = whole[dim] - sum(p.shape[dim] for p in known)
    size = list(whole)
    size[dim] = left
    return torch.cat([torch.zeros(size) if p is None else p for p in positions], dim)


def _stack(given: NodeValues, positions: Positions) -> Tensor:
    like = next(p for p in positions if p is not None)
    return torch.stack(
        [torch.zeros_like(like) if p is None else p for p in positions], given["dim"]
    )


enter(
    "CatBackward0",
    "Cuts the gradient into the pieces that were joined.",
    Moves("x", "g at its own part along `dim`", _cat),
    each=True,
)
enter(
    "StackBackward0",
    "Gives each tensor the slice of the gradient at its own place.",
    Moves("x", "g at its own place along `dim`", _stack),
    each=True,
)

# -- parts written over ----------------------------------------------------------------------------


def written(
    write: Callable[[NodeValues, Tensor, Any], Tensor],
) -> Callable[[NodeValues, Positions], Tensor]:
    """The `forward` of a Moves for an operation that overwrites a part of `x` with `v`; an input
    whose shape is unknown is None."""

    def forward(given: NodeValues, positions: Positions) -> Tensor:
        x, v = positions
        if x is None:
            x = torch.zeros(given.gradient().shape, dtype=torch.float64)
        return write(given, x, v)

    return forward


def _written_over(
    name: str, take: Callable[[NodeValues, Tensor], Tensor], put: Any, text: str
) -> None:
    def again(given: NodeValues, x: Tensor, v: Tensor | None) -> Tensor:
        return put(given, x, torch.zeros_like(take(given, x)) if v is None else v)

    enter(
        name,
        "The part written over gets no gradient; what was written there gets that part of g.",
        Moves("x", f"g, 0 at {text}", written(again)),
        Moves("v", f"g at {text}", written(again)),
    )


_written_over(
    "SliceScatterBackward0",
    lambda given, x: torch.ops.aten.slice(
        x, given["dim"], given.number("start", 0), given.number("end", 2**63 - 1), given["step"]
    ),
    lambda given, x, v: x.slice_scatter(
        v, given["dim"], given.number("start", 0), given.number("end", 2**63 - 1), given["step"]
    ),
    "start:end:step along `dim`",
)
_written_over(
    "SelectScatterBackward0",
    lambda given, x: x.select(given["dim"], given["index"]),
    lambda given, x, v: x.select_scatter(v, given["dim"], given["index"]),
    "`index` along `dim`",
)
_written_over(
    "DiagonalScatterBackward0",
    lambda given, x: x.diagonal(given["offset"], given["dim1"], given["dim2"]),
    lambda given, x, v: x.diagonal_scatter(v, given["offset"], given["dim1"], given["dim2"]),
    "the diagonal",
)
pointwise(
    "CopyBackwards",
    "Everything was overwritten: the old values get nothing, the new ones g.",
    x="0",
    v="g",
)
enter(
    "AsStridedBackward0",
    "Each cell of memory sums the gradients of all elements that lay over it.",
    TextOnly("x", "Σ g over the elements that lie over x in memory"),
)
enter(
    "CopySlices",
    "A part of a tensor was written in place, through a view: the part's gradient goes through the"
    " rule of what was written, the rest passes on.",
    TextOnly("x", "g, and at the written part the rule of the operation applied to g"),
    TextOnly("v", "the rule of the operation applied to g at the written part"),
)
