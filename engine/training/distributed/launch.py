"""Starts the ranks of a run, and hears of them."""

from __future__ import annotations

import os
import queue
import secrets
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import NamedTuple

import msgspec
import torch
from torch import Tensor

from ...protocol import (
    AnySignal,
    Command,
    Snapshot,
    decode_snapshot,
    encode_command,
)
from ...spawning import program_environment

RANK = "engine.ranks.rank"
LAUNCHER = "engine.ranks.launcher"
JOB, WEIGHTS, FAILURES = "job.json", "weights.pt", "failures.json"
LOST = 3
"""The exit code of a rank that ended since another one had."""
LOOK_UP_S = 0.05
LEAVING_S = 20.0


class Job(msgspec.Struct, frozen=True):
    """What a rank reads: where rank 0 reports, the commands that run the user's files, and the one
    that trains, encoded."""

    address: str
    key: bytes
    files: list[bytes]
    train: bytes


class RankFailure(NamedTuple):
    """A rank that ended with an exit code, below 0 by a signal; `message` is its error's."""

    rank: int
    exit_code: int
    message: str

    def __str__(self) -> str:
        if self.exit_code < 0:
            return f"Rank {self.rank} was ended by {signal.Signals(-self.exit_code).name}."
        told = f": {self.message}" if self.message else "."
        return f"Rank {self.rank} ended with exit code {self.exit_code}{told}"


class Launched:
    """The ranks of a run, from the start on. `close` it: no rank lives on.

    `folder` is for the job and for what the ranks print. `weights` are those to begin with. Raises
    OSError.
    """

    def __init__(
        self,
        folder: Path,
        processes: int,
        files: list[Command],
        train: Command,
        weights: dict[str, Tensor],
    ) -> None:
        self._folder = folder
        for old in (*folder.glob("rank-*.log"), folder / FAILURES):
            old.unlink(missing_ok=True)
        torch.save(weights, folder / WEIGHTS)
        key = secrets.token_bytes(32)
        self._listener = Listener(authkey=key)
        job = Job(
            str(self._listener.address), key, [encode_command(c) for c in files],
            encode_command(train),
        )  # fmt: skip
        descriptor = os.open(folder / JOB, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(job))
        self._heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._connection: Connection | None = None
        threading.Thread(target=self._listen, name="ranks", daemon=True).start()
        with open(folder / "launcher.log", "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", LAUNCHER, str(folder / JOB), str(processes)],
                env=program_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def next(self) -> Snapshot | None:
        """The next snapshot of rank 0; None if there is none for a moment. Raises EOFError if the
        ranks have ended."""
        ended = self._process.poll() is not None
        try:
            return decode_snapshot(self._heard.get(timeout=LOOK_UP_S))
        except queue.Empty:
            if ended:
                raise EOFError from None
            return None

    def send(self, message: Command | AnySignal) -> bool:
        """False if rank 0 does not listen yet, or no longer."""
        if self._connection is None:
            return False
        try:
            self._connection.send_bytes(encode_command(message))
        except OSError:
            return False
        return True

    def failure(self) -> RankFailure | None:
        """That of the rank for which the ranks ended; others ended since it had."""
        path = self._folder / FAILURES
        if not path.exists():
            return None
        failures = msgspec.json.decode(path.read_bytes(), type=list[RankFailure])
        after = (LOST, -getattr(signal, "SIGTERM", 15))
        return min(failures, key=lambda each: each.exit_code in after, default=None)

    def close(self) -> None:
        """End what still runs."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(LEAVING_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._connection is not None:
            self._connection.close()  # ends rank 0, should it still live
        self._listener.close()
        for name in (JOB, WEIGHTS, FAILURES):
            (self._folder / name).unlink(missing_ok=True)

    def _listen(self) -> None:
        with suppress(OSError, EOFError):  # it was closed, or rank 0 has ended
            self._connection = connection = self._listener.accept()
            while True:
                self._heard.put(connection.recv_bytes())
