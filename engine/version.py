"""The version of this program."""

from __future__ import annotations

from pathlib import Path


def version() -> str:
    """The installed version; in a checkout that is not installed, the version in pyproject.toml."""
    from importlib import metadata

    try:
        return metadata.version("tensorlab")
    except metadata.PackageNotFoundError:
        import tomllib

        project = Path(__file__).parents[1] / "pyproject.toml"
        return tomllib.loads(project.read_text())["project"]["version"]
