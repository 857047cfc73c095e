"""Calling a process that listens: by its number, its name, HOST:PORT, or through a command that
passes standard input and output on, such as ssh."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import (
    Connection,
    answer_challenge,  # pyright: ignore[reportAttributeAccessIssue]
    deliver_challenge,  # pyright: ignore[reportAttributeAccessIssue]
)
from multiprocessing.context import AuthenticationError
from pathlib import Path
from typing import NamedTuple

from .greeting import MAX_BYTES, Hello, Refused, Role, Unwelcome, Welcome, decode_answer, encode
from .listener import set_time_limit, set_time_limit_of
from .places import Place, has_sockets, listening

ANSWER_S = 30.0
"""The time that the other side has to answer: it may have to ask for a password first."""


class Call(NamedTuple):
    """A connection on which the other side has said welcome. `through` is the command that passes
    it on, if one does."""

    connection: Connection
    welcome: Welcome
    through: subprocess.Popen[bytes] | None = None


def dial(address: str, version: str, key: str = "", wants: Role = "steer") -> Call:
    """Call a process by PID, name, path of its socket, or HOST:PORT with its key.

    Raises Unwelcome, in words.
    """
    end = socket_at(address)
    return _greet(end, Hello(version, wants), key if _is_tcp(address) else "")


def socket_at(address: str) -> socket.socket:
    """A socket to the process, on which nothing is said yet. Raises Unwelcome."""
    try:
        return _tcp(address) if _is_tcp(address) else _local(_socket_of(address))
    except (OSError, OverflowError) as error:
        raise Unwelcome(f"Nothing answers at {address}: {error}.") from error


def _is_tcp(address: str) -> bool:
    return ":" in address and address.rpartition(":")[2].isdecimal()


def _tcp(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    end = socket.create_connection((host or "127.0.0.1", int(port)), ANSWER_S)
    end.settimeout(None)
    return end


def _local(path: Path) -> socket.socket:
    end = socket.socket(socket.AF_UNIX)
    try:
        end.connect(str(path))
    except OSError:
        end.close()
        raise
    return end


def dial_through(command: Sequence[str], version: str, wants: Role = "steer") -> Call:
    """Call through a command whose standard input and output are those of the process that
    listens.

    Raises Unwelcome, in words, or those that the command has written to standard error.
    """
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=said
            )
        except OSError as error:
            ours.close()
            raise Unwelcome(f"`{command[0]}` cannot be started: {error}.") from error
        finally:
            theirs.close()
        try:
            return _greet(ours, Hello(version, wants))._replace(through=process)
        except Unwelcome as error:
            process.terminate()
            process.wait()
            said.seek(0)
            words = said.read(MAX_BYTES).decode(errors="replace").strip()
            if isinstance(error, Refused) or not words:
                raise
            raise Unwelcome(f"{command[0]}: {words}") from error


def _socket_of(address: str) -> Path:
    """Raises Unwelcome if no process listens under this address, or several do."""
    if Path(address).is_socket():
        return Path(address)
    if not has_sockets():
        raise Unwelcome(
            "On this system a process is called by the address and the key that it prints:"
            " `tensorlab attach 127.0.0.1:PORT --key KEY`."
        )
    there = listening()
    found = [place for place in there if address in place.about.known_as]
    if len(found) == 1:
        return found[0].socket
    if found:
        pids = ", ".join(str(place.about.pid) for place in found)
        raise Unwelcome(f"Several processes are called {address}: use a pid, {pids}.")
    raise Unwelcome(f"No process {address} listens. {_which_listen(there)}")


def _which_listen(there: list[Place]) -> str:
    if not there:
        return "`tensorlab.watch(model)` in a script makes it listen."
    return f"There are: {', '.join(place.about.title for place in there)}."


def _greet(end: socket.socket, hello: Hello, key: str = "") -> Call:
    set_time_limit(end, ANSWER_S)
    connection = Connection(end.detach())
    try:
        if key:
            answer_challenge(connection, key.encode())
            deliver_challenge(connection, key.encode())
        connection.send_bytes(encode(hello))
        answer = connection.recv_bytes(MAX_BYTES)
        if answer.startswith(b"#CHALLENGE#"):
            raise Unwelcome("It asks for its key: the process has printed it.")
        welcome = decode_answer(answer)
        set_time_limit_of(connection, 0)
    except AuthenticationError as error:
        connection.close()
        raise Unwelcome("The key is another one. The process has printed it.") from error
    except (OSError, EOFError, AssertionError) as error:
        with suppress(OSError):
            connection.close()
        raise Unwelcome("It hung up without an answer.") from error
    except Unwelcome:
        connection.close()
        raise
    return Call(connection, welcome)
