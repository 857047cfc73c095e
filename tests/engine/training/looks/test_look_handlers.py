"""Norms by module and histograms of a run, read from its folder."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot

import numpy as np
import pytest

from engine.project.document import TrainingSetup
from engine.protocol import (
    BINS,
    MAX_LINES,
    MAX_NAMES,
    HistogramsSnapshot,
    ModuleNormsSnapshot,
    NormLine,
    ReadHistogramsCommand,
    ReadModuleNormsCommand,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
    encode_snapshot,
)
from tests.engine.handlers.test_training_handlers import MLP, Client

SETUP = TrainingSetup(epochs=1, batch_size=128, seed=3)


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def stepped(client: Client, steps: int) -> None:
    """A run of so many steps, each by hand, that is stopped then."""
    client.send(TrainCommand(id=1, model=MLP, training=SETUP, paused=True))
    for step in range(steps):
        client.send(StepTrainingCommand(id=2 + step))
    end(client)


def end(client: Client) -> None:
    client.session.lab.control.stop.set()
    client.run_to_end()


def norms(client: Client, **fields) -> ModuleNormsSnapshot:
    client.send(ReadModuleNormsCommand(id=90, folder=client.last.folder, **fields))
    found = client.said[-1]
    assert isinstance(found, ModuleNormsSnapshot), found
    return found


def histograms(client: Client, **fields) -> HistogramsSnapshot:
    client.send(ReadHistogramsCommand(id=91, folder=client.last.folder, **fields))
    found = client.said[-1]
    assert isinstance(found, HistogramsSnapshot), found
    return found


def test_parameters_are_taken_together_by_module(client: Client) -> None:
    stepped(client, 3)
    each = norms(client, by_parameter=True)
    names = ("linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias")
    assert each.steps == (1, 2, 3) and each.names == names
    of = {line.name: line for line in each.lines}
    modules = norms(client)
    assert modules.names == ("linear1", "linear2") and modules.deepest == 1
    for line in modules.lines:
        for figure in ("gradient", "weight", "update"):
            parts = (getattr(of[f"{line.name}.{part}"], figure) for part in ("weight", "bias"))
            together = [hypot(*pair) for pair in zip(*parts, strict=True)]
            assert getattr(line, figure) == pytest.approx(together)
    (whole,) = norms(client, depth=0).lines
    runs = [said for said in client.said if isinstance(said, TrainingSnapshot)]
    told = [norm for run in runs for norm in run.steps.gradient_norm]
    assert whole.name == "" and whole.gradient == pytest.approx(tuple(told))
    (only,) = norms(client, names=("linear2",)).lines
    assert only.name == "linear2"


def test_histograms_of_a_parameter_and_of_its_gradient(client: Client) -> None:
    stepped(client, 2)
    found = histograms(client, name="linear2.weight")
    weight = client.weights()["linear2.weight"].numpy()
    assert found.steps == (1, 2) and found.kind == "weights"
    assert (found.lows[-1], found.highs[-1]) == (weight.min(), weight.max())
    counts = np.frombuffer(found.counts, "<u4").reshape(2, BINS)
    assert np.abs(counts[-1] - np.histogram(weight, BINS)[0]).sum() <= 2
    assert (counts.sum(1) == weight.size).all()
    unknown = histograms(client, name="nothing", kind="gradients")
    assert unknown.name == "linear1.weight" and len(unknown.steps) == 2


def test_a_run_that_goes_back_takes_its_looks_along(client: Client) -> None:
    stepped(client, 4)
    first = client.last.folder
    client.send(TrainCommand(id=50, model=MLP, training=SETUP, to_step=2))
    client.run_to_end()
    client.send(StepTrainingCommand(id=51))
    end(client)
    assert client.last.folder != first and client.last.step == 3
    assert norms(client).steps == (1, 2, 3)


def test_without_a_run_there_is_nothing_and_a_missing_one_is_told(client: Client) -> None:
    client.send(ReadModuleNormsCommand(id=1, folder=""))
    client.send(ReadHistogramsCommand(id=2, folder=""))
    assert [type(s) for s in client.said] == [ModuleNormsSnapshot, HistogramsSnapshot]
    client.send(ReadHistogramsCommand(id=3, folder="/nowhere"))
    assert "/nowhere" in client.error.error.message and client.error.error.hint


def test_the_largest_answers_fit() -> None:
    steps = tuple(range(400))
    lines = tuple(NormLine(f"{i}" * 30, (0.1,) * 400, (0.1,) * 400, (0.1,) * 400) for i in
                  range(MAX_LINES))  # fmt: skip
    names = ("x" * 60,) * MAX_NAMES
    assert encode_snapshot(ModuleNormsSnapshot(folder="f", steps=steps, names=names, lines=lines))
    many = (0.1,) * 256
    assert encode_snapshot(
        HistogramsSnapshot(
            folder="f", names=names, steps=steps[:256], lows=many, highs=many,
            others=steps[:256], counts=bytes(256 * BINS * 4),
        )
    )  # fmt: skip
