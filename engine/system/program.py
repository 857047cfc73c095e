"""The files of this program, which another process may start, and its version."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2]
"""The folder of `app`, `engine` and `widgets`; installed, it is the package `tensorlab`."""


def is_package() -> bool:
    """Whether the program is installed; in a checkout the folder holds tensorlab.py."""
    return (FOLDER / "__init__.py").exists()


def program_file() -> Path:
    """The file that `python FILE ARGUMENTS` runs as `tensorlab ARGUMENTS`."""
    return FOLDER / ("__init__.py" if is_package() else "tensorlab.py")


def version() -> str:
    """The installed version; in a checkout that is not installed, the version in pyproject.toml."""
    from importlib import metadata

    try:
        return metadata.version("tensorlab")
    except metadata.PackageNotFoundError:
        import tomllib

        project = FOLDER / "pyproject.toml"
        return tomllib.loads(project.read_text())["project"]["version"]
