"""Where the processes of this user that listen are found: a folder with a socket for each, and a
file beside it that describes it."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from .greeting import About, Unwelcome, decode_about, encode

MAX_DESCRIPTION = 16_384
"""Bytes of a file that describes a process."""

MAX_FOLDER = 70
"""Bytes of the folder's path: that of a socket has at most 104 on macOS, 108 on Linux."""


class Place(NamedTuple):
    """A process that listens, and its socket."""

    about: About
    socket: Path


def has_sockets() -> bool:
    """Whether sockets lie in folders here, which only the user may enter: not on Windows."""
    return hasattr(socket, "AF_UNIX") and hasattr(os, "getuid")


def folder() -> Path:
    """The folder of this user's sockets, which only the user may enter; made if it is not there.

    Raises Unwelcome if another user owns it or others may enter it, and OSError.
    """
    if not has_sockets():
        raise Unwelcome(
            "On this system processes listen on TCP only, each with a key that it prints."
        )
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    path = Path(runtime) / "tensorlab"
    if not runtime or len(os.fsencode(path)) > MAX_FOLDER:
        path = Path(tempfile.gettempdir()) / f"tensorlab-{os.getuid()}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise Unwelcome(f"{path} is not a folder that only you may enter. Remove it.")
    return path


def describe(about: About) -> Place:
    """Write the description of a process that will listen, and say where its socket is to be."""
    sockets = folder()
    number = 1
    while (description := sockets / f"{about.pid}-{number}.json").exists():
        number += 1
    descriptor = os.open(description, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(encode(about))
    return Place(about, description.with_suffix(".sock"))


def forget(place: Place) -> None:
    """Remove the socket and the description."""
    for path in (place.socket, place.socket.with_suffix(".json")):
        with suppress(OSError):
            path.unlink()


def listening() -> list[Place]:
    """The processes that listen, the newest first; none where they listen on TCP only. What the
    dead have left is removed.

    Raises as `folder`.
    """
    if not has_sockets():
        return []
    found: list[Place] = []
    for description in folder().glob("*.json"):
        try:
            with description.open("rb") as file:
                about = decode_about(file.read(MAX_DESCRIPTION))
        except (OSError, ValueError):
            continue  # it is being written or removed, or is no description
        place = Place(about, description.with_suffix(".sock"))
        if not _lives(about):
            forget(place)
        elif place.socket.exists():
            found.append(place)
    return sorted(found, key=lambda place: place.about.started_s, reverse=True)


def is_listening(address: str) -> bool:
    """Whether a process listens that is called so. Raises as `folder`."""
    return any(address in place.about.known_as for place in listening())


def _lives(about: About) -> bool:
    """Whether the process lives, and is not a later one of the same number."""
    try:
        return psutil.Process(about.pid).create_time() <= about.started_s + 1
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
