"""A training loop that calls `tensorlab.watch` and `log` against the same loop without.

Three long loops run in one process with one torch thread, by turns of a few steps: the hooks of one
are there while it runs, those of the others are not. So whatever else the machine does meets all,
and no turn begins with the burst of figures that follows an attaching. Times are CPU time of the
whole process, its threads for windows included. A block is TURNS turns of each loop; in it some
snapshots are sent. A figure is the median over the blocks of the ratio within each, with the bounds
that hold the true median in 95 of 100 runs (`..._95`).

`alone`: no window is attached. `attached`: one draws the loop, in a process of its own.

    python -m tests.bench.loops.bench_attached [MODEL ...]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter, process_time
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import optimizer as optimizers

from engine.attached import script_calls, seen_steps, watching
from engine.attached.watching import Watching
from engine.loops import hooks, own_loop
from engine.system.program import version
from engine.training.figures import pace
from tests.bench.blocks import ratio
from tests.bench.loops.loop_models import MODELS

WARM_UP = 200
"""Steps of each loop. More than those of which all are measured."""
TURN_S = 0.02
"""CPU time of a turn."""
TURNS = 20
MIN_BLOCKS = 9
SECONDS = 40.0
"""For the blocks of a model, if it does not need more for MIN_BLOCKS."""

SETUP = """
optimizer = torch.optim.Adam(net.parameters())
criterion = nn.CrossEntropyLoss()

def plain(steps):
    for step in range(steps):
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()

def logged(steps):
    for step in range(steps):
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        log(again=loss)
"""
READER = """
import sys
from engine.connecting.dialing import dial
for line in sys.stdin:
    path, version = line.split()
    connection = dial(path, version).connection
    try:
        while True:
            connection.recv_bytes()
    except EOFError:
        connection.close()
"""


class Clock:
    """The CPU time of the turns of one loop, in s: what is done so many times a second is done as
    often as if it ran alone on an idle machine. Within a turn it is the wall clock's time, less in
    the proportion of the turns before: to ask the system in each step would cost more than all that
    is measured."""

    def __init__(self) -> None:
        self._before_s = self._wall_s = 0.0
        self._began_s: float | None = None

    def __call__(self) -> float:
        if self._began_s is None:
            return self._before_s
        share = self._before_s / self._wall_s if self._wall_s else 1.0
        return self._before_s + (perf_counter() - self._began_s) * min(share, 1.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        cpu_s, self._began_s = process_time(), perf_counter()
        try:
            yield
        finally:
            self._before_s += process_time() - cpu_s
            self._wall_s += perf_counter() - self._began_s
            self._began_s = None


class Loop:
    """One of the loops, with the hooks that are there when it is made."""

    def __init__(self, steps: Callable[[int], None], clock: Clock) -> None:
        self._steps, self._clock = steps, clock
        self._hooks = [dict(found) for found in _hooks()]
        self._watching = script_calls._watching
        self.note_backward()

    def enter(self) -> None:
        for found, ours in zip(_hooks(), self._hooks, strict=True):
            found.clear()
            found.update(ours)
        torch.autograd.backward, script_calls._watching = self._backward, self._watching

    def turn(self, steps: int) -> float:
        """Its CPU time, in s."""
        self.enter()
        with self._clock.running():
            began_s = process_time()
            self._steps(steps)
            spent_s = process_time() - began_s
        self.note_backward()
        return spent_s

    def note_backward(self) -> None:
        """It is replaced from time to time."""
        self._backward = torch.autograd.backward


def _hooks() -> tuple[dict, dict]:
    return optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks


@contextmanager
def three_loops(names: dict[str, Any], reader: subprocess.Popen[str]) -> Iterator[dict[str, Loop]]:
    assert reader.stdin is not None
    clock = Clock()
    with ExitStack() as stack:
        for module in (hooks, own_loop, pace, seen_steps, watching):
            stack.enter_context(mock.patch.object(module, "perf_counter", clock))
        stack.enter_context(mock.patch.object(script_calls, "_watching", None))
        loops = {"plain": Loop(names["plain"], Clock())}
        stack.callback(loops["plain"].enter)
        for way in ("alone", "attached"):
            loops["plain"].enter()
            made = script_calls._watching = Watching("bench", version())
            loops[way] = Loop(names["logged"], clock if way == "attached" else Clock())
            stack.callback(made.close)
            stack.callback(loops[way].enter)
        reader.stdin.write(f"{made.listener.address} {version()}\n")
        reader.stdin.flush()
        made.wait()
        loops["attached"].note_backward()
        yield loops


def measure(name: str, reader: subprocess.Popen[str]) -> dict[str, Any]:
    names: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "log": script_calls.log}
    names["__name__"] = "x"
    exec(MODELS[name] + SETUP, names)
    with three_loops(names, reader) as loops:
        for loop in loops.values():
            loop.turn(WARM_UP)
        steps = max(2, round(TURN_S / (loops["plain"].turn(20) / 20)))
        step_ms: dict[str, list[float]] = {way: [] for way in loops}
        started, blocks = perf_counter(), 0
        while blocks < MIN_BLOCKS or perf_counter() - started < SECONDS:
            blocks += 1
            spent_s = dict.fromkeys(loops, 0.0)
            for turn in range(TURNS):
                for way in list(loops)[:: 1 if turn % 2 else -1]:
                    spent_s[way] += loops[way].turn(steps)
            for way, seconds in spent_s.items():
                step_ms[way].append(seconds / (TURNS * steps) * 1e3)
    return {
        "bench": "attached",
        "model": name,
        "blocks": blocks,
        "plain_ms": statistics.median(step_ms["plain"]),
        **ratio(step_ms["alone"], step_ms["plain"]).row("alone_over_plain"),
        **ratio(step_ms["attached"], step_ms["plain"]).row("attached_over_plain"),
    }


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="tl") as sockets:
        os.environ["XDG_RUNTIME_DIR"] = sockets
        command = [sys.executable, "-c", READER]
        with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as reader:
            for name in sys.argv[1:] or MODELS:
                print(json.dumps(measure(name, reader)), flush=True)
            assert reader.stdin is not None
            reader.stdin.close()


if __name__ == "__main__":
    main()
