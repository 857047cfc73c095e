"""The files of this program, which another process may start."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
"""The folder of `app`, `engine` and `widgets`; installed, it is the package `tensorlab`."""


def is_package() -> bool:
    """Whether the program is installed; in a checkout the folder holds tensorlab.py."""
    return (FOLDER / "__init__.py").exists()


def program_file() -> Path:
    """The file that `python FILE ARGUMENTS` runs as `tensorlab ARGUMENTS`."""
    return FOLDER / ("__init__.py" if is_package() else "tensorlab.py")
