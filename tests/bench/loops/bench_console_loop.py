"""A training loop in a cell of the console against the same loop in plain Python.

All run in one process with one torch thread, in turns: a block is one short loop each way, so
whatever else the machine does meets all. They train one model: where in memory its tensors lie
makes a difference of 1 %. Times are CPU time, of the steps after the first WARM_UP. A figure is the
median over the blocks of the ratio within each, with the bounds that hold the true median in 95 of
100 runs (`..._95`).

`console` is what the program does with a cell: it is recorded, its figures are read and encoded as
for the window, and it is looked over by the advice; `silent` is the same without the advice.
`advice` is what these two differ by, over plain.

    python -m tests.bench.loops.bench_console_loop [MODEL ...]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported

import json
import statistics
import sys
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from time import perf_counter, process_time
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import Optimizer

from engine.handlers.console import run_cell
from engine.lab import Lab, holding
from engine.loops import hooks, loop_looks, own_loop, rest
from engine.loops.hooks import Passed, Steps
from engine.loops.rest import Rest
from engine.protocol import ErrorReport, RunCellCommand, encode_snapshot
from engine.recording.light.repeats import EVERY
from engine.training.figures import pace
from engine.training.looks import looks
from tests.bench.blocks import paced_by_cpu_time, ratio
from tests.bench.loops.loop_models import MODELS

WARM_UP = EVERY + 1
"""From then on one step in EVERY is looked at, as in a long loop; before, some more are."""
TURN_S = 0.04
"""CPU time of the steps that are measured in one turn: short, so that the turns of a block meet the
same. Always whole EVERYs: then as many calls are looked into as in a long loop."""
MIN_BLOCKS = 9
SECONDS = 60.0
"""For the blocks of a model, if it does not need more for MIN_BLOCKS."""

LOOP = """
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
    times.append(clock() - started)
"""

Way = Callable[[str], list[float]]
"""Runs a source, and returns the times of its steps, in s."""


class Silent(Steps):
    """In place of the adviser: it looks at nothing."""

    def __init__(self, tell: Callable, variables: Mapping[str, Any], rest: Rest) -> None:
        self.told: dict[Callable, Callable] = {}
        self._steps = 0

    def looks(self) -> bool:
        """The recorder looks into as many calls as without an adviser."""
        return self._steps % EVERY == 0

    def needed_from(self) -> tuple[float, float]:
        return inf, inf

    def count(self, passed: Passed) -> None:
        self._steps += passed.steps

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        self._steps += 1

    def end(self) -> None: ...


def plain(names: dict[str, Any], source: str) -> list[float]:
    exec(compile(source, "<plain>", "exec"), names)
    return names["times"]


def console(lab: Lab, source: str) -> list[float]:
    for snapshot in run_cell(lab, RunCellCommand(source=source, filename="<cell>")):
        encode_snapshot(snapshot)
        error: ErrorReport | None = getattr(snapshot, "error", None)
        if error is not None:
            raise RuntimeError(error.message)
    return lab.console.namespace.variables["times"]


def silent(lab: Lab, source: str) -> list[float]:
    with mock.patch.object(holding, "Adviser", Silent):
        return console(lab, source)


def measure(name: str) -> dict[str, Any]:
    setup = MODELS[name] + LOOP + "times = []\n"
    names = {"torch": torch, "nn": nn, "F": F, "clock": process_time, "__name__": "x"}
    lab = Lab(emit=lambda snapshot: drop(encode_snapshot(snapshot)))
    lab.console.namespace.variables["clock"] = process_time
    ways: dict[str, Way] = {
        "plain": partial(plain, names),
        "console": partial(console, lab),
        "silent": partial(silent, lab),
    }
    console(lab, setup)
    names.update(lab.console.namespace.variables)
    for run in ways.values():
        run(TURN.format(steps=WARM_UP))
    count = TURN_S / statistics.median(names["times"])
    turn = TURN.format(steps=WARM_UP + max(1, round(count / EVERY)) * EVERY)
    step_ms: dict[str, list[float]] = {way: [] for way in ways}
    started, blocks = perf_counter(), 0
    while blocks < MIN_BLOCKS or perf_counter() - started < SECONDS:
        blocks += 1
        for way in list(ways)[:: 1 if blocks % 2 else -1]:
            step_ms[way].append(statistics.mean(ways[way](turn)[WARM_UP:]) * 1e3)
    plain_ms = step_ms["plain"]
    return {
        "bench": "console loop",
        "model": name,
        "blocks": blocks,
        "plain_ms": statistics.median(plain_ms),
        "console_ms": statistics.median(step_ms["console"]),
        **ratio(step_ms["console"], plain_ms).row("console_over_plain"),
        **ratio(step_ms["console"], plain_ms, less=step_ms["silent"]).row("advice"),
    }


def drop(encoded: object) -> None:
    """Nobody reads it."""


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        with paced_by_cpu_time(hooks, rest, own_loop, loop_looks, looks, pace):
            print(json.dumps(measure(name)), flush=True)


if __name__ == "__main__":
    main()
