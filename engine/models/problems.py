"""Why a block cannot run, in plain words, with both shapes and, if there is one, a fix.

A rule looks at the arguments of a block and the specs of its inputs by port. The first rule that
finds something gives the message; torch's own is kept whole in `Problem.detail`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ..project import catalogue
from ..project.document import Block, ParamValue
from ..project.problems import Fix, Problem
from ..protocol import Dim, TensorSpec, shape_text
from ..tensors.error_help import meaning_of

Specs = Mapping[str, TensorSpec]

# kind -> (parameter, input port, dimension of that input, noun)
_SIZES: dict[str, tuple[tuple[str, str, int, str], ...]] = {
    "nn.Linear": (("in_features", "input", -1, "features"),),
    "nn.Bilinear": (
        ("in1_features", "input1", -1, "features"),
        ("in2_features", "input2", -1, "features"),
    ),
    **dict.fromkeys(
        ("nn.Conv1d", "nn.Conv2d", "nn.ConvTranspose2d"),
        (("in_channels", "input", 1, "channels"),),
    ),
    "nn.BatchNorm1d": (("num_features", "input", 1, "features"),),
    "nn.BatchNorm2d": (("num_features", "input", 1, "channels"),),
    "nn.GroupNorm": (("num_channels", "input", 1, "channels"),),
    **dict.fromkeys(
        ("nn.LSTM", "nn.GRU", "nn.RNN"), (("input_size", "input", -1, "features per step"),)
    ),
    "nn.MultiheadAttention": (("embed_dim", "query", -1, "features per step"),),
    "nn.TransformerEncoderLayer": (("d_model", "src", -1, "features per step"),),
}

_IMAGE = ((4,), "(batch, channels, height, width)")
_SIGNAL = ((3,), "(batch, channels, length)")
_STEPS = ((3,), "(batch, steps, features)")
_RANKS: dict[str, tuple[tuple[int, ...], str]] = {
    **dict.fromkeys(("nn.Conv2d", "nn.ConvTranspose2d", "nn.BatchNorm2d", "nn.MaxPool2d"), _IMAGE),
    **dict.fromkeys(("nn.AvgPool2d", "nn.AdaptiveAvgPool2d", "nn.AdaptiveMaxPool2d"), _IMAGE),
    **dict.fromkeys(("nn.Conv1d", "nn.MaxPool1d", "nn.AvgPool1d"), _SIGNAL),
    "nn.BatchNorm1d": ((2, 3), "(batch, features) or (batch, channels, length)"),
    **dict.fromkeys(
        ("nn.LSTM", "nn.GRU", "nn.RNN", "nn.MultiheadAttention", "nn.TransformerEncoderLayer"),
        _STEPS,
    ),
}
_SEQUENCES = frozenset(kind for kind, rank in _RANKS.items() if rank is _STEPS)
_VERBS = {
    "residual": "added",
    "torch.add": "added",
    "torch.sub": "subtracted",
    "torch.mul": "multiplied",
}


# -- what a block says of itself ------------------------------------------------------------------


def not_made(block: Block, error: Exception | None) -> Problem:
    """The problem of a block whose arguments torch refuses."""
    words = str(error)
    values = catalogue.arguments(block)
    fix = None
    for size, heads in (("embed_dim", "num_heads"), ("d_model", "nhead")):
        features, count = values.get(size), values.get(heads)
        if isinstance(features, int) and isinstance(count, int) and features % count:
            best = max(n for n in _divisors(features) if n <= count)
            words = f"{size} ({features}) must be divisible by {heads} ({count})"
            fix = _fix(block, heads, best)
    return Problem(
        f"{_title(block)} cannot be made: {words.rstrip('.')}.",
        block.id,
        detail=f"{type(error).__name__}: {error}",
        fix=fix,
    )


def _divisors(number: int) -> Iterator[int]:
    for n in range(1, math.isqrt(number) + 1):
        if number % n == 0:
            yield from (n, number // n)


def warned(block: Block, words: str) -> Problem:
    """The problem of a block that torch makes with a warning."""
    return Problem(f"{_title(block)}: {words}", block.id, detail=words, severity="warning")


def traps(block: Block, inputs: Specs) -> list[Problem]:
    """Problems that torch does not report: it accepts the inputs, but computes what hardly anyone
    means."""
    if block.kind not in _SEQUENCES:
        return []
    port, spec = next(iter(inputs.items()))
    if len(spec.shape) == 3 and _has_batch(spec.shape[0]) and not _value(block, "batch_first"):
        return [
            Problem(
                f"{_title(block)} takes the first dimension of {shape_text(spec.shape)} as steps "
                "in time, but it is the batch: batch_first is off.",
                block.id,
                port,
                fix=_fix(block, "batch_first", True),
                severity="warning",
            )
        ]
    if len(spec.shape) == 2 and block.kind != "nn.MultiheadAttention":
        return [
            Problem(
                f"{_title(block)} takes {shape_text(spec.shape)} as one sequence without a batch, "
                "each sample as a step in time. Give it (batch, steps, features).",
                block.id,
                port,
                severity="warning",
            )
        ]
    return []


# -- why a block refused its inputs ---------------------------------------------------------------


def refused(block: Block, inputs: Specs, detail: str) -> Problem:
    """Return the problem of a block that fails on these inputs. `detail` is torch's message."""
    rules = (_rank, _size, _window, _broadcast, _joined, _matmul, _normalised, _reshaped, _dtype)
    for rule in rules:
        if (found := rule(block, inputs)) is not None:
            message, port, fix = found
            return Problem(message, block.id, port, detail, fix)
    shapes = " and ".join(shape_text(spec.shape) for spec in inputs.values())
    message = detail.partition(": ")[2].strip()
    known = meaning_of(message)
    words = known[0] if known is not None else message.partition("\n")[0] or detail
    what = f" cannot take {shapes}" if shapes else ""
    return Problem(f"{_title(block)}{what}: {words.rstrip('.')}.", block.id, detail=detail)


