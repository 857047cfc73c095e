"""Operations and storages of a step in words."""

from __future__ import annotations

from engine.project.cells import source_title
from engine.protocol import (
    AllocatorBlock,
    AllocatorSegment,
    MemoryBlock,
    MemoryCurveSnapshot,
    MemoryKind,
    MemoryOp,
)
from widgets import theme
from widgets.text import format_bytes

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
TITLES: dict[MemoryKind, tuple[str, str, str]] = {
    "parameters": ("parameters", "leaf", "Weights and buffers of the model"),
    "gradients": ("gradients", "gradient", "The .grad of each parameter"),
    "optimizer": ("optimizer", "accent", "What the optimizer keeps: momentum, Adam's moments"),
    "data": ("data", "storage", "The storage under the batch: of a small set the whole set"),
    "activations": (
        "activations",
        "",
        "What forward saves for backward, by storage: a view and its base count once",
    ),
    "other": ("other", "muted", "Results that nothing saves, and what backward passes on"),
}
"""Title, role of the colour and tooltip of each kind, from the bottom of the picture to the top."""


def color_of_kind(kind: MemoryKind) -> str:
    """As `#rrggbb` in the current theme. The colour of intermediate results is near that of muted
    words, so activations have one of the plots'."""
    role = TITLES[kind][1]
    colors = theme.current()
    return getattr(colors, role) if role else colors.series[3]


def unit_of(largest: float) -> tuple[float, str]:
    """The bytes and the name of the unit for numbers of up to `largest` bytes."""
    power = max(p for p in range(len(_UNITS)) if largest >= 1024**p or not p)
    return 1024.0**power, _UNITS[power]


def place_text(op: MemoryOp) -> str:
    """Where an operation comes from: module and line."""
    words = ""
    if op.module is not None:
        words = f"in {op.module or 'the model'}"
    if op.line:
        words += f" ({source_title(op.file)}, line {op.line})"
    elif op.source:
        words += f" ({op.source})"
    return words.strip()


def op_text(op: MemoryOp, bytes_after: int) -> str:
    """An operation and the memory after it."""
    name = op.name.removeprefix("aten.").removesuffix(".default")
    words = f"{op.number:,} · {op.phase}: {name} {place_text(op)}".rstrip()
    return f"{words} → {format_bytes(bytes_after)}"


def block_name(block: MemoryBlock, found: MemoryCurveSnapshot) -> str:
    """What holds a storage, or what made it."""
    if block.name:
        return block.name
    if block.op < 0:
        return "a tensor of before"
    op = found.ops[block.op]
    name = op.name.removeprefix("aten.").partition(".")[0]
    return f"{name} {place_text(op)}".rstrip()


def summary(found: MemoryCurveSnapshot) -> str:
    """The step in a sentence or two."""
    place = next(i for i, op in enumerate(found.ops) if op.number == found.peak)
    peak = sum(of[place] for of in found.series.values())
    op = found.ops[place]
    name = op.name.removeprefix("aten.").partition(".")[0]
    words = f"A step with {found.samples:,} samples on {found.device} holds at most"
    words += f" {format_bytes(peak)}, at operation {op.number:,} of {found.total:,}:"
    words += f" {name} {place_text(op)}".rstrip() + f" in {op.phase}."
    if found.reserved:
        held = format_bytes(found.reserved[place])
        words += f" There the allocator holds {held} in {found.segments_in_all:,} segments, of"
        words += f" which {format_bytes(found.unused)} are free."
    return words


def allocated_text(block: AllocatorBlock, segment: AllocatorSegment) -> str:
    """A block of the allocator, and where it lies."""
    of = f"of a {'small' if segment.is_small else 'large'} segment of {format_bytes(segment.size)}"
    if block.state == "free":
        return f"free: {format_bytes(block.size)} {of}"
    if block.state == "waiting":
        return f"freed, but another stream uses it: {format_bytes(block.size)} {of}"
    asked = "" if block.asked == block.size else f", {format_bytes(block.asked)} were asked for"
    return f"{block.name or TITLES[block.kind][0]}: {format_bytes(block.size)}{asked}, {of}"
