"""Addresses, which may lead to another machine through the system's ssh: "ssh HOST" or "ssh HOST
NAME"."""

from __future__ import annotations

import shlex

from .dialing import Call, dial, dial_through
from .greeting import Role, Unwelcome

SSH = "ssh"
ENGINE = "tensorlab-engine"
"""The name of the engine on another machine that no other name is given for."""


def call_at(
    address: str, version: str, key: str = "", wants: Role = "steer", python: str = ""
) -> Call:
    """Call a process by its address, as `dial`, or on another machine. Raises Unwelcome.

    `python` is the interpreter there that has Tensor Lab; without it, the command `tensorlab` is.
    """
    if not is_remote(address):
        return dial(address, version, key, wants)
    return dial_through(relay_command(address, python), version, wants)


def is_remote(address: str) -> bool:
    return address.split(maxsplit=1)[:1] == [SSH]


def relay_command(address: str, python: str = "") -> list[str]:
    """The command that leads to a process of another machine, or to an engine there, which it
    starts if need be. Raises Unwelcome."""
    try:
        _, host, *names = shlex.split(address)
    except ValueError as error:
        raise Unwelcome("Which machine? ssh HOST, or ssh HOST NAME.") from error
    if host.startswith("-") or len(names) > 1:
        raise Unwelcome("Options of ssh belong into ~/.ssh/config: ssh HOST, or ssh HOST NAME.")
    program = [python, "-m", "tensorlab"] if python else ["tensorlab"]
    goal = names or ["--start", ENGINE]
    return [SSH, "-T", host, shlex.join([*program, "relay", *goal])]