_Found = tuple[str, str | None, Fix | None] | None


def _rank(block: Block, inputs: Specs) -> _Found:
    if block.kind not in _RANKS:
        return None
    ranks, words = _RANKS[block.kind]
    for port, spec in inputs.items():
        if port in ("h_0", "c_0") or len(spec.shape) in ranks:
            continue
        hint = ""
        if len(spec.shape) == ranks[0] - 1:
            hint = " Add a dimension of size 1 with Unsqueeze."
        elif len(spec.shape) > ranks[-1]:
            hint = " Merge dimensions with Flatten or Reshape."
        return f"{_title(block)} expects {words}, gets {shape_text(spec.shape)}.{hint}", port, None
    return None


def _size(block: Block, inputs: Specs) -> _Found:
    for param, port, dim, noun in _SIZES.get(block.kind, ()):
        spec = inputs[port]
        wanted = _value(block, param)
        got = spec.shape[dim] if len(spec.shape) > max(dim, 0) else None
        if got is None or got == wanted:
            continue
        message = f"{_title(block)} expects {wanted} {noun}, gets {got}"
        features = math.prod(d for d in spec.shape[1:] if isinstance(d, int))
        if block.kind == "nn.Linear" and len(spec.shape) > 2 and features == wanted:
            flat = shape_text((spec.shape[0], features))
            return (
                f"{message} in the last dimension of {shape_text(spec.shape)}: put a Flatten "
                f"before it to make {flat}.",
                port,
                None,
            )
        if not isinstance(got, int):
            return (
                f"{message}, the batch: the input is {shape_text(spec.shape)}. Keep the batch in "
                "dim 0.",
                port,
                None,
            )
        where = f" (the input is {shape_text(spec.shape)})"
        return f"{message}: set {param} to {got}{where}.", port, _fix(block, param, got)
    return None


def _window(block: Block, inputs: Specs) -> _Found:
    values = catalogue.arguments(block)
    if "kernel_size" not in values or block.kind == "nn.ConvTranspose2d":
        return None
    port, spec = next(iter(inputs.items()))
    count = len(spec.shape) - 2
    kernel, padding, dilation = (
        _tuple(values.get(name, default), count)
        for name, default in (("kernel_size", 1), ("padding", 0), ("dilation", 1))
    )
    image = spec.shape[2:]
    window = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    for size, p, w in zip(image, padding, window, strict=False):
        if isinstance(size, int) and size + 2 * p < w:
            return (
                f"The window {shape_text(window)} of {_title(block)} is larger than its input"
                f" {shape_text(image)}: use a smaller kernel_size, more padding, or less pooling"
                " before it.",
                port,
                None,
            )
    return None


def _broadcast(block: Block, inputs: Specs) -> _Found:
    if block.kind not in _VERBS or len(inputs) != 2:
        return None
    (_, left), (port, right) = inputs.items()
    longest = max(len(left.shape), len(right.shape))
    for back in range(1, min(len(left.shape), len(right.shape)) + 1):
        a, b = left.shape[-back], right.shape[-back]
        if a != b and 1 not in (a, b):
            return (
                f"{shape_text(left.shape)} and {shape_text(right.shape)} cannot be "
                f"{_VERBS[block.kind]}: dim {longest - back} is {a} in one and {b} in the "
                "other. Sizes must be equal, or 1.",
                port,
                None,
            )
    return None


