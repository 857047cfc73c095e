"""Ending what other threads read from a connection, or write to it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def end_reads_and_writes(connection: Connection) -> None:
    """End those of other threads, though a process that escaped the engine's group holds the other
    end open. On Windows children hold no end of it."""
    if os.name != "nt":
        import socket

        with socket.socket(fileno=os.dup(connection.fileno())) as end, suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
