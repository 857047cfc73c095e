"""Folders of Hugging Face: config.json beside weights in one file, or in several with an index."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...system.errors import LabError
from ..contents.artifact import MAX_METADATA, Artifact, Entry, file_beside, plain, with_own_keys

MAX_JSON_BYTES = 32 * 2**20
MAX_SHARDS = 10_000
CONFIG = "config.json"
INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
WHOLE = ("model.safetensors", "pytorch_model.bin")

OpenFile = Callable[[Path], Artifact]


def is_index(path: Path) -> bool:
    """Whether a file is the index of weights in several files."""
    return path.name.endswith(".index.json")


def open_folder(folder: Path, open_file: OpenFile) -> Artifact:
    """The weights of a folder, with its config. Raises LabError."""
    index = next((folder / name for name in INDICES if (folder / name).is_file()), None)
    if index is not None:
        found = open_index(index, open_file)
    else:
        whole = next((folder / name for name in WHOLE if (folder / name).is_file()), None)
        if whole is None:
            raise LabError(
                f"{folder.name} has a {CONFIG}, and no weights.",
                hint=f"Download {' or '.join(WHOLE)} into it.",
            )
        inner = open_file(whole)
        entries = tuple(replace(entry, file=whole.name) for entry in inner.entries)
        found = replace(inner, entries=entries, parts=(whole,))
    metadata = dict(found.metadata)
    config = folder / CONFIG
    if config.is_file():
        for name, value in list(_json(config).items())[: MAX_METADATA // 2]:
            text = value if isinstance(value, str) else json.dumps(value)
            metadata[plain(str(name), 200)] = plain(text)
    return replace(
        found, path=folder, kind="hugging face", title="Hugging Face folder", metadata=metadata
    )


def open_index(index: Path, open_file: OpenFile) -> Artifact:
    """The weights that an index names. Raises LabError for a file that is missing, or that lies
    outside of the index's folder."""
    named = _json(index).get("weight_map")
    if not isinstance(named, dict) or not all(isinstance(name, str) for name in named.values()):
        raise LabError(f"{index.name} does not say which file has which weight.")
    shards: dict[str, dict[str, Entry]] = {}
    metadata: dict[str, str] = {}
    parts = []
    for name in sorted(set(named.values())):
        if len(shards) >= MAX_SHARDS:
            raise LabError(f"{index.name} names more than {MAX_SHARDS:,} files.")
        shard = file_beside(index, name)
        inner = open_file(shard)
        shards[name] = {entry.key: entry for entry in inner.entries}
        metadata |= inner.metadata
        parts.append(shard)
    entries = []
    for key, name in named.items():
        entry = shards[name].get(plain(key, 1000))
        if entry is None:
            raise LabError(
                f"{name} does not have {plain(key, 80)}, which {index.name} says is there.",
                hint="The folder may have files of two models: download it again.",
            )
        entries.append(replace(entry, file=name))
    title = f"weights in {len(parts)} files"
    return Artifact(
        index, "sharded", title, with_own_keys(entries), metadata, parts=(index, *parts)
    )


def _json(path: Path) -> dict[str, Any]:
    if path.stat().st_size > MAX_JSON_BYTES:
        raise LabError(f"{path.name} is larger than any index or config.")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise LabError(f"{path.name} is not JSON: it may be damaged.") from error
    if not isinstance(found, dict):
        raise LabError(f"{path.name} is not a list of names and values.")
    return found