def _joined(block: Block, inputs: Specs) -> _Found:
    if block.kind not in ("torch.cat", "torch.stack"):
        return None
    (_, first), *others = inputs.items()
    dim = _value(block, "dim")
    for port, spec in others:
        pair = f"{shape_text(first.shape)} and {shape_text(spec.shape)}"
        if len(spec.shape) != len(first.shape):
            return (
                f"{pair} cannot be joined: they have different numbers of dimensions.",
                port,
                None,
            )
        for place, (a, b) in enumerate(zip(first.shape, spec.shape, strict=True)):
            joined = block.kind == "torch.cat" and dim in (place, place - len(first.shape))
            if a != b and not joined:
                along = f" along dim {dim}" if block.kind == "torch.cat" else ""
                return (
                    f"{pair} cannot be joined{along}: dim {place} is {a} in one and {b} in "
                    "the other, and must be equal.",
                    port,
                    None,
                )
    return None


def _matmul(block: Block, inputs: Specs) -> _Found:
    if block.kind != "torch.matmul" or len(inputs) != 2:
        return None
    (_, left), (port, right) = inputs.items()
    if not left.shape or not right.shape:
        return None
    a, b = left.shape[-1], right.shape[-min(2, len(right.shape))]
    if a == b:
        return None
    return (
        f"{shape_text(left.shape)} @ {shape_text(right.shape)} does not fit: the last dimension "
        f"of the first is {a}, the second to last of the second {b}. Try Transpose on one.",
        port,
        None,
    )


def _normalised(block: Block, inputs: Specs) -> _Found:
    if block.kind not in ("nn.LayerNorm", "nn.RMSNorm"):
        return None
    (port, spec), wanted = next(iter(inputs.items())), _value(block, "normalized_shape")
    sizes = wanted if isinstance(wanted, tuple) else (wanted,)
    got = spec.shape[-len(sizes) :]
    if got == sizes:
        return None
    numbers = tuple(d for d in got if isinstance(d, int))
    message = (
        f"{_title(block)} expects the last dimensions to be {shape_text(sizes)}, gets "
        f"{shape_text(spec.shape)}"
    )
    if len(numbers) != len(sizes):
        return f"{message}.", port, None
    value = numbers if isinstance(wanted, tuple) else numbers[0]
    return (
        f"{message}: set normalized_shape to {value}.",
        port,
        _fix(block, "normalized_shape", value),
    )


def _reshaped(block: Block, inputs: Specs) -> _Found:
    if block.kind != "Tensor.reshape":
        return None
    (port, spec), shape = next(iter(inputs.items())), _value(block, "shape")
    sizes = spec.shape[1:]
    if not isinstance(shape, tuple):
        return None
    if not all(isinstance(d, int) for d in sizes):
        batch = next(d for d, size in enumerate(spec.shape) if not isinstance(size, int))
        message = (
            f"Reshape keeps dim 0, for the batch; in {shape_text(spec.shape)} the batch is in"
            f" dim {batch}. Move it to dim 0 first, with a Permute or a Transpose."
        )
        return message, port, None
    have = math.prod(d for d in sizes if isinstance(d, int))
    want = math.prod(d for d in shape if d != -1)
    verdict = f"cannot be filled from {have}" if -1 in shape else f"holds {want}"
    return (
        f"A sample of {shape_text(spec.shape)} has {have} elements, but {shape_text(shape)}"
        f" {verdict}: change shape; -1 lets torch infer one size.",
        port,
        None,
    )


def _dtype(block: Block, inputs: Specs) -> _Found:
    for port, spec in inputs.items():
        if block.kind == "nn.Embedding":
            message = (
                f"Embedding looks up whole numbers (int64), gets {spec.dtype}: set the Input's "
                "dtype to int64."
            )
            return message, port, None
        if spec.dtype != "float32":
            message = (
                f"{_title(block)} computes in float32, gets {spec.dtype}: set the Input's dtype "
                "to float32."
            )
            return message, port, None
    return None


# -- words ----------------------------------------------------------------------------------------


def _title(block: Block) -> str:
    return catalogue.kind(block.kind).title


def _value(block: Block, param: str) -> ParamValue:
    return catalogue.arguments(block).get(param)


def _fix(block: Block, param: str, value: ParamValue) -> Fix:
    return Fix(f"Set {param} to {value}", block.id, param, value)


def _has_batch(dim: Dim) -> bool:
    return isinstance(dim, str)


def _tuple(value: ParamValue, count: int) -> tuple[int, ...]:
    if isinstance(value, tuple):
        return tuple(int(entry) for entry in value)
    return (value if isinstance(value, int) else 0,) * count
