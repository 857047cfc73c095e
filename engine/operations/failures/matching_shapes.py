"""Shapes that must agree dimension by dimension: broadcasting, expand, cat and stack."""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol import FailedOperand, FailedOperands
from ..shapes.broadcasting import broadcast_dims
from .call import MAX_OPERANDS, Call, CallTensor, row, sizes_asked


def broadcast_marks(call: Call) -> FailedOperands | None:
    in_place = call.name.endswith("_") and not call.name.endswith("__")
    return aligned(call, call.tensors[:MAX_OPERANDS], in_place)


def aligned(call: Call, tensors: Sequence[CallTensor], in_place: bool) -> FailedOperands | None:
    """The tensors aligned from the right, if they do not broadcast; None if they do. In place, the
    first may not be stretched."""
    if len(tensors) < 2:
        return None
    shapes = [seen.shape for seen in tensors]
    dims = broadcast_dims(shapes)
    if in_place and all(dim.size is not None for dim in dims):  # torch checks this last
        dims = broadcast_dims(shapes, in_place)
    conflicts = [dim for dim in dims if dim.size is None]
    if not conflicts:
        return None
    rows = []
    for k, seen in enumerate(tensors):
        missing = [d.dim for d in conflicts if d.roles[k] == "conflict" and d.sizes[k] is None]
        cells = ("·",) * max((-dim - len(seen.shape) for dim in missing), default=0) + seen.shape
        first = len(dims) - len(cells)
        failing = [len(cells) + d.dim for d in conflicts if d.roles[k] == "conflict"]
        rows.append(row(seen, cells, range(first, first + len(cells)), failing))
    first_conflict = conflicts[0]  # the rightmost, which torch names too
    parts = [
        f"{seen.text} has {'no such dimension' if size is None else size}"
        for seen, size, role in zip(
            tensors, first_conflict.sizes, first_conflict.roles, strict=True
        )
        if role == "conflict"
    ]
    if len(parts) > 1:
        why = "neither is 1" if len(parts) == 2 else "none is 1"
    else:
        why = "a tensor written in place is not stretched"
    dim = first_conflict.dim
    text = f"At dim {dim}, counted from the right, {', '.join(parts)}: {why}."
    headings = tuple(str(d - len(dims)) for d in range(len(dims)))
    return FailedOperands("broadcast", call.name, tuple(rows), headings, text)


def expand_marks(call: Call) -> FailedOperands | None:
    asked = sizes_asked(call)
    tensor = call.tensors[0]
    if asked is None:
        return broadcast_marks(call)
    there = tensor.shape
    count = max(len(there), len(asked))
    failing = [
        -k
        for k in range(1, count + 1)
        if (k > len(asked))
        or (k <= len(there) and there[-k] != 1 and asked[-k] not in (-1, there[-k]))
    ]
    if not failing:
        return None
    rows = []
    for text, sizes in ((tensor, there), ("asked for", asked)):
        columns = range(count - len(sizes), count)
        bad = [len(sizes) + dim for dim in failing if -dim <= len(sizes)]
        if isinstance(text, CallTensor):
            rows.append(row(text, sizes, columns, bad))
        else:
            rows.append(FailedOperand(text, tuple(sizes), tuple(columns), tuple(bad)))
    dim = failing[0]
    text = (
        f"At dim {dim}, counted from the right, {tensor.text} has {there[dim]}: only a 1 can be"
        " stretched."
    )
    headings = tuple(str(d - count) for d in range(count))
    return FailedOperands("broadcast", call.name, tuple(rows), headings, text)


def join_marks(call: Call) -> FailedOperands | None:
    """cat, stack: all sizes but that of the joined dimension must be equal. Of many tensors, the
    first and those that differ from it are shown."""
    tensors = call.tensors
    stacks = call.name == "stack"
    dim = call.given(1, "dim", "axis", default=0)
    real = [seen for seen in tensors if stacks or seen.shape != (0,)]
    if len(real) < 2 or type(dim) is not int:
        return None
    ndim = len(real[0].shape)
    joined = -1 if stacks else dim % ndim if ndim else 0

    def differs(seen: CallTensor) -> list[int]:
        return [
            d
            for d in range(max(ndim, len(seen.shape)))
            if d != joined and seen.shape[d : d + 1] != real[0].shape[d : d + 1]
        ]

    others = [seen for seen in real if differs(seen)]
    if not others:
        return None
    if len(tensors) > MAX_OPERANDS:
        tensors = [real[0], *others][:MAX_OPERANDS]
    differing = {d for seen in others for d in differs(seen)}
    rows = [
        row(seen, failing=[d for d in range(len(seen.shape)) if d in differing])
        if seen in real
        else row(seen)
        for seen in tensors
    ]
    count = max(len(seen.shape) for seen in tensors)
    headings = tuple("joined" if d == joined else str(d) for d in range(count))
    places = ", ".join(map(str, sorted(differing)))
    rule = (
        "All shapes must be equal"
        if stacks
        else f"All sizes except those of dim {joined} must be equal"
    )
    word = "dim" if len(differing) == 1 else "dims"
    text = f"{rule}, but they differ in {word} {places}."
    return FailedOperands("join", call.name, tuple(rows), headings, text)
