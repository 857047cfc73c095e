"""The process that reads exported files, as the engine sees it."""

from __future__ import annotations

import queue
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import torch

from ..system.errors import LabError
from ..system.spawning import program_environment
from ..verifier.jobs import Answer, Failed, Job, decode_answer, encode

PROGRAM = f"{__name__.removesuffix('.exporting.verifying')}.verifier.program"
LOOK_UP_S = 0.1
LEAVING_S = 10.0


class Refused(Exception):
    """An exception of the process while it did a job; `error` is the name of its class."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.error = failed.error


class Verifier:
    """A fresh process for the length of a `with` block. It starts at once, so that it loads torch
    while the caller works. `folder` is for files that both need; it is removed at the end."""

    def __init__(self) -> None:
        self._files = tempfile.TemporaryDirectory(prefix="tensorlab-export-")
        self.folder = Path(self._files.name)
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._log = open(self.folder / "log.txt", "wb")  # noqa: SIM115 - closed by `close`
        environment = program_environment()
        environment["TMPDIR"] = environment["TEMP"] = str(self.folder)
        # Other numbers of threads add up in other orders.
        environment["OMP_NUM_THREADS"] = str(torch.get_num_threads())
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM],
            env=environment, cwd=self.folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, name="verifier", daemon=True)
        self._reader.start()

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, job: Job) -> Answer:
        """Wait for the answer; an interrupt ends the waiting. Raises Refused, and LabError if the
        process has ended."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # told below
            self._process.stdin.write(encode(job) + b"\n")
            self._process.stdin.flush()
        while True:
            try:
                line = self._answers.get(timeout=LOOK_UP_S)
            except queue.Empty:
                continue
            if not line:
                raise self._lost()
            answer = decode_answer(line)
            if isinstance(answer, Failed):
                raise Refused(answer)
            return answer

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(LEAVING_S)
        self._reader.join(LEAVING_S)
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            with suppress(BrokenPipeError):
                pipe.close()  # pyright: ignore[reportOptionalMemberAccess]
        self._files.cleanup()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(b"")

    def _lost(self) -> LabError:
        code = self._process.wait(LEAVING_S)
        log = (self.folder / "log.txt").read_text(errors="replace").strip()
        last = log.splitlines()[-1] if log else ""
        return LabError(
            f"The process that verifies the file ended with exit code {code}. {last}".strip(),
            hint="It may have run out of memory: close other programs, and export again.",
        )
