"""A training loop in a cell of the console against the same loop in plain Python.

All run in one process with one torch thread, in turns, so that whatever else is busy meets all. A
step's time is CPU time, the mean over the steps after a warm-up (some steps are looked into, and
count as they come); each pair of turns gives one ratio, and the median of the ratios is printed.

`cell` is recorded. `watched` is the plain loop while torch's optimizer hooks read its figures.
`lab` is a cell as the program runs it: recorded, with figures and advice. `without_advice` is the
same without advice, and `advice` what the advice adds to a step, over the plain step.

    python -m tests.bench.bench_console_loop
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported

import json
import statistics
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import process_time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from engine.console.namespace import Namespace
from engine.console.output import Output
from engine.control import Control
from engine.handlers import holding
from engine.lab import Lab
from engine.loops.hooks import steps_shown
from engine.loops.own_loop import OwnLoop

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


def plain_step_ms(names: dict) -> float:
    exec(compile(TURN, "<plain>", "exec"), names)
    return mean_ms(names)


def watched_step_ms(names: dict) -> float:
    with steps_shown(OwnLoop("bench", Control(), lambda told: None)):
        return plain_step_ms(names)


def cell_step_ms(namespace: Namespace, around: AbstractContextManager | None = None) -> float:
    with around or nullcontext():
        run(namespace, TURN)
    return mean_ms(namespace.variables)


def lab_step_ms(lab: Lab, advice: bool) -> float:
    namespace, output = lab.console.namespace, Output(lambda told: None)
    adviser = holding.Adviser
    holding.Adviser = adviser if advice else Silent
    try:
        return cell_step_ms(namespace, holding.shown_and_held(lab, namespace, "bench", output))
    finally:
        holding.Adviser = adviser


class Silent(holding.Adviser):
    """An adviser that looks at nothing."""

    def __init__(self, *given: object) -> None:
        super().__init__(lambda told: None)
        self.told = {}

    def looks(self) -> bool:
        return self._notes.steps % 16 == 0

    def before_step(self, *given: object) -> None:
        self._notes.steps += 1

    def saw_loss(self, *given: object) -> None: ...
    def after_step(self, *given: object) -> None: ...
    def end(self) -> None: ...


def mean_ms(names: dict) -> float:
    return statistics.mean(names["times"][WARM_UP:]) * 1e3


def run(namespace: Namespace, source: str) -> None:
    error, _ = namespace.run(source, "<cell>", Output(lambda told: None), Control())
    if error is not None:
        raise error


def measure(name: str) -> dict[str, float | str]:
    names = {"torch": torch, "nn": nn, "F": F, "np": np, "clock": process_time, "__name__": "x"}
    exec(compile(MODELS[name] + LOOP, "<plain>", "exec"), names)
    namespace, lab = Namespace(), Lab(emit=lambda told: None)
    for each in (namespace, lab.console.namespace):
        each.variables["clock"] = process_time
        run(each, MODELS[name] + LOOP)
    ways = {
        "plain": partial(plain_step_ms, names),
        "cell": partial(cell_step_ms, namespace),
        "watched": partial(watched_step_ms, names),
        "lab": partial(lab_step_ms, lab, advice=True),
        "without_advice": partial(lab_step_ms, lab, advice=False),
    }
    rounds = [{way: step_ms() for way, step_ms in ways.items()} for _ in range(ROUNDS + 1)][1:]
    middle = statistics.median
    return {
        "bench": "console loop",
        "model": name,
        "plain_ms": middle(each["plain"] for each in rounds),
        **{
            f"{way}_over_plain": middle(each[way] / each["plain"] for each in rounds)
            for way in list(ways)[1:]
        },
        "advice": middle((r["lab"] - r["without_advice"]) / r["plain"] for r in rounds),
    }


def main() -> None:
    torch.set_num_threads(1)
    for name in MODELS:
        print(json.dumps(measure(name)), flush=True)


if __name__ == "__main__":
    main()
