"""TorchScript archives: modules, tensors and code as text. torch.jit.load is not called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...protocol import ProgramGraph
from ...system.errors import LabError
from ..contents.archive import Archive
from ..contents.artifact import Artifact, Entry, digest, plain, with_own_keys
from ..contents.descriptions import Global, OtherObject, TensorOf
from ..contents.entries import entries_of, tensor_entry
from ..weights.torch_file import described, storages
from .script_code import ScriptCode
from .script_graph import graph_of

MAX_CODE_BYTES = 8 * 2**20
MAX_CODE_PARTS = 250_000
"""Lines, operators, brackets and commas, of which an operation has about ten. Parsed, each takes
some 2 kB of memory, and all of them seconds in one call that no interrupt ends."""
_BETWEEN = b"\n()[]{}=+-*/%,:;<>~^&|@"
MAX_DEPTH = 60
CONSTANTS = "CONSTANTS"
_MANGLE = re.compile(rb"\.___torch_mangle_\d+")


def open_script(path: Path, archive: Archive) -> Artifact:
    """The index of the archive. Raises LabError."""
    whole = described(path.name, archive, "data.pkl", _is_of_script)
    constants = described(path.name, archive, "constants.pkl", _is_of_script)
    if not isinstance(whole, OtherObject):
        raise LabError(f"{path.name} holds no module: it may be damaged.")
    code = _code(archive)
    modules = dict(_modules(whole, "", 0))
    entries = list(_entries(archive, modules, code))
    locate = storages(archive, "constants/")
    for place, each in enumerate(constants if isinstance(constants, list | tuple) else ()):
        if isinstance(each, TensorOf):
            name = f"{CONSTANTS}.c{place}"
            entries.append(tensor_entry(name, each, locate))
    entries = with_own_keys(entries)
    names = {entry.key for entry in entries if entry.kind == "tensor"}
    graph = ProgramGraph(note=code.problem)
    if code.is_readable:
        graph = graph_of(modules, code, names)
    metadata = {
        name: plain(archive.read(archive.inner()[name], 200).decode(errors="replace")).strip()
        for name in ("version", "byteorder")
        if name in archive.inner()
    }
    title = f"TorchScript program {code.class_name(whole.name)}"
    entries = tuple(
        Entry(**{**_fields(entry), "value": entry.key}) if entry.key in names else entry
        for entry in entries
    )
    return Artifact(
        path, "torchscript", title, entries, metadata, graph,
        program_digest=_digest(archive, modules),
    )  # fmt: skip


def _fields(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in Entry.__slots__}


def _is_of_script(name: str) -> bool:
    """Classes of the archive's own code, and the functions that torch writes for typed lists."""
    return name.startswith(("__torch__.", "torch.jit._pickle."))


def _modules(module: OtherObject, path: str, depth: int) -> Iterator[tuple[str, OtherObject]]:
    """All modules by their paths, each before those in it."""
    yield path, module
    if depth < MAX_DEPTH and isinstance(module.state, dict):
        for name, each in module.state.items():
            if (
                isinstance(each, OtherObject)
                and isinstance(each.state, dict)
                and isinstance(name, str)
            ):
                inner = f"{path}.{name}" if path else name
                yield from _modules(each, plain(inner, 500), depth + 1)


def _entries(
    archive: Archive, modules: dict[str, OtherObject], code: ScriptCode
) -> Iterator[Entry]:
    locate = storages(archive, "data/")
    for path, module in modules.items():
        roles = code.roles(module.name)
        for name, value in module.state.items() if isinstance(module.state, dict) else ():
            key = f"{path}.{name}" if path else str(name)
            if isinstance(value, TensorOf):
                entry = tensor_entry(key, value, locate)
                yield Entry(**{**_fields(entry), "role": roles.get(str(name), "attribute")})
            elif key not in modules and value is not None and not _is_usual(str(name)):
                for entry in entries_of({key: _unwrapped(value)}, locate):
                    yield entry


def _is_usual(name: str) -> bool:
    """Attributes that every module has, and that are not shown."""
    return name == "training" or name.startswith("_")


def _digest(archive: Archive, modules: dict[str, OtherObject]) -> str:
    """A digest of all code, and of the attributes that are not shown. The numbers by which torch
    tells classes of one name apart say nothing."""
    told = [
        f"{path}.{name} = {value.name if isinstance(value, Global | OtherObject) else value}\n"
        for path, module in modules.items()
        for name, value in (module.state.items() if isinstance(module.state, dict) else ())
        if _is_usual(str(name)) and not isinstance(value, TensorOf)
    ]
    whole = "".join(told).encode(errors="surrogatepass")
    for name, record in sorted(archive.inner().items()):
        if name.startswith("code/") and name.endswith(".py"):
            whole += b"\0" + archive.read(record, MAX_CODE_BYTES)
    return digest(_MANGLE.sub(b"", whole))


def _unwrapped(value: Any) -> Any:
    """The list that a typed list is made of."""
    is_list = isinstance(value, OtherObject) and value.name.startswith("torch.jit._pickle.")
    return value.state[0] if is_list and isinstance(value.state, tuple) and value.state else value


def _code(archive: Archive) -> ScriptCode:
    """All code of the archive, parsed as text."""
    found: dict[str, ast.Module] = {}
    left, parts_left, problem = MAX_CODE_BYTES, MAX_CODE_PARTS, ""
    for name, record in archive.inner().items():
        if not (name.startswith("code/") and name.endswith(".py")):
            continue
        left -= record.size_bytes
        if left < 0:
            problem = f"Its code takes more than {MAX_CODE_BYTES:,} bytes: no graph is read."
            break
        data = archive.read(record, MAX_CODE_BYTES)
        parts_left -= len(data) - len(data.translate(None, _BETWEEN))
        if parts_left < 0:
            problem = f"Its code has more than {MAX_CODE_PARTS:,} parts: no graph is read."
            break
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            problem = f"{plain(name, 100)} cannot be parsed ({plain(str(error), 80)}): no graph."
            break
        found[name.removeprefix("code/").removesuffix(".py").replace("/", ".")] = tree
    return ScriptCode(found, problem)
