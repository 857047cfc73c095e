"""A module of code trains on the data set of the set-up: its split, transforms and columns."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engine.datasets.load import load_dataset
from engine.handlers.subjects.find import find_subject, subject_of
from engine.handlers.training.code_files import files_needed
from engine.handlers.training.ranks import console_for
from engine.lab import Lab
from engine.project import catalogue
from engine.project.document import (
    Block,
    DataSetup,
    Loading,
    Model,
    TrainingSetup,
    Transform,
    Wire,
    replace,
)
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective, Subject
from engine.protocol import (
    PredictionsSnapshot,
    PreviewRatesCommand,
    ReadPredictionsCommand,
    RunCellCommand,
    RunFileCommand,
    StepSnapshot,
    TrainCommand,
    TrainingSnapshot,
    WriteStepCommand,
)
from engine.training.distributed.ranks import Ranks
from engine.training.distributed.rows import RowsObjective
from engine.training.objectives.catalogue_data import CatalogueData
from engine.training.objectives.code_objective import CodeObjective
from tests.engine.subjects.conftest import Ask, Write

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, inputs=64, outputs=10):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear(x.flatten(1))
"""
LAYERS = (
    Block("x", "Input", "x", {"shape": (1, 8, 8)}),
    Block("f", "nn.Flatten", "flatten"),
    Block("l", "nn.Linear", "linear", {"in_features": 64, "out_features": 10}),
    Block("o", "Output", "output"),
)
WIRES = tuple(
    Wire(a.id, catalogue.ports(a)[1][0].name, b.id, catalogue.ports(b)[0][0].name)
    for a, b in pairwise(LAYERS)
)
BLOCKS = Model(LAYERS, WIRES)
OF_SETUP = Objective(of_setup=True)
DIGITS = DataSetup(
    transforms=(Transform("RandomHorizontalFlip"), Transform("GaussianNoise")), split_seed=3
)
SETUP = TrainingSetup(data=DIGITS, batch_size=128, epochs=2, seed=1)
TABLE = "width,colour,kind\n" + "".join(
    f"{n % 7}.5,{('red', 'green', 'blue')[n % 3]},{'ab'[n % 2]}\n" for n in range(40)
)


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "runs"))


@pytest.fixture
def net(ask: Ask, write: Write) -> str:
    path = str(write("net.py", NET))
    ask(RunFileCommand(path=path))
    return path


def trained(ask: Ask, subject: Subject, setup: TrainingSetup, **fields) -> TrainingSnapshot:
    objective = Objective() if isinstance(subject, CanvasSubject) else OF_SETUP
    command = TrainCommand(
        model=BLOCKS, training=setup, subject=subject, objective=objective, **fields
    )
    told = [each for each in ask(command) if isinstance(each, TrainingSnapshot)]
    assert told[-1].state == "finished", told[-1].error
    rows = tuple(row for each in told for row in each.epoch_rows)  # each epoch is told once
    return replace(told[-1], epoch_rows=rows)


def module(lab: Lab, subject: Subject, setup: TrainingSetup = SETUP) -> Any:
    return find_subject(lab, subject, BLOCKS, setup).module


@pytest.mark.parametrize(
    "loading",
    [Loading(), Loading(balanced=True, drop_last=True), Loading(workers=0, shuffle=False)],
    ids=["usual", "balanced", "loader"],
)
def test_it_is_trained_bit_for_bit_as_the_same_model_of_blocks(
    lab: Lab, ask: Ask, net: str, loading: Loading
) -> None:
    setup = replace(SETUP, data=replace(DIGITS, loading=loading))
    code, canvas = FileSubject(net, "Net()"), CanvasSubject()
    own, blocks = module(lab, code, setup), module(lab, canvas, setup)
    own.load_state_dict(blocks.state_dict())
    before = own.linear.weight.clone()
    of_blocks, of_code = trained(ask, canvas, setup), trained(ask, code, setup)
    assert torch.equal(own.linear.weight, blocks.linear.weight)
    assert torch.equal(own.linear.bias, blocks.linear.bias)
    assert not torch.equal(own.linear.weight, before)
    assert (of_code.step, of_code.total_steps) == (of_blocks.step, of_blocks.total_steps)
    rows, expected = of_code.epoch_rows, of_blocks.epoch_rows
    assert [row.validation_loss for row in rows] == [row.validation_loss for row in expected]
    assert [row.validation_accuracy for row in rows] == pytest.approx(
        [row.validation_accuracy for row in expected]
    )
    assert of_code.guess_accuracy == of_blocks.guess_accuracy
    assert of_code.validation_samples == of_blocks.validation_samples == 360


