"""`tensorlab attach`: the processes that listen for a window, and calling one of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import datetime
from functools import partial

from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.report import write_report
from engine.connecting.dialing import Call
from engine.connecting.greeting import About, Role, Unwelcome
from engine.connecting.places import listening
from engine.connecting.ssh import SSH, call_at, listening_at
from engine.system.program import version


def call(
    address: str, key: str, role: Role, host: str = "", python: str = ""
) -> tuple[Call, Callable[[], Call]]:
    """Call a process, or the only one that listens if there is no address; and how to call it
    again. With `host` it is on that machine, and without an address an engine there. Raises
    CommandFailure."""
    if host:
        address = shlex.join([SSH, host, *filter(None, [address])])
    way = partial(call_at, address or _only_address(), version(), key, role, python)
    try:
        return way(), way
    except Unwelcome as error:
        named = f" {address}" if address else ""
        raise CommandFailure(f"attach{named}: {error}") from None


def list_processes(json_out: str | None, host: str = "", python: str = "") -> None:
    """Print the processes that listen, here or on the machine that ssh leads to, or write them as
    JSON. Raises CommandFailure."""
    found = _listening(host, python)
    if json_out is not None:
        rows = [
            {
                "pid": about.pid,
                "name": about.name,
                "script": about.script,
                "rank": about.rank,
                "world_size": about.world_size,
                "listens_since": _time(about.started_s).isoformat(),
                "version": about.version,
                "group": about.group,
            }
            for about in found
        ]
        write_report({"processes": rows}, json_out)
        return
    for about in found:
        since = _time(about.started_s)
        print(f"{about.title}  since {since:%H:%M:%S}  {about.script}".rstrip())
    if not found:
        print("No process listens. `tensorlab.watch(model)` in a script makes it listen.")


def _only_address() -> str:
    """The only process that listens. Raises CommandFailure."""
    found = _listening()
    if len(found) == 1:
        return str(found[0].pid)
    there = ", ".join(about.title for about in found)
    words = f"Several processes listen: {there}." if found else "No process listens."
    raise CommandFailure(f"attach: which ADDRESS? {words}", BAD_ARGUMENTS)


def _listening(host: str = "", python: str = "") -> list[About]:
    try:
        if host:
            return listening_at(host, python)
        return [place.about for place in listening()]
    except (OSError, Unwelcome) as error:
        raise CommandFailure(f"attach: {error}") from None


def _time(since_1970_s: float) -> datetime:
    return datetime.fromtimestamp(since_1970_s).astimezone()
