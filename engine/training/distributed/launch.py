"""Starts the ranks of a run, and hears of them."""

from __future__ import annotations

import os
import queue
import secrets
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import NamedTuple

import msgspec
import torch
from torch import Tensor

from ...connecting.ending import end_reads_and_writes
from ...protocol import (
    AnySignal,
    Command,
    RunFileCommand,
    Snapshot,
    TakeConsoleCommand,
    TrainCommand,
    decode_snapshot,
    encode_command,
)
from ...system.spawning import program_environment
from .rank_files import RankFailure, clear, failures_in

_ENGINE = __name__.removesuffix(".training.distributed.launch")
RANK, LAUNCHER = f"{_ENGINE}.ranks.rank", f"{_ENGINE}.ranks.launcher"
JOB, WEIGHTS, CONSOLE = "job.json", "weights.pt", "console.bin"
BEGINS_RUN = (RunFileCommand.__name__, TakeConsoleCommand.__name__, TrainCommand.__name__)
"""Without the answer to one of these commands there is no run."""
LOOK_UP_S = 0.05
LEAVING_S = 20.0


class Handover(NamedTuple):
    """Things that a rank has before it trains: the commands that run the user's files, the weights
    to begin with, and the values of the console (see `console/elsewhere`), if they need any."""

    files: list[Command]
    weights: dict[str, Tensor]
    console: bytes = b""


class Job(msgspec.Struct, frozen=True):
    """The job that a rank reads: where rank 0 reports, the commands that run the user's files and
    give the console its values, and the one that trains, encoded."""

    address: str
    key: bytes
    files: list[bytes]
    train: bytes


class Launched:
    """The ranks of a run, from the start on. `close` it: no rank lives on.

    `folder` is for the job and for what the ranks print. Raises OSError.
    """

    def __init__(
        self,
        folder: Path,
        processes: int,
        train: Command,
        given: Handover,
    ) -> None:
        self._folder = folder
        clear(folder)
        torch.save(given.weights, folder / WEIGHTS)
        before = list(given.files)
        if given.console:
            _write_privately(folder / CONSOLE, given.console)
            before.append(TakeConsoleCommand(path=str(folder / CONSOLE)))
        key = secrets.token_bytes(32)
        self._listener = Listener(authkey=key)
        job = Job(
            str(self._listener.address), key, [encode_command(c) for c in before],
            encode_command(train),
        )  # fmt: skip
        _write_privately(folder / JOB, msgspec.json.encode(job))
        self._heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._connecting = threading.Lock()
        self._early: list[Command | AnySignal] = []
        self._listening = threading.Thread(target=self._listen, name="ranks", daemon=True)
        self._listening.start()
        with open(folder / "launcher.log", "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", LAUNCHER, str(folder / JOB), str(processes)],
                env=_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
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

    @property
    def has_begun(self) -> bool:
        """Whether rank 0 listens, so that it can end the run itself."""
        return self._connection is not None

    def send(self, message: Command | AnySignal) -> None:
        """Send a message to rank 0, as soon as it listens. If rank 0 has ended, nothing is sent:
        `next` raises then."""
        with self._connecting:
            if self._connection is None:
                self._early.append(message)
                return
        with suppress(OSError):
            self._connection.send_bytes(encode_command(message))

    def failure(self) -> RankFailure | None:
        """The failure of the rank that ended first; the others ended because of it."""
        failures = failures_in(self._folder)
        return max(failures, key=lambda each: each.is_first, default=None)

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
            end_reads_and_writes(self._connection)  # ends rank 0, should it still live
        else:
            with suppress(OSError):
                Client(self._listener.address).close()  # wakes the thread that waits for rank 0
        self._listening.join(LEAVING_S)
        if self._connection is not None:
            self._connection.close()
        self._listener.close()
        for name in (JOB, WEIGHTS, CONSOLE):
            (self._folder / name).unlink(missing_ok=True)

    def _listen(self) -> None:
        with suppress(OSError, EOFError):  # it was closed, or rank 0 has ended
            connection = self._listener.accept()
            with self._connecting:
                for message in self._early:
                    connection.send_bytes(encode_command(message))
                self._connection = connection
            while True:
                self._heard.put(connection.recv_bytes())


def _write_privately(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)


def _environment() -> dict[str, str]:
    """The environment of a rank. Without the warning of torch that all parameters are used."""
    return {"TORCH_CPP_LOG_LEVEL": "ERROR", **program_environment()}
