"""A training loop in a cell of the console against the same loop in plain Python.

All run in one process with one torch thread, in turns, so that whatever else is busy meets all.
Times are CPU time. Of each step after a warm-up the median over the rounds is taken, and of these
the mean over the steps: so the steps in which a cell is looked into count as they come.

`cell` is recorded; `advised` is recorded and looked over by the advice, as the program does it;
`unadvised` has the hooks of the advice, which the figures of a loop need too, and nothing in them.
`watched` is the plain loop while torch's optimizer hooks read its figures. Which of its steps are
measured differs from round to round: of these rounds the mean is taken, and of their ratios the
median.

    python -m tests.bench.bench_console_loop [MODEL ...]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from time import process_time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from engine.advice.adviser import Adviser
from engine.console.namespace import Namespace
from engine.console.output import Output
from engine.control import Control
from engine.loops.hooks import steps_shown
from engine.loops.own_loop import OwnLoop
from engine.recording.light.light_recorder import LightRecorder

WARM_UP = 50
STEPS = 60
ROUNDS = 9

MLP = """
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
x, y = torch.randn(64, 20), torch.randint(2, (64,))
"""

GPT = """
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.into = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        size, time, width = x.shape
        q, k, v = (
            part.view(size, time, self.heads, width // self.heads).transpose(1, 2)
            for part in self.into(x).split(width, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(size, time, width))

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.between(x))

class GPT(nn.Module):
    def __init__(self, words=64, width=64, heads=4, blocks=4, length=32):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, x):
        h = self.words(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h)).flatten(0, 1)

net = GPT()
x, y = torch.randint(64, (8, 32)), torch.randint(64, (8 * 32,))
"""

LSTM = """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.lstm = nn.LSTM(32, 64, batch_first=True)
        self.head = nn.Linear(64, 5)

    def forward(self, x):
        h, _ = self.lstm(self.words(x))
        return self.head(h).flatten(0, 1)

net = Tagger()
x, y = torch.randint(100, (16, 30)), torch.randint(5, (16 * 30,))
"""

RESNET = """
class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.down = None
        if stride != 1 or channels != width:
            self.down = nn.Sequential(
                nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x):
        kept = x if self.down is None else self.down(x)
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + kept)

class ResNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        parts, channels = [], width
        for stage in range(4):
            for place in range(2):
                parts.append(Block(channels, width << stage, 2 if stage and not place else 1))
                channels = width << stage
        self.stages, self.head = nn.Sequential(*parts), nn.Linear(channels, 10)

    def forward(self, x):
        return self.head(self.stages(F.relu(self.bn(self.conv(x)))).mean((2, 3)))

net = ResNet()
x, y = torch.randn(4, 3, 32, 32), torch.randint(10, (4,))
"""

LOOP = """
optimizer = torch.optim.Adam(net.parameters())
criterion = nn.CrossEntropyLoss()
"""

TURN = f"""
times = []
for step in range({WARM_UP + STEPS}):
    started = clock()
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    times.append(clock() - started)
"""

MODELS = {"MLP": MLP, "GPT": GPT, "LSTM": LSTM, "ResNet-18 shaped": RESNET}


def plain(names: dict) -> list[float]:
    """The times of the steps, in s."""
    exec(compile(TURN, "<plain>", "exec"), names)
    return names["times"][WARM_UP:]


def watched(names: dict) -> list[float]:
    with steps_shown(OwnLoop("bench", Control(), lambda told: None)):
        return plain(names)


def cell(namespace: Namespace) -> list[float]:
    run(namespace, TURN)
    return namespace.variables["times"][WARM_UP:]


class Nothing:
    """Takes what the hooks show, and does nothing."""

    def before_step(self, optimizer: torch.optim.Optimizer, has_closure: bool) -> None: ...
    def after_step(self, optimizer: torch.optim.Optimizer, has_closure: bool) -> None: ...
    def saw_loss(self, loss: torch.Tensor, root: torch.Tensor) -> None: ...


def unadvised(namespace: Namespace) -> list[float]:
    with steps_shown(Nothing()):
        return cell(namespace)


def advised(namespace: Namespace) -> list[float]:
    adviser = Adviser(lambda told: None, namespace.variables)
    recorder = partial(LightRecorder, told=adviser.told, looks=adviser.looks)
    with namespace.recorded_by(recorder), steps_shown(adviser):
        return cell(namespace)


def run(namespace: Namespace, source: str) -> None:
    error, _ = namespace.run(source, "<cell>", Output(lambda told: None), Control())
    if error is not None:
        raise error


def measure(name: str) -> dict[str, float | str]:
    names = {"torch": torch, "nn": nn, "F": F, "np": np, "clock": process_time, "__name__": "x"}
    exec(compile(MODELS[name] + LOOP, "<plain>", "exec"), names)
    namespace = Namespace()
    namespace.variables["clock"] = process_time
    run(namespace, MODELS[name] + LOOP)
    ways: dict[str, Callable[[], list[float]]] = {
        "plain": partial(plain, names),
        "cell": partial(cell, namespace),
        "unadvised": partial(unadvised, namespace),
        "advised": partial(advised, namespace),
        "watched": partial(watched, names),
    }
    rounds = [{way: times() for way, times in ways.items()} for _ in range(ROUNDS + 1)][1:]
    step_ms = {
        way: statistics.mean(map(statistics.median, zip(*(r[way] for r in rounds), strict=True)))
        * 1e3
        for way in ways
    }
    return {
        "bench": "console loop",
        "model": name,
        "plain_ms": step_ms["plain"],
        "cell_ms": step_ms["cell"],
        "cell_over_plain": step_ms["cell"] / step_ms["plain"],
        "advised_over_plain": step_ms["advised"] / step_ms["plain"],
        "advice": (step_ms["advised"] - step_ms["unadvised"]) / step_ms["plain"],
        "watched_over_plain": statistics.median(
            statistics.mean(r["watched"]) / statistics.mean(r["plain"]) for r in rounds
        ),
    }


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        print(json.dumps(measure(name)), flush=True)


if __name__ == "__main__":
    main()
