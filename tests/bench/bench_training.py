"""A training step in the lab's loop against the same step in a bare loop.

Both train an MLP for digits with one torch thread, in turns within one process, so that whatever
else the machine does hits both alike; each pair gives one ratio, and the median is printed. The
lab's step includes its figures (loss, accuracy, gradient norm, time), checkpoints, and the
snapshots as bytes 30 times a second; neither side validates. Timed are the steps after the first
thousand, of which the lab measures every single one.

    python -m tests.bench.bench_training
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported

import json
import statistics
import tempfile
from collections.abc import Iterator
from time import perf_counter

import torch
from torch import nn

from engine.datasets.dataset import epoch_order
from engine.datasets.load import load_dataset
from engine.project.document import DataSetup, TrainingSetup
from engine.protocol import encode_snapshot
from engine.training.figures.pace import ALWAYS_MEASURED_STEPS
from engine.training.loop import TrainingLoop
from engine.training.run import TrainingRun

ROUNDS = 11
EPOCHS = 90
SETUP = TrainingSetup(data=DataSetup(validation_fraction=0.0), epochs=EPOCHS)


def make_model(width: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


def bare_steps(width: int) -> Iterator[None]:
    """A plain loop; batches are gathered by their row numbers."""
    dataset = load_dataset(SETUP.data)
    model = make_model(width)
    optimizer = torch.optim.Adam(model.parameters())
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        order = epoch_order(len(dataset), SETUP.seed, epoch)
        for rows in order.split(SETUP.batch_size):
            x, y = dataset.x_train[rows], dataset.y_train[rows]
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
            yield


def lab_steps(width: int) -> Iterator[None]:
    """The lab's run, its snapshots encoded as for the pipe."""
    run = TrainingRun(TrainingLoop(make_model(width), SETUP))
    for due in run.steps():
        if due:
            encode_snapshot(run.snapshot("running"))
        yield
    run.close()


def step_us(steps: Iterator[None]) -> float:
    """Microseconds per step after the first thousand."""
    for _ in range(ALWAYS_MEASURED_STEPS):
        next(steps)
    started = perf_counter()
    count = sum(1 for _ in steps)
    return (perf_counter() - started) / count * 1e6


def measure(width: int) -> dict[str, float]:
    bare, lab = [], []
    for _ in range(ROUNDS):
        bare.append(step_us(bare_steps(width)))
        lab.append(step_us(lab_steps(width)))
    ratios = [a / b for a, b in zip(lab, bare, strict=True)]
    return {
        "hidden_features": width,
        "bare_step_us": round(statistics.median(bare), 1),
        "lab_step_us": round(statistics.median(lab), 1),
        "lab_over_bare": round(statistics.median(ratios), 3),
    }


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TENSORLAB_DATA_DIR"] = folder
        for width in (64, 512):
            print(json.dumps({"bench": "training", **measure(width)}))


if __name__ == "__main__":
    main()
