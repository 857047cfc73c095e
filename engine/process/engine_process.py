"""An engine in another process, as the window sees it: messages to it, messages from it, its
end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ..connecting.ending import end_reads_and_writes
from ..protocol import (
    MAX_SNAPSHOT_BYTES,
    AnySignal,
    Command,
    NotAMessage,
    Snapshot,
    decode_snapshot_or_error,
)
from .exits import Departure, Exit
from .outbox import Outbox

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_POLL_S = 0.5


class EngineLost(Exception):
    """The engine has ended, or cannot be reached. `EngineProcess.exit()` says how."""


class EngineProcess:
    """One engine. `start` it once. A subclass says how it starts and ends; it calls `_talk`.

    One thread may call `send` and `signal` while another waits in `receive`.
    """

    def __init__(
        self, last_id: int = 0, superseded: Callable[[Command], object] = lambda command: None
    ) -> None:
        """Command ids count from `last_id`, so that a restarted engine gets new ones.
        `superseded(command)` is called by `send`; see `Command.newest_only`."""
        self._connection: Connection | None = None
        self._outbox: Outbox | None = None
        self._last_id = last_id
        self._superseded = superseded
        self._lost = False
        self._garbled = False

    @property
    def pid(self) -> int | None:
        """None before `start`, and of a process on another machine."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin without waiting. A ReadySnapshot follows when the engine can answer. Raises
        OSError."""
        raise NotImplementedError

    def send(self, command: Command) -> int:
        """Send a command with a new id, and return the id. Does not wait for the engine to read.

        Raises EngineLost, and BufferError while too many messages wait to be read.
        """
        self._last_id += 1
        self._put(msgspec.structs.replace(command, id=self._last_id))
        return self._last_id

    def signal(self, signal: AnySignal) -> None:
        """Raises EngineLost."""
        self._put(signal)

    def receive(self, timeout_s: float | None = None) -> Snapshot | None:
        """The next snapshot; None after `timeout_s` without one. An answer that cannot be read is
        an ErrorSnapshot. Raises EngineLost if the engine has ended, or sent bytes
        that are not a message."""
        connection = self._open_connection()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            wait_s = _POLL_S if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                if connection.poll(min(wait_s, _POLL_S)):
                    return decode_snapshot_or_error(connection.recv_bytes(MAX_SNAPSHOT_BYTES))
                # A child process of the engine may outlive it and hold the pipe open.
                if not self.is_alive() and not connection.poll(0):
                    raise EOFError
            except (NotAMessage, EOFError, OSError) as error:
                self._garbled = isinstance(error, NotAMessage)
                self._lost = True
                raise EngineLost from error
            if deadline is not None and time.monotonic() >= deadline:
                return None

    def is_alive(self) -> bool:
        """Whether the process lives, as far as that can be known."""
        raise NotImplementedError

    def kill(self) -> None:
        """End the engine at once, if it is the window's own."""
        raise NotImplementedError

    def stop(self, grace_s: float = 3.0) -> None:
        """Ask the engine to end, or leave it if it is in a process of the user's."""
        raise NotImplementedError

    def exit(self) -> Exit | Departure:
        """How the engine was lost. Call this before `close`."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop the engine, and close the connection. No thread may be in `receive` any more."""
        self.stop()
        self._hang_up()

    # -- for subclasses --------------------------------------------------------------------------

    def _talk(self, connection: Connection) -> None:
        """Send and receive on this connection from now on."""
        self._connection = connection
        self._outbox = Outbox(self._write)

    def _hang_up(self) -> None:
        connection = self._connection
        if connection is not None and connection.closed:
            return
        if connection is not None:
            end_reads_and_writes(connection)
        if self._outbox is not None:
            self._outbox.close()
        if connection is not None:
            connection.close()

    def _write(self, data: bytes) -> None:
        self._open_connection().send_bytes(data)

    def _open_connection(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("this engine was never started")
        return self._connection

    def _put(self, message: Command | AnySignal) -> None:
        if self._outbox is None:
            raise RuntimeError("this engine was never started")
        if self._lost:
            raise EngineLost
        try:
            superseded = self._outbox.put(message)
        except OSError as error:
            raise EngineLost from error
        for command in superseded:
            self._superseded(command)
