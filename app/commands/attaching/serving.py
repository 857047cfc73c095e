"""`tensorlab serve` and `tensorlab relay`: an engine for windows of this and of other machines."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from app.commands.failures import CommandFailure
from engine.connecting.greeting import Unwelcome
from engine.connecting.places import is_listening
from engine.system.folders import data_folder
from engine.system.program import program_file

START_S = 60.0
"""The time that a new engine has until it listens."""
LOOK_S = 0.05
"""How often to look whether it listens, or has ended."""


def serve(name: str, host: str, port: int) -> None:
    """Run an engine until it is ended. Raises CommandFailure where it cannot listen."""
    from engine.server.served import serve_windows

    try:
        serve_windows(name, host, port)
    except (OSError, Unwelcome) as error:
        raise CommandFailure(f"serve: {error}") from None


def relay_to(address: str, start: bool) -> None:
    """Pass bytes on until either side ends; with `start`, to a new engine if there is none of that
    name. Raises CommandFailure if nothing listens."""
    from engine.connecting.relay import relay

    try:
        if start and not is_listening(address):
            _start(address)
        relay(address)
    except (OSError, Unwelcome) as error:
        raise CommandFailure(f"relay: {error}") from None


def _start(name: str) -> None:
    """Start an engine that outlives this process, and wait until it listens. What it prints goes to
    a file."""
    log = data_folder() / "engines" / f"{name}.log"
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        engine = subprocess.Popen(
            [sys.executable, str(program_file()), "serve", "--name", name],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    late_s = time.monotonic() + START_S
    while not is_listening(name):
        if engine.poll() is not None or time.monotonic() > late_s:
            raise CommandFailure(f"relay: the engine {name} did not start; {log} says why.")
        time.sleep(LOOK_S)
