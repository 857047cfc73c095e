"""Training in Train with all plots live against a bare loop.

`bare` picks its batches by row numbers; `loader` has torch's DataLoader; `lab` is the run of Train
with its figures (loss, accuracy, gradient norm, time), states to go back to, checkpoints, the run's
folder, and the snapshots as bytes 30 times a second. Its peers: `add_scalar` is `loader` that gives
loss, accuracy and gradient norm of each step to TensorBoard's SummaryWriter; `lightning` is a
Trainer with `loader`'s batches that logs loss and accuracy to TensorBoard, as often as it does by
itself (every 50 steps). One that is not installed is told so. None validates. All call the same
function for loss and accuracy of the same model on the same tensors, with one torch thread, in
turns within one process. A block is one short stretch
of each; times are CPU time, and what the lab does so many times a second it does by the seconds of
its own stretches. A ratio is the median over the blocks, with the bounds that hold the
true median in 95 of 100 runs (`..._95`).

    python -m tests.bench.bench_training [MODEL ...]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported

import json
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from engine.project.document import TrainingSetup
from engine.protocol import encode_snapshot
from engine.training import run, run_files
from engine.training.figures import pace
from engine.training.figures.pace import ALWAYS_MEASURED_STEPS
from engine.training.looks import looks
from engine.training.loop import TrainingLoop
from engine.training.objectives.code_objective import CodeObjective, compile_step
from engine.training.optimization import training_step
from engine.training.run import TrainingRun
from tests.bench.blocks import OwnTime, paced_by_cpu_time, ratio
from tests.bench.loops.loop_models import GPT

SAMPLES, SIZE = 8192, 64
STRETCH_S = 0.08
WARM_UP_S = 1.0
MIN_BLOCKS = 9
SECONDS = 20.0
"""For the blocks of a model, if it does not need more for MIN_BLOCKS."""

STEP = """
def step(batch):
    x, y = batch
    output, y = model(x), y.flatten()
    return {"loss": F.cross_entropy(output, y), "accuracy": (output.argmax(1) == y).float().mean()}
"""
MLP = """
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
"""
LENET = """
net = nn.Sequential(
    nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
)
"""


class Task(NamedTuple):
    source: str
    x: Tensor
    y: Tensor
    size: int

    def model(self) -> nn.Module:
        torch.manual_seed(0)
        names: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "__name__": "x"}
        exec(self.source, names)
        return names["net"]


def tasks() -> dict[str, Task]:
    labels = torch.randint(2, (SAMPLES,))
    words = torch.randint(64, (SAMPLES, 33))
    digits = torch.randn(SAMPLES, 1, 28, 28), torch.randint(10, (SAMPLES,))
    return {
        "MLP": Task(MLP, torch.randn(SAMPLES, 20), labels, SIZE),
        "LeNet": Task(LENET, *digits, SIZE),
        "GPT": Task(GPT, words[:, :-1].contiguous(), words[:, 1:].contiguous(), 8),
    }


def bare_batches(task: Task) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        for rows in torch.randperm(SAMPLES).split(task.size):
            yield task.x[rows], task.y[rows]


def loader_batches(task: Task) -> Iterator[list[Tensor]]:
    loader = DataLoader(TensorDataset(task.x, task.y), task.size, shuffle=True)
    while True:
        yield from loader


def plain_steps(task: Task, batches: Iterator[Any]) -> Generator[None, None, None]:
    model = task.model()
    step = compile_step(STEP, model, {})
    optimizer = torch.optim.Adam(model.parameters())
    for batch in batches:
        optimizer.zero_grad()
        step(batch)["loss"].backward()
        optimizer.step()
        yield


def lab_steps(task: Task) -> Generator[None, None, None]:
    """The lab's run, its snapshots encoded as for the pipe."""
    model = task.model()
    step = compile_step(STEP, model, {})
    objective = CodeObjective(step, (task.x, task.y), None, task.size)
    setup = TrainingSetup(batch_size=task.size, epochs=10**6)
    trained = TrainingRun(TrainingLoop(model, setup, objective))
    for due in trained.steps():
        if due:
            encode_snapshot(trained.snapshot("running"))
        yield
    trained.close()


def add_scalar_steps(task: Task) -> Generator[None, None, None]:
    from torch.utils.tensorboard import SummaryWriter

    model = task.model()
    step = compile_step(STEP, model, {})
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters)
    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        for number, batch in enumerate(loader_batches(task)):
            optimizer.zero_grad()
            outcome = step(batch)
            outcome["loss"].backward()
            norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
            optimizer.step()
            writer.add_scalar("loss", outcome["loss"], number)
            writer.add_scalar("accuracy", outcome["accuracy"], number)
            writer.add_scalar("gradient norm", norm, number)
            yield


