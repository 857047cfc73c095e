"""Reads `factories.toml`: torch's factories, and what the form of each asks for."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ..table import checked

PATH = Path(__file__).with_name("factories.toml")
DEFAULT = "default"


class Field(Struct, frozen=True, forbid_unknown_fields=True):
    """A field of the form for a function. `initial` is its text at the start."""

    name: str
    kind: Literal["text", "choice", "check", "tensor", "array"]
    hint: str
    initial: str = ""
    choices: tuple[str, ...] = ()


class Factory(Struct, frozen=True, forbid_unknown_fields=True):
    """`call` is the function's full name. `options` are the names of the fields that it shares
    with others (see `OPTIONS`)."""

    key: str
    call: str
    group: str
    summary: str
    fields: tuple[Field, ...]
    options: tuple[str, ...]


def _read(path: Path) -> tuple[dict[str, Field], dict[str, Factory]]:
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    options = {
        name: checked(Field, {"name": name, **line}, path, name)
        for name, line in found["options"].items()
    }
    factories = {}
    for group, lines in found["factories"].items():
        for key, line in lines.items():
            fields = [
                {"name": name, "initial": initial, **found["fields"][name]}
                for name, initial in line["fields"].items()
            ]
            line = {"key": key, "call": f"torch.{key}", "group": group, **line, "fields": fields}
            factories[key] = checked(Factory, line, path, key)
    return options, factories


OPTIONS, FACTORIES = _read(PATH)
