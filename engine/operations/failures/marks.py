"""The dimensions for which torch refused an operation, found from the operands' shapes.

In the picture, operands are rows. Each kind of operation puts the dimensions that should agree in
one column, and marks those that do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ...protocol import FailedOperand, FailedOperands
from .asked_sizes import elements_marks, permute_marks, split_marks
from .call import MAX_DIMS, MAX_OPERANDS, Call, CallTensor, counted, headings_of, row
from .indexing import embedding_marks, gather_marks, index_marks
from .matching_shapes import broadcast_marks, expand_marks, join_marks
from .products import convolution_marks, product_marks


def failed_operands(call: Call) -> FailedOperands | None:
    """The operands of a call that torch refused; None if it has no tensors."""
    if not call.tensors:
        return None
    for analyse in (
        _devices,
        _dtypes,
        _dimension,
        _batches,
        _labels,
        _ANALYSES.get(call.name, _broadcast_failure),
    ):
        found = analyse(call)
        if found is not None:
            return found
    rows = [row(seen) for seen in call.tensors[:MAX_OPERANDS]]
    return FailedOperands("other", call.name, tuple(rows), headings_of(rows))


_DEVICE_WORDS = re.compile(r"same device|expected device|different devices")
_DTYPE_WORDS = re.compile(
    r"dtype|scalar type|data type|result type|used as indices must be|"
    r"must be (?:torch\.)?(?:int64|bool|long)|a long tensor",
    re.IGNORECASE,
)


def _devices(call: Call) -> FailedOperands | None:
    devices = list(dict.fromkeys(seen.device for seen in call.tensors))
    if len(devices) < 2 or not _DEVICE_WORDS.search(call.message):
        return None
    rows = [row(seen, wrong=("device",)) for seen in call.tensors[:MAX_OPERANDS]]
    text = f"They are on different devices: {' and '.join(devices)}."
    return FailedOperands("device", call.name, tuple(rows), headings_of(rows), text)


def _dtypes(call: Call) -> FailedOperands | None:
    if not _DTYPE_WORDS.search(call.message):
        return None
    seen, indices = call.tensors[:MAX_OPERANDS], _indices(call)
    wrong = [s for s in indices if s.dtype not in ("int64", "int32", "bool", "uint8")]
    wanted = "An index tensor is int64 or bool"
    if not wrong:
        wrong = [s for s in seen if not any(s is index for index in indices)]
        wanted = "The dtypes do not match"
        if len({s.dtype for s in wrong}) < 2:
            return None
    rows = [row(s, wrong=("dtype",) if any(s is w for w in wrong) else ()) for s in seen]
    dtypes = " and ".join(dict.fromkeys(s.dtype for s in wrong))
    text = f"{wanted}: {dtypes}."
    return FailedOperands("dtype", call.name, tuple(rows), headings_of(rows), text)


def _indices(call: Call) -> list[CallTensor]:
    """The tensors of a call that are indices."""
    place = _INDEX_AT.get(call.name)
    index = None if place is None else call.given(place, "index", "indices", "input")
    return Call(call.name, [index]).tensors


_NO_DIM = re.compile(r"Dimension out of range .*but got (-?\d+)\)")


def _dimension(call: Call) -> FailedOperands | None:
    """A `dim` that the tensor does not have."""
    match = _NO_DIM.search(call.message)
    if match is None:
        return None
    asked, seen = int(match[1]), call.tensors[0]
    ndim = len(seen.shape)
    column = asked + ndim if asked < 0 else asked
    if not -MAX_DIMS < column < MAX_DIMS:
        column = ndim if asked > 0 else -1
    shift = max(0, -column)
    tensor = row(seen, columns=[d + shift for d in range(ndim)])
    wanted = FailedOperand("dim", (asked,), (column + shift,), (0,))
    headings = [str(d - shift) if d >= shift else "" for d in range(max(ndim, column + 1) + shift)]
    if asked < 0:
        headings = [str(d - shift - ndim) for d in range(ndim + shift)]
    text = f"{seen.text} has no dim {asked}: it has {counted(ndim, 'dimension')}."
    return FailedOperands("dimension", call.name, (tensor, wanted), tuple(headings), text)


def _batches(call: Call) -> FailedOperands | None:
    """A loss whose operands have different sizes in the first dimension, that of the samples."""
    match = re.search(r"batch_size \((\d+)\) to match target batch_size \((\d+)\)", call.message)
    if match is None or len(call.tensors) < 2:
        return None
    seen = call.tensors[:2]
    rows = [row(s, failing=[0] if s.shape else []) for s in seen]
    text = f"{seen[0].text} holds {match[1]} samples, but {seen[1].text} {match[2]}."
    return FailedOperands("join", call.name, tuple(rows), headings_of(rows), text)


def _labels(call: Call) -> FailedOperands | None:
    """A label of a class for which there is no score."""
    match = re.search(r"Target (-?\d+) is out of bounds", call.message)
    if match is None or len(call.tensors) < 2 or not call.tensors[0].shape:
        return None
    scores, labels = call.tensors[:2]
    place = min(1, len(scores.shape) - 1)
    count = scores.shape[place]
    note = "" if labels.extremes is None else "holds {}…{}".format(*labels.extremes)
    rows = (
        row(scores, failing=[place], note=f"{count} classes, 0…{count - 1}"),
        row(labels, wrong=("note",), note=note),
    )
    text = (
        f"{scores.text} has scores of {count} classes, numbered 0 to {count - 1}, and"
        f" {labels.text} holds the label {match[1]}."
    )
    return FailedOperands("index", call.name, rows, headings_of(rows), text)


_BROADCASTS = re.compile(r"non-singleton dimension|broadcast|must match the size|Target sizes")


def _broadcast_failure(call: Call) -> FailedOperands | None:
    return broadcast_marks(call) if _BROADCASTS.search(call.message) else None


_Analysis = Callable[[Call], FailedOperands | None]
_INDEXING = ("gather", "scatter", "scatter_add", "index_select", "index_add", "index_copy",
             "index_fill")  # fmt: skip
_INDEX_AT = {
    "embedding": 0,
    **dict.fromkeys(("__getitem__", "__setitem__", "take", "take_along_dim", "index_put"), 1),
    **{f"{name}{end}": 2 for name in _INDEXING for end in ("", "_")},
}
"""The place of the index among the arguments."""
_PRODUCTS = (
    "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "mv", "dot", "vdot", "einsum", "linear",
    "addmm", "baddbmm", "addbmm", "addmv", "addmm_", "baddbmm_",
)  # fmt: skip
_ANALYSES: dict[str, _Analysis] = {
    **dict.fromkeys(_PRODUCTS, product_marks),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack"), join_marks),
    **{f"conv{n}d": convolution_marks for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": convolution_marks for n in (1, 2, 3)},
    **dict.fromkeys(("view", "reshape", "view_", "_unsafe_view"), elements_marks),
    **dict.fromkeys(("expand", "broadcast_to"), expand_marks),
    **dict.fromkeys(("split", "split_with_sizes"), split_marks),
    "permute": permute_marks,
    **dict.fromkeys(("__getitem__", "__setitem__", "select", "index_select"), index_marks),
    **dict.fromkeys(("gather", "scatter", "scatter_", "scatter_add", "scatter_add_"), gather_marks),
    "embedding": embedding_marks,
}
"""The analysis of each operation, by torch's name; all others may be broadcasts."""
