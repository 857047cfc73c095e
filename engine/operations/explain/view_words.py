"""The words for operations that give a view, always or if they can."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ..memory.footprint import contiguous_strides
from .indices import index_words
from .layout import runs_of
from .steps import Outcome, Step

Words = tuple[str, Sequence[str]]
Why = str | Callable[[Step, Outcome], str | Words]
"""Why an outcome is what it is, or a function that says so, with or without the rule's steps."""


def breaks_words(shape: tuple[int, ...], stride: tuple[int, ...]) -> list[str]:
    """torch's rule for views with these numbers: the dimensions that can be walked as one."""
    if 0 in shape:
        return ["A tensor without elements reads no cell: any shape without elements fits."]
    lines = []
    for first, last in runs_of(shape, stride):
        length = 1
        for size in shape[first : last + 1]:
            length *= size
        dims = f"Dim {first}" if first == last else f"Dims {first} to {last}"
        lines.append(f"{dims}: {length} elements with stride {stride[last]}.")
        if first > 0:
            lines.append(
                f"Dims {first - 1} and {first} cannot merge: dim {first - 1} has stride"
                f" {stride[first - 1]}, merging needs {length * stride[last]}."
            )
    return lines


def _strides_found(step: Step, done: Outcome) -> Words:
    x, shape = step.operands[0].layout, done.result.shape
    lines = breaks_words(x.shape, x.stride)
    name = step.operation.removesuffix("_as")
    if x.numel and done.kind == "view":
        stride = done.result.stride
        lines.append(
            f"Each dimension of the new shape lies within dimensions that merge: strides {stride}."
        )
    elif x.numel and done.kind == "copy":
        lines.append(f"A dimension of the new shape {shape} spans dimensions that cannot merge.")
    if done.kind == "same":
        return "a tensor of one dimension has nothing to merge: the tensor itself.", ()
    if done.kind == "copy":
        return (
            f"{name}() has to copy: no strides describe shape {shape} in this order.",
            lines,
        )
    if name in ("view", "unflatten"):
        return f"{name}() never copies: new strides read the same cells in the same order.", lines
    return f"{name}() returns a view, because strides describe the new shape.", lines


def _ravel(step: Step, done: Outcome) -> str:
    if done.kind == "copy":
        return "ravel copies unless the tensor is contiguous."
    return "it is contiguous: all its cells are read as one dimension."


def _view(step: Step, done: Outcome) -> str | Words:
    x, made = step.operands[0].layout, done.result
    if not isinstance(step.given(1, "dtype"), torch.dtype):
        return _strides_found(step, done)
    old, new = x.dtype.itemsize, made.dtype.itemsize
    if made.dtype == x.dtype:
        return f"the elements are {x.dtype} already."
    if old == new:
        return f"the same bytes, read as {made.dtype}."
    if old > new:
        return (
            f"the same bytes: each element is read as {old // new} of {made.dtype}.",
            [f"the last size, the other strides and the offset are multiplied by {old // new}"],
        )
    return (
        f"the same bytes: {new // old} elements side by side are read as one of {made.dtype}.",
        [f"the last size, the other strides and the offset are divided by {new // old}"],
    )


def _squeeze(step: Step, done: Outcome) -> str:
    if done.result.ndim == step.operands[0].layout.ndim:
        return "none of these dimensions has size 1, so none is removed: a view of the same shape."
    return "a dimension of size 1 never uses its stride: it can be removed."


_REORDERED = "only shape and strides are permuted; no element moves in memory."
_MARKED = (
    "a mark on the tensor says that imaginary parts are read with the other sign: no number is"
    " written."
)


def _conjugated(step: Step, done: Outcome) -> str:
    """H, mH, conj: turned, and read as the conjugate, which real numbers are already."""
    turned = step.operation not in ("conj", "resolve_conj") and step.operands[0].layout.ndim > 1
    if done.result.dtype.is_complex:
        return f"{_REORDERED} {_MARKED}" if turned else _MARKED
    if turned:
        return f"{_REORDERED} Real numbers are their own conjugates."
    return "real numbers are their own conjugates: the tensor itself."


def _turned(step: Step, done: Outcome) -> str:
    return _REORDERED if done.kind != "same" else "there is nothing to swap: the tensor itself."


def _part(step: Step, done: Outcome) -> str:
    if done.kind == "same":
        return "the numbers are real already: the tensor itself."
    return "a complex number is two real ones side by side: every second one is read."


def _windows(step: Step, done: Outcome) -> str:
    size, step_by = step.given(2, "size"), step.given(3, "step")
    overlap = isinstance(size, int) and isinstance(step_by, int) and step_by < size
    return f"windows are a second stride over the same cells{': they overlap' if overlap else ''}."


def _chunks(step: Step, done: Outcome) -> str:
    dim, chunks = step.given(2, "dim", default=0), step.given(1, "chunks")
    size = max((x.shape[dim] for x in done.results), default=0)
    return f"pieces of {size} (the size divided by {chunks}, rounded up), all of them views."


def _bracketed(step: Step, done: Outcome) -> Words:
    if done.kind == "view":
        why = "whole numbers, slices, None and ... only move strides and offset."
    else:
        why = "a mask or an index tensor may pick any cells in any order: no strides describe that."
    return why, index_words(step)


def _contiguous(step: Step, done: Outcome) -> str:
    x, wanted = step.operands[0].layout, done.result.stride
    order = "C order"
    if wanted != contiguous_strides(x.shape):
        order = format_name(step.given(1, "memory_format"))
    if done.kind == "same":
        held = "is contiguous" if order == "C order" else f"lies as {order}"
        return f"it {held} already: the tensor itself, nothing is copied."
    dim = max(x.strides_off(wanted), default=0)
    return (
        f"dim {dim} has stride {x.stride[dim]} where {order} has {wanted[dim]}: {x.nbytes:,}"
        " bytes are copied."
    )


def format_name(value: object) -> str:
    return str(value).removeprefix("torch.")


_PIECES = "each piece reads its own cells of the same storage: all are views."

WORDS: dict[str, Why] = {
    "view": _view,
    **dict.fromkeys(("view_as", "reshape", "reshape_as", "flatten", "unflatten"), _strides_found),
    "ravel": _ravel,
    **dict.fromkeys(
        ("permute", "transpose", "swapaxes", "swapdims", "t", "T", "mT", "movedim", "moveaxis"),
        _turned,
    ),
    **dict.fromkeys(("conj", "H", "mH", "adjoint"), _conjugated),
    **dict.fromkeys(("real", "imag"), _part),
    "squeeze": _squeeze,
    "unsqueeze": "a dimension of size 1 needs no cell: its stride is never used.",
    **dict.fromkeys(
        ("expand", "expand_as", "broadcast_to"),
        "a stretched dimension has stride 0: all its elements read the same cell, nothing is"
        " copied.",
    ),
    **dict.fromkeys(
        ("detach", "data"),
        "the same storage, without a graph: writing to one is seen in the other.",
    ),
    "narrow": "the same cells from a later start on.",
    "select": "one index is fixed: its dimension disappears, the offset changes.",
    "unbind": "each part fixes one index: all are views.",
    **dict.fromkeys(("split", "tensor_split", "hsplit", "vsplit", "dsplit"), _PIECES),
    "chunk": _chunks,
    "unfold": _windows,
    "diagonal": "one step leads along all the dimensions at once: their strides add up.",
    "as_strided": (
        "the cells are read with exactly these sizes and strides, whatever the tensor's own shape."
    ),
    "__getitem__": _bracketed,
    "contiguous": _contiguous,
}