class LightningSteps:
    """The steps of a Trainer, which runs on a thread of its own and waits between two stretches."""

    def __init__(self, task: Task) -> None:
        import lightning  # pyright: ignore[reportMissingImports]  # of the extra bench

        steps = self
        step_of = compile_step

        class Module(lightning.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.net = task.model()
                self.outcome = step_of(STEP, self.net, {})

            def training_step(self, batch: Any) -> Tensor:
                outcome = self.outcome(batch)
                self.log_dict(outcome)
                return outcome["loss"]

            def configure_optimizers(self) -> torch.optim.Optimizer:
                return torch.optim.Adam(self.parameters())

            def on_train_batch_end(self, *_: Any) -> None:
                steps.end_of_step()

        self._folder = tempfile.TemporaryDirectory()
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._left = 0
        trainer = lightning.Trainer(
            accelerator="cpu",
            max_epochs=-1,
            logger=lightning.pytorch.loggers.TensorBoardLogger(self._folder.name),
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        loader = DataLoader(TensorDataset(task.x, task.y), task.size, shuffle=True)
        self._trainer = trainer
        self._thread = threading.Thread(target=trainer.fit, args=(Module(), loader), daemon=True)
        self._thread.start()
        self._done.acquire()  # after its first step, which also sets all up

    def end_of_step(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._done.release()
            self._go.acquire()

    def run(self, count: int) -> None:
        self._left = count
        self._go.release()
        self._done.acquire()

    def close(self) -> None:
        self._trainer.should_stop = True
        self._left = 1 << 60
        self._go.release()
        self._thread.join()
        self._folder.cleanup()


class Steps:
    """The steps of a generator."""

    def __init__(self, made: Generator[None, None, None]) -> None:
        self._made = made

    def run(self, count: int) -> None:
        for _ in islice(self._made, count):
            pass

    def close(self) -> None:
        self._made.close()


PEERS = {"add_scalar": "tensorboard", "lightning": "lightning"}
"""The package of each."""


def measure(name: str, task: Task, own: OwnTime) -> dict[str, Any]:
    """A row of figures. `own` is the clock of the lab's run."""
    ways: dict[str, Callable[[], Steps | LightningSteps]] = {
        "bare": lambda: Steps(plain_steps(task, bare_batches(task))),
        "lab": lambda: Steps(lab_steps(task)),
        "loader": lambda: Steps(plain_steps(task, loader_batches(task))),
        "add_scalar": lambda: Steps(add_scalar_steps(task)),
        "lightning": lambda: LightningSteps(task),
    }
    missing = {way: package for way, package in PEERS.items() if find_spec(package) is None}
    steps = {way: make() for way, make in ways.items() if way not in missing}
    clocks = {way: own if way == "lab" else OwnTime() for way in steps}

    def seconds(way: str, count: int) -> float:
        before = clocks[way]()
        with clocks[way]:
            steps[way].run(count)
        return clocks[way]() - before

    seconds("lab", ALWAYS_MEASURED_STEPS)
    for way in steps:
        warm_s = 0.0
        while warm_s < WARM_UP_S:
            warm_s += seconds(way, 8)
    count = max(4, round(16 * STRETCH_S / seconds("bare", 16)))
    step_us: dict[str, list[float]] = {way: [] for way in steps}
    started, blocks = perf_counter(), 0
    while blocks < MIN_BLOCKS or perf_counter() - started < SECONDS:
        blocks += 1
        for way in list(steps)[:: 1 if blocks % 2 else -1]:
            step_us[way].append(seconds(way, count) / count * 1e6)
    for each in steps.values():
        each.close()
    return {
        "bench": "training",
        "model": name,
        "blocks": blocks,
        **{f"{way}_step_us": statistics.median(times) for way, times in step_us.items()},
        **ratio(step_us["lab"], step_us["bare"]).row("lab_over_bare"),
        **ratio(step_us["lab"], step_us["loader"]).row("lab_over_loader"),
        **{
            key: value
            for way in PEERS.keys() & steps.keys()
            for key, value in ratio(step_us["lab"], step_us[way]).row(f"lab_over_{way}").items()
        },
        **{way: f"left out: {package} is not installed" for way, package in missing.items()},
    }


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TENSORLAB_DATA_DIR"] = folder
        for name, task in tasks().items():
            if name in sys.argv[1:] or not sys.argv[1:]:
                own = OwnTime()
                with paced_by_cpu_time(run, run_files, looks, pace, training_step, clock=own):
                    print(json.dumps(measure(name, task, own)), flush=True)


if __name__ == "__main__":
    main()
