"""`tensorlab inspect FILE` and `tensorlab diff A B`: what files hold, without a window."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from app.commands.conversation import Conversation, EngineEnded, failure
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.report import write_report
from engine.protocol import (
    ArtifactDifference,
    ArtifactDifferenceSnapshot,
    ArtifactEntry,
    ArtifactSnapshot,
    CompareArtifactsCommand,
    ErrorSnapshot,
    OpenArtifactCommand,
    ProgramModule,
    ProgramNode,
    ProgramValue,
    shape_text,
)

_JSON = {"only first": "only in a", "only second": "only in b"}


def inspect_file(path: Path, json_out: str | None) -> None:
    """Print the index of a file, or write it as JSON. Raises CommandFailure."""
    require(path)
    whole, entries, modules, nodes = _read(path)
    if json_out is None:
        print(_in_words(whole, entries, modules, nodes))
        return
    report: dict[str, object] = {
        "kind": whole.kind,
        "title": whole.title,
        "file": str(path),
        "bytes": whole.size_bytes,
        "metadata": dict(whole.metadata),
        "tensors": [_tensor(entry) for entry in entries if entry.kind == "tensor"],
        "values": [
            {"key": entry.key, "type": entry.dtype, "text": entry.text}
            for entry in entries
            if entry.kind == "value"
        ],
        "totals": msgspec.to_builtins(whole.totals),
    }
    if whole.graph is not None:
        report["inputs"] = [_value(value) for value in whole.graph.inputs]
        report["outputs"] = [_value(value) for value in whole.graph.outputs]
        report["modules"] = {module.path: module.type for module in modules}
        report["nodes"] = [_node(node) for node in nodes]
        report["note"] = whole.graph.note
    write_report(report, json_out)


def diff(first: Path, second: Path, json_out: str | None) -> None:
    """Print how two files differ, or write it as JSON. Raises CommandFailure."""
    require(first)
    require(second)
    rows: list[ArtifactDifference] = []
    command = CompareArtifactsCommand(path=str(first.absolute()), other=str(second.absolute()))
    try:
        with Conversation("comparing the files") as engine:
            for snapshot in engine.ask(command):
                if isinstance(snapshot, ErrorSnapshot):
                    raise failure(_at_fault(first, second, snapshot), snapshot)
                if isinstance(snapshot, ArtifactDifferenceSnapshot):
                    rows += snapshot.rows
            if engine.interrupted:
                raise CommandFailure(f"{first}: the comparison was stopped.")
    except EngineEnded as end:
        raise CommandFailure(f"{first}: {end}") from None
    differing = [row for row in rows if row.verdict != "equal"]
    if json_out is None:
        print(_difference_in_words(rows, differing))
        return
    write_report(
        {
            "a": str(first),
            "b": str(second),
            "equal": not differing,
            "keys": [_difference(row) for row in rows],
            "totals": {"keys": len(rows), "different": len(differing)},
        },
        json_out,
    )


def require(path: Path) -> None:
    """Raises CommandFailure if there is nothing at the path."""
    if not path.exists():
        raise CommandFailure(f"{path}: there is no such file.", BAD_ARGUMENTS)


def _read(
    path: Path,
) -> tuple[ArtifactSnapshot, list[ArtifactEntry], list[ProgramModule], list[ProgramNode]]:
    entries: list[ArtifactEntry] = []
    modules: list[ProgramModule] = []
    nodes: list[ProgramNode] = []
    last = None
    try:
        with Conversation("reading the file") as engine:
            for snapshot in engine.ask(OpenArtifactCommand(path=str(path.absolute()))):
                if isinstance(snapshot, ErrorSnapshot):
                    raise failure(path, snapshot)
                if isinstance(snapshot, ArtifactSnapshot):
                    entries += snapshot.entries
                    if snapshot.graph is not None:
                        modules += snapshot.graph.modules
                        nodes += snapshot.graph.nodes
                    last = snapshot
    except EngineEnded as end:
        raise CommandFailure(f"{path}: {end}") from None
    if last is None:
        raise CommandFailure(f"{path}: the reading was stopped.")
    return last, entries, modules, nodes


def _at_fault(first: Path, second: Path, snapshot: ErrorSnapshot) -> Path:
    named = second.name in snapshot.error.message and first.name not in snapshot.error.message
    return second if named else first


def _tensor(entry: ArtifactEntry) -> dict[str, object]:
    told: dict[str, object] = {
        "key": entry.key,
        "shape": list(entry.shape),
        "dtype": entry.dtype,
        "bytes": entry.size_bytes,
        "offset": entry.offset,
    }
    for name in ("part", "role", "shares", "note"):
        if value := getattr(entry, name):
            told[name] = value
    if entry.shares:
        told["added_bytes"] = entry.added_bytes
    return told


def _value(value: ProgramValue) -> dict[str, object]:
    shape = None if value.shape is None else list(value.shape)
    return {"name": value.name, "shape": shape, "dtype": value.dtype}


def _node(node: ProgramNode) -> dict[str, object]:
    return {
        "name": node.name,
        "op": node.op,
        "module": node.module,
        "inputs": list(node.inputs),
        "outputs": [_value(value) for value in node.outputs],
        "attributes": dict(node.attributes),
    }


def _difference(row: ArtifactDifference) -> dict[str, object]:
    told: dict[str, object] = {
        "key": row.key,
        "verdict": _JSON.get(row.verdict, row.verdict),
        "a": row.first or None,
        "b": row.second or None,
        "max_absolute": _finite(row.absolute),
        "max_relative": _finite(row.relative),
    }
    return told | ({"note": row.note} if row.note else {})


def _finite(number: float | None) -> float | str | None:
    return number if number is None or math.isfinite(number) else str(number)


def _in_words(
    whole: ArtifactSnapshot,
    entries: list[ArtifactEntry],
    modules: list[ProgramModule],
    nodes: list[ProgramNode],
) -> str:
    totals = whole.totals
    lines = [
        f"{whole.title} · {whole.size_bytes:,} bytes",
        f"{totals.tensors:,} tensors · {totals.elements:,} elements"
        f" · {totals.tensor_bytes:,} bytes",
        *(f"{name}: {text}" for name, text in whole.metadata),
        "",
    ]
    tensors = [entry for entry in entries if entry.kind == "tensor"]
    width = max((len(entry.key) for entry in tensors), default=0)
    for entry in tensors:
        size = f"{entry.size_bytes:,} bytes"
        notes = (entry.dtype, size, entry.role, entry.part, entry.note, entry.sharing)
        told = " · ".join(filter(None, notes))
        lines.append(f"{entry.key:{width}}  {entry.shape!s:16} {told}")
    values = [entry for entry in entries if entry.kind == "value"]
    if values:
        lines.append("")
        width = max(len(entry.key) for entry in values)
        lines += [f"{entry.key:{width}}  {entry.text}" for entry in values]
    if whole.graph is not None:
        lines += ["", f"inputs: {_values(whole.graph.inputs)}"]
        lines += [f"outputs: {_values(whole.graph.outputs)}", ""]
        types = {module.path: module.type for module in modules}
        width = max((len(node.op) for node in nodes), default=0)
        for node in nodes:
            where = f"{node.module} ({types[node.module]})" if types.get(node.module) else ""
            where = where if node.module else ""
            lines.append(f"{node.op:{width}}  {_values(node.outputs)}  {where}")
        lines += [whole.graph.note] * bool(whole.graph.note)
    return "\n".join(line.rstrip() for line in lines).rstrip()


def _values(values: tuple[ProgramValue, ...]) -> str:
    told = []
    for value in values:
        shape = "" if value.shape is None else f" {shape_text(value.shape)}"
        told.append(f"{value.name}{shape} {value.dtype}".strip())
    return ", ".join(told) or "none"


def _difference_in_words(
    rows: list[ArtifactDifference], differing: list[ArtifactDifference]
) -> str:
    equal = len(rows) - len(differing)
    lines = [f"{len(rows):,} keys: {equal:,} equal, {len(differing):,} different"]
    width = max((len(row.key) for row in differing), default=0)
    for row in differing:
        told = _JSON.get(row.verdict, row.verdict)
        if row.verdict in ("shape", "dtype"):
            told = f"{told}: {row.first} and {row.second}"
        if row.verdict in ("only first", "only second"):
            told = f"{told}: {row.first or row.second}"
        if row.verdict == "different" and row.absolute is None:
            told = f"{row.first} and {row.second}"
        if row.absolute is not None:
            told = f"{told} · max |a − b| {row.absolute:.6g} · relative {row.relative:.6g}"
        lines.append(f"{row.key:{width}}  {told}{f' · {row.note}' if row.note else ''}")
    return "\n".join(line.rstrip() for line in lines)
