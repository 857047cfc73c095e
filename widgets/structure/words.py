"""Words on a structure: totals, batch, calls, and parameters that no optimizer holds."""

from __future__ import annotations

from collections.abc import Iterable

from engine.protocol import ErrorReport, ModuleCall, ModuleRow, StructureSnapshot, WeightRow
from widgets.text import format_bytes, format_number, format_shape

MAX_NAMES = 4
"""The most parameters that are named in a sentence; the rest are counted."""


def totals_words(whole: StructureSnapshot) -> str:
    """`3 modules · 1,234 parameters, 34 frozen · 4.8 KiB · 12 elements in buffers · 5 MACs`."""
    totals = whole.totals
    frozen = totals.parameters - totals.trainable
    parts = [
        _count(totals.modules, "module"),
        _count(totals.parameters, "parameter") + (f", {frozen:,} frozen" if frozen else ""),
        format_bytes(totals.parameter_bytes),
    ]
    if totals.buffers:
        elements = _count(totals.buffers, "element")
        parts.append(f"{elements} in buffers, {format_bytes(totals.buffer_bytes)}")
    if whole.modules and whole.modules[0].calls:
        of_all = whole.modules[0]
        parts.append(f"{of_all.macs:,} MACs a batch")
        if of_all.kept_bytes is not None:
            parts.append(f"{format_bytes(of_all.kept_bytes)} of activations")
    return " · ".join(parts)


def batch_words(whole: StructureSnapshot) -> str:
    """Where shapes, MACs and times come from, or why there are none."""
    if whole.unrun:
        batch = f" on {whole.batch}" if whole.batch else ""
        return (
            f"No shapes, MACs and times: the step did not run{batch}. {raised_words(whole.unrun)}"
        )
    if whole.batch:
        return (
            f"Shapes, MACs and activations are those of the first batch, {whole.batch};"
            " Time is one measured call of it."
        )
    return "Name data under Train to see shapes, MACs, activations and times."


def raised_words(error: ErrorReport) -> str:
    """An exception on one line: its type, the line of the user's source, message and hint."""
    name = "" if error.type == "LabError" else error.type
    line = "" if error.line is None else f"line {error.line}"
    head = " in ".join(filter(None, (name, line)))
    return f"{head and head[0].upper() + head[1:] + ': '}{error.message} {error.hint}".strip()


def unfed_words(whole: StructureSnapshot) -> str:
    """The trainable parameters that no optimizer holds; empty if there is no optimizer at all."""
    if not whole.optimizers:
        return ""
    unfed = [row.name for row in whole.weights if row.trainable and not row.fed_by]
    if not unfed:
        return ""
    names = ", ".join(unfed[:MAX_NAMES])
    if len(unfed) > MAX_NAMES:
        names += f" and {len(unfed) - MAX_NAMES:,} more"
    return f"No optimizer holds {names}: a step of {_listed(whole.optimizers)} leaves them as is."


def unregistered_words(whole: StructureSnapshot) -> str:
    """The attributes whose modules or parameters are not part of the subject; empty if none is."""
    told = []
    if names := whole.unregistered:
        told.append(
            f"{_listed(names)} {'hold' if len(names) > 1 else 'holds'} modules or parameters in a"
            " plain list, tuple or dict: they are not trained, moved or saved with the module. Use"
            " nn.ModuleList, nn.ModuleDict or nn.ParameterList."
        )
    if names := whole.bare:
        several = len(names) > 1
        told.append(
            f"{_listed(names)} {'require' if several else 'requires'} a gradient and"
            f" {'are not parameters' if several else 'is not a parameter'}: not trained, moved"
            " or saved with the module. Use nn.Parameter."
        )
    return " ".join(told)


def shapes_words(row: ModuleRow, ran: bool) -> str:
    """`(8, 3) → (8, 2)` of the first call; `…` after it if another call has other shapes. `ran`: a
    step has run."""
    if not row.calls:
        return "not called" if ran else ""
    differs = any(
        (call.inputs, call.outputs) != (row.calls[0].inputs, row.calls[0].outputs)
        for call in row.calls
    )
    return call_words(row.calls[0]) + (" …" if differs else "")


def call_words(call: ModuleCall) -> str:
    return f"{_shapes(call.inputs)} → {_shapes(call.outputs)}"


def _cost_words(call: ModuleCall) -> str:
    kept = "unknown bytes" if call.kept_bytes is None else format_bytes(call.kept_bytes)
    return f"{call.macs:,} MACs, keeps {kept}, {format_number(call.ms, 3)} ms"


def state_words(row: ModuleRow) -> str:
    """`train` or `eval`, and whether its parameters are frozen."""
    words = "train" if row.training else "eval"
    if row.trainable == row.parameters:
        return words
    return f"{words}, {'frozen' if not row.trainable else 'partly frozen'}"


def module_tip(row: ModuleRow, name: str, ran: bool) -> str:
    """All that is known of a module, line by line."""
    lines = [f"{row.path or name}: {row.type}", state_words(row)]
    if row.parameters:
        frozen = row.parameters - row.trainable
        lines.append(
            f"{_count(row.parameters, 'parameter')}, {format_bytes(row.parameter_bytes)}"
            + (f", {frozen:,} frozen" if frozen else "")
        )
    if row.calls:
        lines.append(f"{_count(row.call_count, 'call')}, {row.macs:,} MACs in all:")
        lines += [f"{call_words(call)}, {_cost_words(call)}" for call in row.calls]
        if row.call_count > len(row.calls):
            lines.append(f"and {row.call_count - len(row.calls):,} more")
    elif ran:
        lines.append("The step does not call it.")
    return "\n".join(lines)


def weight_tip(row: WeightRow) -> str:
    """All that is known of a parameter or buffer, line by line."""
    lines = [
        f"{row.name}: {row.kind}",
        f"{format_shape(row.shape)} · {row.dtype} · {row.device} · {format_bytes(row.bytes)}",
    ]
    if row.mean is not None:
        lines.append(f"mean {format_number(row.mean, 8)}, std {format_number(row.std, 8)}")
    if row.gradient is not None:
        lines.append(f"gradient norm {format_number(row.gradient, 8)}")
    if row.shared_with:
        lines.append(f"the same tensor as {_listed(row.shared_with)}")
    if row.fed_by:
        lines.append(f"held by {_listed(row.fed_by)}")
    if not row.persistent:
        lines.append("not in the state_dict")
    return "\n".join(lines)


def _shapes(shapes: tuple[tuple[int, ...], ...]) -> str:
    return ", ".join(map(format_shape, shapes)) or "nothing"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
