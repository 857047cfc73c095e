"""A training loop that calls `tensorlab.watch` and `log` against the same loop without.

All run in one process with one torch thread, in turns: a block is one short loop each way, so
whatever else the machine does meets all. Times are CPU time of the whole process, its threads for
windows included, of the steps after the first 50. A figure is the median over the blocks of the
ratio within each, with the bounds that hold the true median in 95 of 100 runs (`..._95`).

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter, process_time
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn

from engine.attached import watching
from engine.attached.watching import Watching
from engine.loops import own_loop
from engine.training.figures import pace
from engine.version import version
from tests.bench.blocks import paced_by_cpu_time, ratio
from tests.bench.loops.loop_models import MODELS

WARM_UP = 50
TURN_S = 0.1
"""CPU time of the steps that are measured in one turn: in it a snapshot or two are sent."""
MIN_BLOCKS = 9
SECONDS = 20.0
"""For the blocks of a model, if it does not need more for MIN_BLOCKS."""

SETUP = """
optimizer = torch.optim.Adam(net.parameters())
criterion = nn.CrossEntropyLoss()
"""
TURN = """
times = []
for step in range({steps}):
    started = clock()
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    {log}
    times.append(clock() - started)
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

Way = Callable[[], AbstractContextManager[None]]


@contextmanager
def watched() -> Iterator[Watching]:
    made = Watching("bench", version())
    try:
        with mock.patch.object(watching, "_watching", made):
            yield made
    finally:
        made.close()


@contextmanager
def alone() -> Iterator[None]:
    with watched():
        yield


@contextmanager
def attached(reader: subprocess.Popen[str]) -> Iterator[None]:
    assert reader.stdin is not None
    with watched() as made:
        reader.stdin.write(f"{made.listener.address} {version()}\n")
        reader.stdin.flush()
        made.wait()
        yield


def measure(name: str, ways: Mapping[str, Way]) -> dict[str, Any]:
    names: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "clock": process_time}
    names |= {"__name__": "x", "log": watching.log}
    exec(MODELS[name] + SETUP, names)

    def turn(way: str, steps: int) -> float:
        log = "" if way == "plain" else "log(again=loss)"
        with ways[way]():
            source = TURN.format(steps=WARM_UP + steps, log=log)
            exec(compile(source, "<loop>", "exec"), names)
        return statistics.mean(names["times"][WARM_UP:])

    steps = max(2, round(TURN_S / turn("plain", 20)))
    step_ms: dict[str, list[float]] = {way: [] for way in ways}
    started, blocks = perf_counter(), 0
    while blocks < MIN_BLOCKS or perf_counter() - started < SECONDS:
        blocks += 1
        for way in list(ways)[:: 1 if blocks % 2 else -1]:
            step_ms[way].append(turn(way, steps) * 1e3)
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
            ways: dict[str, Way] = {
                "plain": nullcontext,
                "alone": alone,
                "attached": lambda: attached(reader),
            }
            for name in sys.argv[1:] or MODELS:
                with paced_by_cpu_time(own_loop, pace):
                    print(json.dumps(measure(name, ways)), flush=True)
            assert reader.stdin is not None
            reader.stdin.close()


if __name__ == "__main__":
    main()
