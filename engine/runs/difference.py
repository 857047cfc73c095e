"""The settings in which two runs differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from ..project.document import Project
from ..protocol import SettingRow


def differences(first: Project, second: Project) -> list[SettingRow]:
    """The settings that differ, by their paths. The places of blocks on the canvas do not count."""
    one, other = (dict(settings_of(project)) for project in (first, second))
    names = dict.fromkeys([*one, *other])
    return [
        SettingRow(name, one.get(name, ""), other.get(name, ""))
        for name in names
        if one.get(name) != other.get(name)
    ]


def settings_of(project: Project) -> Iterator[tuple[str, str]]:
    """Each setting by its path, and its value in words."""
    for part in ("subject", "objective", "training"):
        yield from _flat(part, msgspec.to_builtins(getattr(project, part)))
    names = {block.id: block.name for block in project.model.blocks}
    for block in project.model.blocks:
        yield f"blocks.{block.name}", block.kind
        yield from _flat(f"blocks.{block.name}", msgspec.to_builtins(block.params))
    for wire in project.model.wires:
        source, target = names.get(wire.source, "?"), names.get(wire.target, "?")
        yield f"wires.{target}.{wire.target_port}", f"{source}.{wire.source_port}"


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}", item)
    else:
        yield name.removeprefix("training."), value if isinstance(value, str) else json.dumps(value)
