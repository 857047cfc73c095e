"""A window at the other end of a connection, which may be slow, go away, or send anything."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

from ..protocol import (
    AnySignal,
    Command,
    ErrorSnapshot,
    QuitSignal,
    Snapshot,
    decode_message,
    encode_snapshot_or_error,
)
from ..system.errors import error_report
from .greeting import Role

MAX_WAITING_BYTES = 32 << 20
"""The most bytes that wait for a window that does not read; beyond it the window is hung up on."""
MAX_MESSAGE_BYTES = 64 << 20


class Peer:
    """`came(peer, message)` is called for each command and signal, `gone(peer)` once at the end;
    both on a thread of the peer's. `start` begins to read."""

    def __init__(
        self,
        connection: Connection,
        role: Role,
        came: Callable[[Peer, Command | AnySignal], None],
        gone: Callable[[Peer], None],
    ) -> None:
        self.role: Role = role
        self.revision = 0
        """The revision of the document in the window's newest command."""
        self._connection = connection
        self._came, self._gone = came, gone
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._is_closed = False

    def start(self) -> None:
        threading.Thread(target=self._read, name="tensorlab-reader", daemon=True).start()
        threading.Thread(target=self._write, name="tensorlab-writer", daemon=True).start()

    def tell(self, snapshot: Snapshot) -> None:
        """Let a snapshot be written, without waiting."""
        data = encode_snapshot_or_error(snapshot)
        with self._changed:
            if self._is_closed:
                return
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            self._changed.notify_all()
            is_stuck = self._waiting_bytes > MAX_WAITING_BYTES
        if is_stuck:
            self.close()

    def close(self, flush_s: float = 0.0) -> None:
        """Hang up, after `flush_s` at most, in which the waiting messages are written. `gone` is
        called, unless it has been."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting_bytes or self._is_closed, flush_s)
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()
        with suppress(OSError), socket.socket(fileno=socket.dup(self._connection.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)  # ends the reads and writes of the threads

    def _read(self) -> None:
        try:
            while True:
                data = self._connection.recv_bytes(MAX_MESSAGE_BYTES)
                try:
                    message = decode_message(data)
                except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
                    self.tell(ErrorSnapshot(command="", error=error_report(error)))
                    continue
                if isinstance(message, QuitSignal):
                    break
                if isinstance(message, Command):
                    self.revision = message.revision
                self._came(self, message)
        except (EOFError, OSError):
            pass  # the window has gone
        finally:
            self.close()
            self._gone(self)
            self._connection.close()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return
                data = self._waiting.popleft()
            try:
                self._connection.send_bytes(data)
            except (OSError, ValueError):  # ValueError: `_read` has closed it
                return
            with self._changed:
                self._waiting_bytes -= len(data)
                self._changed.notify_all()
