"""Listening for windows, in threads of its own. A faulty caller is told what is wrong; its errors
never reach the process that listens."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import (
    Connection,
    answer_challenge,  # pyright: ignore[reportAttributeAccessIssue]
    deliver_challenge,  # pyright: ignore[reportAttributeAccessIssue]
)
from multiprocessing.context import AuthenticationError

from .greeting import (
    MAX_BYTES,
    About,
    Hello,
    Refusal,
    Role,
    Unwelcome,
    Welcome,
    decode_hello,
    encode,
)
from .places import describe, forget, has_sockets

GREETING_S = 5.0
"""The time that a caller has for its first message, and for the key."""
MAX_GREETING = 16
"""Callers that greet at once; more are hung up on."""

Came = Callable[[Connection, Role], object]
Admit = Callable[[Hello], Welcome | Refusal]
"""Answers a greeting. The role of a Welcome is the caller's from then on."""


class Listener:
    """Accepts windows until `close`. `admit(hello)` answers each greeting; `came(connection, role
    in the answer)` gets the connection then, on a thread of the listener's. `missed(role)`: the
    caller has gone before it could be told.

    On this machine the socket lies in a folder that only the user may enter. With `host`, and where
    there are no such sockets, it is TCP, for `port` (0: any), on the loopback interface only and
    with a `key` that the caller must know: other machines come through `ssh`. Raises OSError, and
    Unwelcome.
    """

    def __init__(
        self,
        about: About,
        admit: Admit,
        came: Came,
        host: str = "",
        port: int = 0,
        missed: Callable[[Role], object] = lambda role: None,
    ) -> None:
        self._admit, self._came, self._missed = admit, came, missed
        host = host or ("" if has_sockets() else "127.0.0.1")
        self.key = secrets.token_hex(16) if host else ""
        self._place = None
        self._greeting = threading.BoundedSemaphore(MAX_GREETING)
        self._is_closed = False
        if host:
            if not _is_loopback(host):
                raise Unwelcome(
                    f"Tensor Lab listens on this machine only, not on {host}. From another one, use"
                    " `tensorlab attach --ssh`."
                )
            self._socket = socket.create_server((host, port))
            self.address = "{}:{}".format(*self._socket.getsockname()[:2])
        else:
            self._place = describe(about)
            self._socket = socket.socket(socket.AF_UNIX)
            early = self._place.socket.with_suffix(".new")  # until it listens, none is to call it
            self._socket.bind(str(early))
            os.chmod(early, 0o600)
            self._socket.listen()
            early.rename(self._place.socket)
            self.address = str(self._place.socket)
        threading.Thread(target=self._accept, name="tensorlab-listener", daemon=True).start()

    def close(self) -> None:
        """Listen no more, and remove the socket. Connections stay."""
        self._is_closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()
        if self._place is not None:
            forget(self._place)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return  # closed
            if not self._greeting.acquire(blocking=False):
                caller.close()
                continue
            threading.Thread(
                target=self._greet, args=(caller,), name="tensorlab-greeting", daemon=True
            ).start()

    def _greet(self, caller: socket.socket) -> None:
        """Let the caller in, or tell it why not."""
        try:
            set_time_limit(caller, GREETING_S)
            connection = Connection(caller.detach())
            try:
                role = self._agree(connection)
            except (OSError, EOFError, AuthenticationError, AssertionError):
                # It has gone, is too slow, or does not know the key.
                role = None
            if role is None:
                connection.close()
                return
        finally:
            self._greeting.release()
        self._came(connection, role)

    def _agree(self, connection: Connection) -> Role | None:
        if self.key:
            deliver_challenge(connection, self.key.encode())
            answer_challenge(connection, self.key.encode())
        try:
            hello = decode_hello(connection.recv_bytes(MAX_BYTES))
            answer = self._admit(hello)
        except Unwelcome as error:
            answer = Refusal(str(error))
        if isinstance(answer, Refusal):
            connection.send_bytes(encode(answer))
            return None
        try:
            set_time_limit_of(connection, 0)
            connection.send_bytes(encode(answer))
        except OSError:
            self._missed(answer.role)
            raise
        return answer.role


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def set_time_limit(end: socket.socket, seconds: float) -> None:
    """Reads and writes of this socket raise OSError after `seconds`; 0: never. Unlike `settimeout`,
    it holds for whoever has the descriptor."""
    if os.name == "nt":
        limit = struct.pack("=I", int(seconds * 1e3))
    else:
        limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        end.setsockopt(socket.SOL_SOCKET, option, limit)


def set_time_limit_of(connection: Connection, seconds: float) -> None:
    with socket.socket(fileno=socket.dup(connection.fileno())) as end:
        set_time_limit(end, seconds)
