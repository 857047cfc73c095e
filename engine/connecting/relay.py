"""Joins standard input and output to a process that listens. This runs at the other end of ssh."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from .dialing import socket_at

CHUNK = 1 << 16


def relay(address: str) -> None:
    """Pass bytes on until either side ends. Raises Unwelcome if nothing listens there."""
    end = socket_at(address)

    def back() -> None:
        with suppress(ConnectionError):  # the process has ended
            while data := end.recv(CHUNK):
                view = memoryview(data)
                while view:
                    view = view[os.write(1, view) :]
        os._exit(0)  # the main thread waits for input that nobody wants any more

    threading.Thread(target=back, name="relay", daemon=True).start()
    with suppress(ConnectionError):
        while data := os.read(0, CHUNK):
            end.sendall(data)
    end.close()
