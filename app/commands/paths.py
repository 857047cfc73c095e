"""Names of files on the command line: checked before the engine starts."""

from __future__ import annotations

import os
from pathlib import Path

from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from engine.project.atomic import regular_target
from engine.protocol.exporting.formats import Format


def format_of(path: Path, allowed: tuple[Format, ...], option: str = "--out") -> Format:
    """The format by the file's suffix. Raises CommandFailure if it is not one of `allowed`."""
    for known in allowed:
        if path.suffix == f".{known}":
            return known
    endings = " or ".join(f".{known}" for known in allowed)
    raise CommandFailure(f"{option} {path}: the name must end in {endings}.", BAD_ARGUMENTS)


def require_utf8(path: Path, option: str = "") -> None:
    """Check that the name of a file can be sent to the engine."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="replace")
        message = f"{option} {shown}: the name is not valid UTF-8. Rename it.".strip()
        raise CommandFailure(message, BAD_ARGUMENTS) from None


def require_folder_of(path: Path, option: str = "--out", is_folder: bool = False) -> None:
    """Check that a result can be written there, before training for an hour."""
    require_utf8(path, option)
    if path.is_dir() and not is_folder:
        raise CommandFailure(f"{option} {path}: this is a folder.", BAD_ARGUMENTS)
    if not path.absolute().parent.is_dir():
        raise CommandFailure(f"{option} {path}: the folder does not exist.", BAD_ARGUMENTS)
    if is_folder:
        return
    try:
        regular_target(path)
    except OSError as error:
        raise CommandFailure(f"{option} {path}: {error.strerror}.", BAD_ARGUMENTS) from None
