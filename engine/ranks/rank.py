"""`python -m engine.ranks.rank JOB`: one rank of a run, in the environment that torchrun sets.

Rank 0 trains as an engine does, and writes the run's folder; its snapshots go to the engine that
started the ranks. The others follow it. What a rank prints goes to `rank-N.log` beside the job.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback
from multiprocessing.connection import Client
from pathlib import Path

import msgspec
from torch.distributed.elastic.multiprocessing.errors import record

from ..handlers.training.as_rank import follow
from ..protocol import (
    Command,
    ErrorSnapshot,
    OutputSnapshot,
    PauseSignal,
    Snapshot,
    StopSignal,
    TrainCommand,
    TrainingSnapshot,
    decode_command,
    decode_message,
    encode_snapshot_or_error,
)
from ..server.session import Session
from ..system.control import Control
from ..training.distributed.launch import BEGINS_RUN, Job
from ..training.distributed.rank_files import LOST, log_of, sign
from ..training.distributed.ranks import RankLost
from ..training.distributed.torchrun import join, own_place

FAILED = 1


@record
def main(path: str) -> int:
    """Train; returns the exit code. What a rank raises is told by torch's launcher."""
    job_file = Path(path)
    job = msgspec.json.decode(job_file.read_bytes(), type=Job)
    place = own_place()
    assert place is not None
    sign(job_file.parent, place.rank)
    _print_to(log_of(job_file.parent, place.rank))
    print(f"Rank {place.rank} of {place.size}: process {os.getpid()}.", flush=True)
    link = _Link(job if place.rank == 0 else None)
    session = Session(link.send)
    for command in map(decode_command, job.files):
        session.handle(command)
        if link.has_failed:
            return FAILED
    command = decode_command(job.train)
    assert isinstance(command, TrainCommand)
    try:
        ranks = session.lab.ranks = join(place, command.training)
        if place.rank:
            with session.answering(command):
                follow(session.lab, command)
            return 0
        session.handle(command)
        link.listen(session.lab.control)
        link.drive(session)
        if link.has_failed:
            return LOST if ranks.is_lost else FAILED
        ranks.end()
        return 0
    except RankLost:
        print("Another rank has ended.", flush=True)
        return LOST


class _Link:
    """Rank 0's connection to the engine that started the ranks: if the engine ends, so does this
    process. Another rank only prints."""

    def __init__(self, job: Job | None) -> None:
        self._connection = Client(job.address, authkey=job.key) if job else None
        self._received: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self.has_failed = False

    def send(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, OutputSnapshot):
            print(snapshot.text, end="", flush=True)
        elif isinstance(snapshot, ErrorSnapshot):
            print(f"{snapshot.error.type}: {snapshot.error.message}", flush=True)
            self.has_failed |= snapshot.command in BEGINS_RUN
        elif isinstance(snapshot, TrainingSnapshot):
            self.has_failed = snapshot.state == "failed"
        if self._connection is not None:
            self._connection.send_bytes(encode_snapshot_or_error(snapshot))

    def listen(self, control: Control) -> None:
        """Let the engine's signals act at once; its commands wait for `drive`."""
        threading.Thread(target=self._read, args=(control,), name="link", daemon=True).start()

    def drive(self, session: Session) -> None:
        """Train to the end of the run, and answer commands between two steps."""
        is_busy = True
        while session.lab.is_training:
            try:
                command = self._received.get(block=not is_busy)
            except queue.Empty:
                is_busy = session.advance()
                continue
            if command is not None:
                session.handle(command)
            is_busy = True

    def _read(self, control: Control) -> None:
        assert self._connection is not None
        while True:
            try:
                message = decode_message(self._connection.recv_bytes())
            except (EOFError, OSError):
                os._exit(FAILED)  # the engine has gone
            if isinstance(message, Command):
                self._received.put(message)
            elif isinstance(message, StopSignal | PauseSignal):
                (control.stop if isinstance(message, StopSignal) else control.pause).set()
                self._received.put(None)


def _print_to(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    os.close(descriptor)


def run(path: str) -> None:
    """`main`, and the end of this process."""
    code = FAILED
    try:
        code = main(path) or 0
    except BaseException:  # also an exit of the user's code: the run has not been trained
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # gloo's threads may abort a process that ends step by step


if __name__ == "__main__":
    run(sys.argv[1])