def test_a_run_goes_on_from_a_checkpoint_bit_for_bit(lab: Lab, ask: Ask, net: str) -> None:
    code = FileSubject(net, "Net()")
    first = {name: value.clone() for name, value in module(lab, code).state_dict().items()}
    half = trained(ask, code, replace(SETUP, epochs=1))
    trained(ask, code, SETUP, checkpoint=half.checkpoint)
    resumed = module(lab, code).state_dict()
    resumed = {name: value.clone() for name, value in resumed.items()}
    module(lab, code).load_state_dict(first)
    trained(ask, code, SETUP)
    assert all(torch.equal(resumed[k], v) for k, v in module(lab, code).state_dict().items())


def test_a_table_with_one_hot_columns_and_the_step_that_is_written_for_it(
    lab: Lab, ask: Ask, net: str, tmp_path: Path
) -> None:
    (tmp_path / "table.csv").write_text(TABLE)
    data = DataSetup("csv", path=str(tmp_path / "table.csv"))
    setup = TrainingSetup(
        data=data, batch_size=8, seed=2, optimizer="optim.SGD", optimizer_params={"lr": 0.1}
    )
    code = FileSubject(net, "Net(4, 2)")
    (told,) = ask(WriteStepCommand(subject=code, objective=OF_SETUP, training=setup))
    assert isinstance(told, StepSnapshot) and told.task == "classification"
    assert told.batch == "(float32 (8, 4), int64 (8,))"
    plain = nn.Linear(4, 2)
    plain.load_state_dict(module(lab, code, setup).linear.state_dict())
    trained(ask, code, setup)

    dataset = load_dataset(data)
    assert dataset.columns == ("width", "colour = blue", "colour = green", "colour = red")
    assert torch.equal(dataset.x_train[:, 1:].sum(1), torch.ones(32))
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for epoch in range(setup.epochs):
        for batch in range(4):
            x, y = dataset.train_batch(batch, 8, seed=2, epoch=epoch)
            optimizer.zero_grad()
            F.cross_entropy(plain(x), y).backward()
            optimizer.step()
    assert torch.equal(module(lab, code, setup).linear.weight, plain.weight)


def test_predictions_have_the_classes_and_the_whole_part(lab: Lab, ask: Ask, net: str) -> None:
    code, setup = FileSubject(net, "Net(13, 3)"), TrainingSetup(data=DataSetup("wine"))
    (found,) = ask(
        ReadPredictionsCommand(
            model=Model(), training=setup, subject=code, objective=OF_SETUP, part="training"
        )
    )
    assert isinstance(found, PredictionsSnapshot)
    dataset = load_dataset(setup.data)
    assert found.classes == dataset.classes and found.total == len(dataset)
    with torch.no_grad():
        scores = module(lab, code, setup)(dataset.x_train)
    pairs = dataset.y_train * 3 + scores.argmax(1)
    expected = pairs.bincount(minlength=9).view(3, 3).tolist()
    assert [list(row) for row in found.counts] == expected
    assert found.loss == pytest.approx(F.cross_entropy(scores, dataset.y_train).item())


def test_a_module_of_the_console_and_its_schedule(lab: Lab, ask: Ask) -> None:
    ask(RunCellCommand(source=NET))
    console = ConsoleSubject("Net")
    setup = replace(SETUP, epochs=1)
    assert trained(ask, console, setup).step == 12
    command = PreviewRatesCommand(
        model=Model(), training=setup, subject=console, objective=OF_SETUP
    )
    (rates,) = ask(command)
    assert rates.total_steps == 12


def test_names_of_the_code_are_not_looked_up_and_come_back(lab: Lab, ask: Ask, net: str) -> None:
    both = Objective("gone", "/no/file.py:held", of_setup=True)
    code = FileSubject(net, "Net()")
    (told,) = ask(WriteStepCommand(subject=code, objective=both, training=SETUP))
    assert "F.cross_entropy" in told.source
    command = TrainCommand(model=Model(), training=SETUP, subject=code, objective=both)
    assert files_needed(command) == [net] and console_for(subject_of(lab, command)) == b""


def test_other_processes_get_the_console_data_that_a_file_trains_on(
    lab: Lab, ask: Ask, net: str
) -> None:
    ask(RunCellCommand(source="pair = torch.ones(4, 64), torch.arange(4)"))
    setup = replace(SETUP, data=DataSetup("console", path="pair"))
    command = TrainCommand(
        model=Model(), training=setup, subject=FileSubject(net, "Net()"), objective=OF_SETUP
    )
    assert console_for(subject_of(lab, command))
    of_file = replace(command, objective=Objective("data"))
    assert console_for(subject_of(lab, of_file)) == b""


@pytest.mark.parametrize("rank", [0, 1])
def test_each_rank_has_its_rows_of_a_batch(rank: int) -> None:
    whole = CodeObjective(lambda batch: batch, CatalogueData(SETUP))
    objective = RowsObjective(whole, Ranks(rank, 2, torch.device("cpu")), nn.Linear(1, 1), 5)
    rows, (x, y) = next(objective.batches(1, 3)), load_dataset(DIGITS).train_batch(3, 128, 1, 1)
    assert torch.equal(rows.batch[0], x[rank::2]) and torch.equal(rows.batch[1], y[rank::2])
