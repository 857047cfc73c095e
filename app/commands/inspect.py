"""`tensorlab inspect`: the structure of a subject, without a window."""

from __future__ import annotations

import math

import msgspec

from app.commands.conversation import Conversation, EngineEnded, failure
from app.commands.failures import CommandFailure
from app.commands.report import write_report
from app.commands.target import Target, run_code, show_output
from engine.protocol import (
    ErrorSnapshot,
    ModuleRow,
    ReadStructureCommand,
    StructureSnapshot,
    StructureTotals,
    WeightRow,
)


def inspect(target: Target, json_out: str | None) -> None:
    """Print the structure, or write it as JSON. Raises CommandFailure."""
    whole, modules, weights = _read(target)
    if json_out is None:
        print(_in_words(whole, modules, weights))
        return
    report = {
        "subject": target.text,
        "modules": [_module(row) for row in modules],
        "parameters": [_weight(row) for row in weights if row.kind == "parameter"],
        "buffers": [_weight(row) for row in weights if row.kind == "buffer"],
        "totals": msgspec.to_builtins(whole.totals),
        "batch": whole.batch or None,
        "unrun": msgspec.to_builtins(whole.unrun),
        "unregistered": [*whole.unregistered, *whole.bare],
    }
    write_report(report, json_out)


def _read(target: Target) -> tuple[StructureSnapshot, list[ModuleRow], list[WeightRow]]:
    command = ReadStructureCommand(
        subject=target.subject,
        objective=target.objective,
        model=target.project.model,
        training=target.project.training,
    )
    modules: list[ModuleRow] = []
    weights: list[WeightRow] = []
    last = None
    try:
        with Conversation("reading the structure") as engine:
            run_code(engine, target)
            for snapshot in engine.ask(command):
                show_output(snapshot)
                if isinstance(snapshot, ErrorSnapshot):
                    raise failure(target.path, snapshot)
                if isinstance(snapshot, StructureSnapshot):
                    modules += snapshot.modules
                    weights += snapshot.weights
                    last = snapshot
    except EngineEnded as end:
        raise CommandFailure(f"{target.path}: {end}") from None
    if last is None:
        raise CommandFailure(f"{target.path}: the reading was stopped.")
    return last, modules, weights


def _module(row: ModuleRow) -> dict:
    return {
        "path": row.path,
        "class": row.type,
        "parameters": row.parameters,
        "trainable": row.trainable,
        "bytes": row.parameter_bytes,
        "training": row.training,
        "call_count": row.call_count,
        "macs": row.macs,
        "calls": [
            {"inputs": call.inputs, "outputs": call.outputs, "macs": call.macs}
            for call in row.calls
        ],
    }


def _weight(row: WeightRow) -> dict:
    fields = msgspec.to_builtins(row)
    del fields["kind"], fields["code"]
    for name in ("mean", "std"):
        if fields[name] is not None and not math.isfinite(fields[name]):
            fields[name] = str(fields[name])
    return fields


def _in_words(whole: StructureSnapshot, modules: list[ModuleRow], weights: list[WeightRow]) -> str:
    lines = [_totals(whole.totals)]
    if whole.batch:
        lines.append(f"batch {whole.batch}")
    if whole.unrun is not None:
        error = whole.unrun
        name = "" if error.type == "LabError" else f"{error.type}: "
        lines.append(f"The step did not run. {name}{error.message} {error.hint}".rstrip())
        lines += error.traceback.splitlines()
    if lost := (*whole.unregistered, *whole.bare):
        lines.append(
            f"Not registered, so not trained, moved or saved with the module: {', '.join(lost)}."
            " Use nn.ModuleList, nn.ModuleDict, nn.ParameterList or nn.Parameter."
        )
    lines.append("")
    width = max(len(row.path) for row in modules)
    kinds = max(len(row.type) for row in modules)
    for row in modules:
        shapes = ""
        if row.calls:
            call = row.calls[0]
            shapes = f"  {_shapes(call.inputs)} → {_shapes(call.outputs)}"
            if row.call_count > 1:
                shapes += f"  ×{row.call_count}"
        lines.append(f"{row.path:{width}}  {row.type:{kinds}}  {row.parameters:>12,}{shapes}")
    lines.append("")
    width = max((len(row.name) for row in weights), default=0)
    for row in weights:
        notes = [row.kind, row.dtype]
        if row.kind == "parameter" and not row.trainable:
            notes.append("frozen")
        if row.shared_with:
            notes.append(f"shared with {', '.join(row.shared_with)}")
        lines.append(f"{row.name:{width}}  {row.shape!s:16} {' · '.join(notes)}")
    return "\n".join(line.rstrip() for line in lines).rstrip()


def _totals(totals: StructureTotals) -> str:
    return (
        f"{_counted(totals.modules, 'module')} · {_counted(totals.parameters, 'parameter')}"
        f" ({totals.trainable:,} trainable, {totals.parameter_bytes:,} bytes)"
        f" · {_counted(totals.buffers, 'element')} in buffers"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _shapes(shapes: tuple[tuple[int, ...], ...]) -> str:
    return " ".join(map(str, shapes)) or "none"
