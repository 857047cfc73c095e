"""Starting the ranks of a run: what they get, and how rank 0 is heard. The launcher is a stub; rank
0 is a connection of this process."""

from __future__ import annotations

import stat
import subprocess
import sys
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from engine.project.document import Model, TrainingSetup
from engine.protocol import (
    Command,
    DoneSnapshot,
    PauseSignal,
    RunFileCommand,
    StopSignal,
    TakeConsoleCommand,
    TrainCommand,
    decode_command,
    encode_command,
    encode_snapshot,
)
from engine.training.distributed import launch
from engine.training.distributed.launch import (
    CONSOLE,
    JOB,
    LAUNCHER,
    WEIGHTS,
    Handover,
    Job,
    Launched,
)
from engine.training.distributed.rank_files import LOST, RankFailure, log_of, write_failures

TRAIN = TrainCommand(id=3, model=Model(), training=TrainingSetup(), paused=True)
FILE = RunFileCommand(id=2, path="/net.py")


class Stub:
    """The launcher's process. It ends as it is told to: by `terminate`, or only by `kill`."""

    def __init__(self, arguments: list[str], env: dict[str, str], **streams: Any) -> None:
        self.arguments, self.env, self.streams = arguments, env, streams
        self.code: int | None = None
        self.is_deaf = False
        self.calls: list[Any] = []

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.calls.append("terminate")
        if not self.is_deaf:
            self.code = -15

    def kill(self) -> None:
        self.calls.append("kill")
        self.code = -9

    def wait(self, timeout: float | None = None) -> int:
        self.calls.append(timeout)
        if self.code is None:
            raise subprocess.TimeoutExpired("launcher", 1)
        return self.code


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    started: list[Launched] = []

    def stub(*arguments: Any, **more: Any) -> Stub:
        return Stub(*arguments, **more)

    def launched(console: bytes = b"", files: list[Command] | None = None) -> Launched:
        monkeypatch.setattr(launch.subprocess, "Popen", stub)
        weights = {"w": torch.arange(3.0)}
        found = Launched(tmp_path, 3, TRAIN, Handover(files or [], weights, console))
        started.append(found)
        return found

    yield launched
    for each in started:
        if (tmp_path / JOB).exists():  # the test has not closed it
            each.close()


def process_of(launched: Launched) -> Stub:
    found: Any = launched._process
    return found


def job_in(folder: Path) -> Job:
    return msgspec.json.decode((folder / JOB).read_bytes(), type=Job)


def connected(folder: Path, launched: Launched) -> Connection:
    """Rank 0, as soon as the window's side has it."""
    job = job_in(folder)
    rank = Client(job.address, authkey=job.key)
    rank.send_bytes(encode_snapshot(DoneSnapshot(reply_to=7)))
    while launched.next() is None:
        pass
    return rank


def test_the_ranks_get_their_job_the_weights_and_the_console(start, tmp_path: Path) -> None:
    log_of(tmp_path, 5).write_text("of a former start")
    launched = start(b"values", [FILE])
    job = job_in(tmp_path)
    assert decode_command(job.train) == TRAIN
    console = TakeConsoleCommand(path=str(tmp_path / CONSOLE))
    assert [decode_command(each) for each in job.files] == [FILE, console]
    assert (tmp_path / CONSOLE).read_bytes() == b"values"
    assert torch.equal(torch.load(tmp_path / WEIGHTS)["w"], torch.arange(3.0))
    assert not log_of(tmp_path, 5).exists()
    for name in (JOB, CONSOLE):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    process = process_of(launched)
    assert process.arguments == [sys.executable, "-m", LAUNCHER, str(tmp_path / JOB), "3"]
    assert process.env["TORCH_CPP_LOG_LEVEL"] == "ERROR" and process.env["PYTHONSAFEPATH"] == "1"
    assert process.streams["stdout"].name == str(tmp_path / "launcher.log")
    assert process.streams["stderr"] is process.streams["stdout"]
    assert process.streams["stdin"] == subprocess.DEVNULL
    launched.close()
    assert {path.name for path in tmp_path.iterdir()} == {"launcher.log"}


def test_without_values_of_the_console_there_is_no_file_of_them(start, tmp_path: Path) -> None:
    start(files=[FILE])
    assert not (tmp_path / CONSOLE).exists()
    assert [decode_command(each) for each in job_in(tmp_path).files] == [FILE]


def test_rank_0_hears_what_was_sent_before_it_listened_and_after(start, tmp_path: Path) -> None:
    launched = start()
    assert not launched.has_begun
    launched.send(PauseSignal())
    launched.send(FILE)
    rank = connected(tmp_path, launched)
    assert launched.has_begun
    launched.send(StopSignal())
    assert [rank.recv_bytes() for _ in range(3)] == [
        encode_command(each) for each in (PauseSignal(), FILE, StopSignal())
    ]
    rank.send_bytes(encode_snapshot(DoneSnapshot(reply_to=8)))
    while (told := launched.next()) is None:
        pass
    assert told == DoneSnapshot(reply_to=8)


def test_what_a_rank_told_before_it_ended_is_still_heard(start, tmp_path: Path) -> None:
    launched = start()
    assert launched.next() is None
    rank = connected(tmp_path, launched)
    rank.close()
    launched._listening.join()
    launched.send(PauseSignal())  # nobody hears it
    assert launched.has_begun
    assert launched.next() is None
    process_of(launched).code = 1
    with pytest.raises(EOFError):
        launched.next()


def test_of_several_failures_the_first_one_counts(start, tmp_path: Path) -> None:
    launched = start()
    assert launched.failure() is None
    first = RankFailure(2, 1, "ValueError: no")
    write_failures(tmp_path, [RankFailure(0, LOST, ""), first, RankFailure(1, -15, "")])
    assert launched.failure() == first


@pytest.mark.parametrize(
    ("code", "is_deaf", "calls"),
    [
        (None, False, ["terminate", launch.LEAVING_S]),
        (None, True, ["terminate", launch.LEAVING_S, "kill", None]),
        (0, False, []),
    ],
)
@pytest.mark.parametrize("has_begun", [True, False])
def test_closing_ends_what_still_runs(
    start, tmp_path: Path, code: int | None, is_deaf: bool, calls: list[Any], has_begun: bool
) -> None:
    launched = start()
    rank = connected(tmp_path, launched) if has_begun else None
    process = process_of(launched)
    process.code, process.is_deaf = code, is_deaf
    launched.close()
    assert process.calls == calls
    assert not launched._listening.is_alive()
    if rank is not None:
        with pytest.raises(EOFError):
            rank.recv_bytes()
    else:
        assert not launched.has_begun
