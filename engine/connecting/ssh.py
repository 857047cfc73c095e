"""Addresses, which may lead to another machine through the system's ssh: "ssh HOST" or "ssh HOST
NAME"."""

from __future__ import annotations

import shlex
import subprocess
from datetime import datetime

import msgspec
from msgspec import Struct

from .dialing import ANSWER_S, Call, dial, dial_through
from .greeting import About, Refused, Role, Unwelcome

SSH = "ssh"
ENGINE = "tensorlab-engine"
"""The name of the engine on another machine, unless the address has one."""
_ALIVE = ("-o", "ServerAliveInterval=15")
"""ssh asks every 15 seconds. After three questions without an answer it ends, so the window knows
that the connection is lost."""

_OPTIONS = "Options of ssh belong into ~/.ssh/config: ssh HOST, or ssh HOST NAME."
_NO_PROGRAM = "Give the path of the Python on that machine that has Tensor Lab."
_ADVICE = (
    ("resolve hostname", "Check the name, or what ~/.ssh/config says of it."),
    ("host key verification failed", "Run `ssh HOST` in a terminal once, and look at its key."),
    ("permission denied (", "Let your key in there: `ssh-copy-id HOST` in a terminal."),
    ("connection refused", "Is an ssh server running there, on this port?"),
    ("timed out", "Is the machine on, and the network between you and it?"),
    ("no route to host", "Is the machine on, and the network between you and it?"),
    ("no module named", "This Python has no Tensor Lab: install it there by its pip."),
    ("invalid choice: 'relay'", "Tensor Lab there is an older one: install this version."),
    ("unrecognized arguments", "Tensor Lab there is an older one: install this version."),
    ("no such file or directory", "Is this the path of a Python on that machine?"),
    ("command not found", _NO_PROGRAM),
    (": not found", _NO_PROGRAM),
)
"""By a text that ssh or the shell there writes, in lower case: what to try."""


def call_at(
    address: str,
    version: str,
    key: str = "",
    wants: Role = "steer",
    python: str = "",
) -> Call:
    """Call a process by its address, as `dial`, or on another machine. Raises Unwelcome.

    `python` is the interpreter there that has Tensor Lab; without it, the command `tensorlab` is.
    """
    if not is_remote(address):
        return dial(address, version, key, wants)
    try:
        return dial_through(relay_command(address, python), version, wants)
    except Refused:
        raise
    except Unwelcome as error:
        raise Unwelcome(with_advice(str(error), address)) from error


class _Process(Struct):
    name: str
    pid: int
    script: str
    version: str
    listens_since: datetime
    rank: int
    world_size: int
    group: str = ""


class _Listing(Struct):
    """The JSON that `tensorlab attach --list --json` writes."""

    processes: list[_Process]


def listening_at(host: str, python: str = "") -> list[About]:
    """The processes that listen on the machine that ssh leads to. Raises Unwelcome."""
    command = _command(host, python, ["attach", "--list", "--json"])
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unwelcome(f"`{command[0]}` has not answered: {error}.") from error
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise Unwelcome(with_advice(f"{command[0]}: {words}", f"{SSH} {host}"))
    try:
        found = msgspec.json.decode(done.stdout, type=_Listing).processes
    except (ValueError, RecursionError) as error:
        raise Unwelcome("What answers there is not Tensor Lab.") from error
    return [
        About(
            name=each.name, pid=each.pid, script=each.script, version=each.version,
            started_s=each.listens_since.timestamp(), rank=each.rank, world_size=each.world_size,
            group=each.group,
        )
        for each in found
    ]  # fmt: skip


def with_advice(words: str, address: str) -> str:
    """The message of ssh, and advice."""
    host = shlex.split(address)[1]
    for said, advice in _ADVICE:
        if said in words.lower():
            return f"{words.rstrip('.')}. {advice.replace('HOST', host)}"
    return words


def is_remote(address: str) -> bool:
    return address.split(maxsplit=1)[:1] == [SSH]


def relay_command(address: str, python: str = "") -> list[str]:
    """The command that leads to a process of another machine, or to an engine there, which it
    starts if need be. Raises Unwelcome."""
    host, names = _host_of(address)
    return _command(host, python, ["relay", *(names or ["--start", ENGINE])])


def _host_of(address: str) -> tuple[str, list[str]]:
    """The machine, and the name of a process there if one is given. Raises Unwelcome."""
    try:
        _, host, *names = shlex.split(address)
    except ValueError as error:
        raise Unwelcome("Which machine? ssh HOST, or ssh HOST NAME.") from error
    if len(names) > 1:
        raise Unwelcome(_OPTIONS)
    return host, names


def _command(host: str, python: str, arguments: list[str]) -> list[str]:
    """The command that runs `tensorlab` there. Raises Unwelcome."""
    if host.startswith("-"):
        raise Unwelcome(_OPTIONS)
    program = [python, "-m", "tensorlab"] if python else ["tensorlab"]
    return [SSH, "-T", *_ALIVE, host, shlex.join([*program, *arguments])]
