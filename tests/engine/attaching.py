"""Scripts that windows attach to, as real processes, and a window that is not one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from engine.connecting.dialing import Call, dial
from engine.connecting.greeting import Role, Unwelcome
from engine.protocol import (
    AnySignal,
    Command,
    Snapshot,
    decode_snapshot,
    encode_command,
)
from engine.system.program import version
from tests import forking
from tests.engine.processes import WAIT_S

S = TypeVar("S", bound=Snapshot)
ROOT = Path(__file__).parents[2]


class Window:
    """One end of a connection to a script; what has come is in `seen`."""

    def __init__(self, call: Call) -> None:
        self.welcome = call.welcome
        self.connection = call.connection
        self.seen: list[Snapshot] = []
        self._last_id = 0

    def send(self, message: Command | AnySignal, **fields: object) -> int:
        if isinstance(message, Command):
            self._last_id += 1
            message = msgspec.structs.replace(message, id=self._last_id, **fields)
        self.connection.send_bytes(encode_command(message))
        return self._last_id

    def next(self) -> Snapshot:
        """Raises EOFError when the script has hung up."""
        assert self.connection.poll(WAIT_S), f"nothing came after {self.seen[-3:]}"
        self.seen.append(decode_snapshot(self.connection.recv_bytes()))
        return self.seen[-1]

    def until(self, kind: type[S], has: Callable[[S], object] = lambda snapshot: True) -> S:
        while True:
            snapshot = self.next()
            if isinstance(snapshot, kind) and has(snapshot):
                return snapshot

    def to_end(self) -> list[Snapshot]:
        """All that comes until the script hangs up."""
        with suppress(EOFError, ConnectionResetError):
            while True:
                self.next()
        return self.seen

    def close(self) -> None:
        self.connection.close()


class Script:
    """A Python script in a process of its own: forked from the server of `tests/forking.py`, which
    must be there, or with `program` started by it."""

    def __init__(
        self, path: Path, source: str, *arguments: str, program: Sequence[str] = ()
    ) -> None:
        path.write_text(source)
        if forking.POSSIBLE and not program:
            self.process = forking.PythonScript(path, arguments)
            return
        self.process = subprocess.Popen(
            [*(program or (sys.executable,)), str(path), *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def address(self) -> str:
        """What `tensorlab attach` is given: the script has said it."""
        assert self.process.stderr is not None
        said = ""
        for line in self.process.stderr:
            said += line
            if line.startswith("Tensor Lab: tensorlab attach "):
                return line.split()[4]
        raise AssertionError(f"the script does not listen: {said}")

    def attach(self, wants: Role = "steer") -> Window:
        try:
            return Window(dial(str(self.process.pid), version(), wants=wants))
        except Unwelcome as error:
            ended = self.process.poll()
            assert ended is None, f"the script has ended, {ended}: {self.process.communicate()}"
            raise error

    def attach_again(self) -> Window:
        """A window that steers, once the script has seen that the one before has gone."""
        while (window := self.attach()).welcome.role == "watch":
            window.close()
        return window

    def end(self) -> str:
        """What it printed, after a normal end."""
        out, err = self.process.communicate(timeout=WAIT_S)
        assert self.process.returncode == 0, err
        return out

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


UNTIL_END = """
import sys
from pathlib import Path
import torch
import tensorlab as lab

net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
lab.watch(net, optimizer, wait=True)
while not Path(sys.argv[1]).exists():
    net(torch.ones(2)).sum().backward()
    optimizer.step()
print("ended")
"""


@contextmanager
def training_until_end(folder: Path) -> Iterator[Script]:
    """A script that listens, and trains until the file `end` is in the folder."""
    running = Script(folder / "train.py", UNTIL_END, str(folder / "end"))
    running.address()
    yield running
    running.kill()
