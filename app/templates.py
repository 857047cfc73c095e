"""The templates: project files in `assets/templates`, listed in `index.json`."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from engine.project import files
from engine.project.document import Project

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "templates"


class Template(Struct, frozen=True):
    """`key` is the file's name without suffix; `icon` is a name of mdi6."""

    key: str
    title: str
    summary: str
    icon: str = "mdi6.graph-outline"


def templates() -> tuple[Template, ...]:
    """All templates, easiest first. Raises FileNotFoundError if the installation is broken."""
    data = (FOLDER / "index.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[Template, ...])


def load_template(key: str) -> Project:
    """The project of a template. Raises `files.FileProblem` if it is missing or damaged."""
    return files.load(FOLDER / f"{key}{files.SUFFIX}")
