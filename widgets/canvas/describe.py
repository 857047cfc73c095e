"""Texts about blocks, ports and wires: plain text and rich tooltips, no Qt."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from engine.project import catalogue
from engine.project.document import Block, ParamValue, Wire
from engine.project.problems import Problem
from widgets.text import format_bytes, format_number, format_shape

if TYPE_CHECKING:  # the window shows before messages are needed
    from engine.protocol import BlockReport, TensorSpec

ARROWS = (
    ("in_features", "out_features"),
    ("in_channels", "out_channels"),
    ("input_size", "hidden_size"),
    ("num_embeddings", "embedding_dim"),
)
SHORT_NAMES = {"stride": "stride", "padding": "pad", "p": "p", "num_heads": "heads"}


def key_parameters(block: Block) -> str:
    """A block's parameters on one line: `64 → 10`, `3 → 16, 3×3`, `p=0.5`.

    Sizes of input and output, then the kernel, then what differs from torch's default.
    """
    kind = catalogue.kind(block.kind)
    values = {
        key: value for key, value in block.params.items() if not _is_default(kind, key, value)
    }
    parts = []
    for before, after in ARROWS:
        if before in values and after in values:
            parts.append(f"{_text(values.pop(before))} → {_text(values.pop(after))}")
    if "kernel_size" in values:
        kernel = values.pop("kernel_size")
        plane = kind.key.endswith("2d") and isinstance(kernel, int)
        parts.append(
            f"{kernel}×{kernel}" if plane else _text(kernel).strip("()").replace(", ", "×")
        )
    for key, value in values.items():
        required = kind.param(key).required if key in {p.name for p in kind.params} else False
        parts.append(_text(value) if required else f"{SHORT_NAMES.get(key, key)}={_text(value)}")
    return ", ".join(parts)


def _is_default(kind: catalogue.BlockKind, key: str, value: ParamValue) -> bool:
    return any(p.name == key and not p.required and p.default == value for p in kind.params)


def _text(value: ParamValue) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"
    return f"{value:g}" if isinstance(value, float) else str(value)


def count_text(count: int) -> str:
    """A number of parameters with three significant digits: `650`, `8.26k`, `44.4M`."""
    if count < 1000:
        return str(count)
    size = float(f"{count:.3g}")
    for unit in ("k", "M", "G"):
        size /= 1000
        if size < 1000 or unit == "G":
            break
    return f"{size:g}{unit}"


def spec_text(spec: TensorSpec | None) -> str:
    """Shape and dtype in words (`(B, 10) float32`)."""
    return f"{format_shape(spec.shape)} {spec.dtype}" if spec else "shape not known yet"


def block_tooltip(block: Block, report: BlockReport | None) -> str:
    kind = catalogue.kind(block.kind)
    lines = [
        f"<b>{escape(block.name)}</b> · {escape(kind.torch_name or kind.title)}",
        escape(kind.summary),
    ]
    if parameters := key_parameters(block):
        lines.append(escape(parameters))
    if report is not None:
        for port, spec in report.outputs.items():
            lines.append(f"{escape(port)}: {escape(spec_text(spec))}")
        if report.parameters:
            lines.append(
                f"{format_number(report.parameters)} parameters, "
                f"{format_bytes(report.parameter_bytes)}"
            )
        lines += [problem_html(problem) for problem in report.problems]
    return "<br>".join(lines)


def problem_html(problem: Problem) -> str:
    """A problem as rich text: its message, torch's own words, its fix."""
    text = f"<b>{escape(problem.message)}</b>"
    if problem.detail and problem.detail != problem.message:
        text += f"<br>{escape(problem.detail)}"
    if problem.fix is not None:
        text += f"<br>Fix: {escape(problem.fix.text)}"
    return text


def port_tooltip(port: catalogue.Port, spec: TensorSpec | None, is_input: bool) -> str:
    side = "input" if is_input else "output"
    optional = ", optional" if port.optional else ""
    lines = [f"<b>{escape(port.name)}</b> ({side}{optional})"]
    if port.doc:
        lines.append(escape(port.doc))
    lines.append(escape(spec_text(spec)))
    return "<br>".join(lines)


def wire_tooltip(wire: Wire, names: dict[str, str], spec: TensorSpec | None) -> str:
    """The rich tooltip of a wire: its ends and the tensor's shape. `names` maps block ids to
    names."""
    source = f"{names.get(wire.source, wire.source)}.{wire.source_port}"
    target = f"{names.get(wire.target, wire.target)}.{wire.target_port}"
    return f"<b>{escape(source)} → {escape(target)}</b><br>{escape(spec_text(spec))}"
