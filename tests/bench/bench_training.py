"""A training step in the lab's loop against the same step in a bare loop.

Both train the MLP for digits with one torch thread, in turns within one process, so that whatever
else the machine does hits both alike; each pair gives one ratio, and the median is printed. The
lab's step includes its figures (loss, accuracy, gradient norm, time), the snapshots as bytes at
30 a second, and validation is left out of both.

    python -m tests.bench.bench_training
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported

import json
import statistics
from time import perf_counter

import torch
from torch import nn

from engine.project.document import DataSetup, TrainingSetup
from engine.protocol import encode_snapshot
from engine.training import data
from engine.training.loop import TrainingLoop
from engine.training.run import TrainingRun

ROUNDS = 15
EPOCHS = 10
SETUP = TrainingSetup(data=DataSetup(validation_fraction=0.0), epochs=EPOCHS)


def make_model(width: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


def bare_step_us(width: int, pre_split: bool) -> float:
    """Microseconds per step of a plain loop. With `pre_split` a batch is a slice of the shuffled
    epoch, as in the lab; without, it is gathered by its row numbers, as usually written."""
    dataset = data.load(SETUP.data)
    model = make_model(width)
    optimizer = torch.optim.Adam(model.parameters())
    loss_fn = nn.CrossEntropyLoss()
    size = SETUP.batch_size
    started = perf_counter()
    for epoch in range(EPOCHS):
        order = data.epoch_order(len(dataset), SETUP.seed, epoch)
        if pre_split:
            x_epoch, y_epoch = dataset.x_train[order], dataset.y_train[order]
        for first in range(0, len(order), size):
            if pre_split:
                x, y = x_epoch[first : first + size], y_epoch[first : first + size]
            else:
                rows = order[first : first + size]
                x, y = dataset.x_train[rows], dataset.y_train[rows]
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
    return (perf_counter() - started) / (EPOCHS * dataset.batches(size)) * 1e6


def lab_step_us(width: int) -> float:
    """Microseconds per step of the lab's run, its snapshots encoded."""
    run = TrainingRun(TrainingLoop(make_model(width), SETUP))
    started = perf_counter()
    for due in run.steps():
        if due:
            encode_snapshot(run.snapshot("running"))
    run.close()
    return (perf_counter() - started) / run.step * 1e6


def measure(width: int) -> dict[str, float]:
    bare, split, lab = [], [], []
    lab_step_us(width), bare_step_us(width, False), bare_step_us(width, True)  # warm up
    for _ in range(ROUNDS):
        bare.append(bare_step_us(width, False))
        lab.append(lab_step_us(width))
        split.append(bare_step_us(width, True))
    return {
        "width": width,
        "bare_step_us": statistics.median(bare),
        "bare_pre_split_step_us": statistics.median(split),
        "lab_step_us": statistics.median(lab),
        "lab_over_bare": statistics.median(a / b for a, b in zip(lab, bare, strict=True)),
        "lab_over_bare_pre_split": statistics.median(
            a / b for a, b in zip(lab, split, strict=True)
        ),
    }


def main() -> None:
    torch.set_num_threads(1)
    for width in (64, 512):
        print(json.dumps({"bench": "training", **measure(width)}))


if __name__ == "__main__":
    main()
