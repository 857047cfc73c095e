"""`canvas` in the console: the model that Train trains and Export writes, its batches, its loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from engine.datasets.load import load_dataset
from engine.project.document import Model, TrainingSetup, replace
from engine.protocol import (
    CellSnapshot,
    CheckModelCommand,
    Command,
    CompleteCommand,
    CompletionsSnapshot,
    ErrorSnapshot,
    ExportCommand,
    ReadValuesCommand,
    RunCellCommand,
    Snapshot,
    TrainCommand,
    ValuesSnapshot,
    VariablesSnapshot,
    WeightsSnapshot,
)
from engine.server.session import Session
from engine.training.run import TrainingRun
from tests.engine.handlers.test_training_handlers import MLP, SETUP

pytestmark = pytest.mark.usefixtures("forked_processes")  # of the process that reads exports

WIDER = replace(
    MLP,
    blocks=tuple(
        replace(b, params={"in_features": 64, "out_features": 11}) if b.id == "b" else b
        for b in MLP.blocks
    ),
)
UNMAKEABLE = replace(
    MLP,
    blocks=tuple(
        replace(b, params={"in_features": 64, "out_features": -1}) if b.id == "b" else b
        for b in MLP.blocks
    ),
)


class Desk:
    """A session with a canvas, and what it says of each cell."""

    def __init__(self, model: Model | None = MLP, training: TrainingSetup = SETUP) -> None:
        self.said: list[Snapshot] = []
        self.session = Session(self.said.append)
        self.lab = self.session.lab
        self.model, self.training = model, training
        self.variables = self.lab.console.namespace.variables

    def send(self, command: Command) -> list[Snapshot]:
        self.said.clear()
        self.session.handle(command)
        assert not [s for s in self.said if isinstance(s, ErrorSnapshot)], self.said
        return self.said

    def run(self, source: str) -> CellSnapshot:
        self.send(RunCellCommand(source=source, model=self.model, training=self.training))
        end = self.said[-1]
        assert isinstance(end, CellSnapshot)
        return end

    def do(self, source: str) -> list[Snapshot]:
        end = self.run(source)
        assert end.ok, end.error
        return list(self.said)

    def value(self, expression: str) -> Any:
        self.do(f"value = {expression}")
        return self.variables["value"]

    def train(self, **options: Any) -> TrainingRun:
        """A run to its end."""
        assert self.model is not None
        self.send(TrainCommand(model=self.model, training=self.training, **options))
        while self.session.advance():
            pass
        assert isinstance(self.lab.run, TrainingRun)
        return self.lab.run

    def new_weights(self) -> list[WeightsSnapshot]:
        return [s for s in self.said if isinstance(s, WeightsSnapshot)]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_the_model_is_the_very_one_that_train_trains_and_export_writes(
    desk: Desk, tmp_path: Path
) -> None:
    before = desk.value("{k: v.clone() for k, v in canvas.model.state_dict().items()}")
    run = desk.train()
    model = desk.value("canvas.model")
    assert model is run.loop.model
    after = desk.value("canvas.model.state_dict()")
    assert not any(torch.equal(before[name], after[name]) for name in before)
    path = tmp_path / "net.pt"
    command = ExportCommand(model=MLP, training=SETUP, format="pt", path=str(path))
    desk.send(command)
    exported = torch.load(path)
    assert exported.keys() == after.keys()
    assert all(torch.equal(exported[name], after[name]) for name in after)


def test_a_change_from_the_console_is_seen_by_values_train_and_export(
    desk: Desk, tmp_path: Path
) -> None:
    desk.do("with torch.no_grad(): canvas.model.linear2.weight.zero_()")
    desk.send(ReadValuesCommand(expression="canvas.model.linear2.weight"))
    (values,) = [s for s in desk.said if isinstance(s, ValuesSnapshot)]
    assert (values.rows, values.columns) == (10, 64)
    path = tmp_path / "net.pt"
    desk.send(ExportCommand(model=MLP, training=SETUP, format="pt", path=str(path)))
    assert not torch.load(path)["linear2.weight"].any()
    # Train goes on from it: with a learning rate of 0, the weights stay.
    still = replace(SETUP, epochs=1, optimizer="optim.SGD", optimizer_params={"lr": 0.0})
    desk.training = still
    run = desk.train()
    assert run.loop.step == 12
    assert not run.loop.model.linear2.weight.any()
    assert run.loop.model.linear1.weight.any()


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("with torch.no_grad(): canvas.model.linear1.weight.zero_()", True),
        ("canvas.model.linear1.weight.data.zero_()", True),
        ("canvas.model.load_state_dict(kept)", True),
        ("net.linear1.bias.data += 1", True),
        ("canvas.model.linear1.weight = nn.Parameter(torch.zeros(64, 64))", True),
        ("canvas.model(canvas.batch()[0]).sum().backward(); canvas.model.eval()", False),
        ("3", False),
    ],
)
def test_a_cell_that_changes_weights_says_so(desk: Desk, source: str, changes: bool) -> None:
    desk.do("kept = {k: v + 1 for k, v in canvas.model.state_dict().items()}; net = canvas.model")
    assert desk.new_weights() == []
    desk.do(source)
    told = [(new.parameters, new.learnt) for new in desk.new_weights()]
    assert told == ([(4810, True)] if changes else [])


def test_the_cell_that_takes_the_model_first_tells_its_change_too(desk: Desk) -> None:
    desk.do("3")
    assert desk.lab.models.live is None  # a cell without `canvas` makes no model
    desk.do("nn.init.ones_(canvas.model.linear1.bias)")
    assert len(desk.new_weights()) == 1


def test_batches_and_loss_are_those_of_train(desk: Desk) -> None:
    x, y = desk.value("canvas.batch()")
    expected = load_dataset(SETUP.data).train_batch(0, 128, SETUP.seed)
    assert torch.equal(x, expected[0]) and torch.equal(y, expected[1])
    third = load_dataset(SETUP.data).train_batch(3, 128, SETUP.seed)
    assert torch.equal(desk.value("canvas.batch(3)[0]"), third[0])
    desk.do("canvas.model.eval(); x, y = canvas.batch(); loss = canvas.loss(canvas.model(x), y)")
    output = desk.lab.models.live.module(x)
    assert torch.equal(desk.variables["loss"], nn.functional.cross_entropy(output, y))
    assert desk.run("canvas.batch(12)").error.type == "IndexError"
    desk.training = replace(SETUP, loss="nn.MSELoss")
    loss = desk.value("canvas.loss(canvas.model(x), y)")
    assert torch.equal(loss, nn.functional.mse_loss(output, nn.functional.one_hot(y, 10).float()))


def test_a_plain_loop_over_canvas_is_trains_own_step(desk: Desk) -> None:
    """One epoch in a cell gives the bits of one epoch of Train."""
    desk.training = replace(SETUP, epochs=1, optimizer="optim.SGD", optimizer_params={"lr": 0.1})
    desk.do(
        """
torch.manual_seed(3)
optimizer = torch.optim.SGD(canvas.model.parameters(), lr=0.1)
for number in range(12):
    x, y = canvas.batch(number)
    optimizer.zero_grad()
    canvas.loss(canvas.model(x), y).backward()
    optimizer.step()
"""
    )
    assert len(desk.new_weights()) == 1
    other = Desk(training=desk.training)
    trained = other.train().loop.model.state_dict()
    mine = desk.lab.models.live.module.state_dict()
    assert all(torch.equal(mine[name], trained[name]) for name in trained)


def test_after_an_edit_the_equal_blocks_keep_their_weights(desk: Desk) -> None:
    desk.do("nn.init.ones_(canvas.model.linear1.weight); old = canvas.model")
    desk.model = WIDER
    new = desk.value("canvas.model")
    assert new is not desk.variables["old"]
    assert new.linear1 is desk.variables["old"].linear1 and bool((new.linear1.weight == 1).all())
    assert new.linear2.weight.shape == (11, 64)
    assert desk.new_weights() == []  # the edit has made new ones, not the cell


def test_the_check_after_an_edit_tells_the_new_canvas_to_values_and_completions(
    desk: Desk,
) -> None:
    desk.do("canvas.model")
    desk.send(CheckModelCommand(model=WIDER, training=SETUP))
    desk.send(ReadValuesCommand(expression="canvas.model.linear2.weight"))
    (values,) = [s for s in desk.said if isinstance(s, ValuesSnapshot)]
    assert (values.rows, values.columns) == (11, 64)


@pytest.mark.parametrize(
    ("model", "message", "hint"),
    [
        (None, "The canvas has no model yet.", "Drag blocks from the palette of Model"),
        (Model(), "The canvas has no model yet.", "Drag blocks from the palette of Model"),
        (UNMAKEABLE, "The model cannot run. “linear2”: ", "Fix what the Problems list names."),
        (replace(MLP, wires=MLP.wires[:2]), "The model cannot run. ", "Fix what the Problems"),
    ],
)
def test_without_a_model_the_cell_is_told_what_to_do(
    model: Model | None, message: str, hint: str
) -> None:
    desk = Desk(model)
    error = desk.run("\ncanvas.model").error
    assert error is not None and error.message.startswith(message), error
    assert error.hint.startswith(hint) and error.line == 2


def test_canvas_is_no_variable_of_the_user_and_may_be_shadowed(desk: Desk) -> None:
    said = desk.do("canvas.model")
    (listed,) = [s for s in said if isinstance(s, VariablesSnapshot)]
    assert listed.variables == ()
    said = desk.do("canvas = 3")
    (listed,) = [s for s in said if isinstance(s, VariablesSnapshot)]
    assert [v.name for v in listed.variables] == ["canvas"]
    assert desk.lab.console.namespace.reached().tensors() == {}


def test_another_name_of_a_module_tells_the_first(desk: Desk) -> None:
    said = desk.do("net = canvas.model\nhead = net.linear2\nagain = net\nalso = head")
    (listed,) = [s for s in said if isinstance(s, VariablesSnapshot)]
    names = {v.name: v.same_as for v in listed.variables}
    assert names == {
        "net": "canvas.model", "head": "", "again": "canvas.model", "also": "head",
    }  # fmt: skip


def completions(desk: Desk, source: str) -> list[str]:
    said = desk.send(CompleteCommand(source=source, cursor=len(source)))
    (found,) = said
    assert isinstance(found, CompletionsSnapshot)
    return [completion.text for completion in found.completions]


def test_tab_completes_it(desk: Desk) -> None:
    desk.do("3")
    assert "canvas" in completions(desk, "can")
    assert completions(desk, "canvas.") == ["batch", "loss", "model"]
    assert completions(desk, "canvas.model.lin") == ["linear1", "linear2"]


def test_the_model_is_made_in_the_labs_own_modes_and_draws_none_of_the_cells_numbers(
    desk: Desk,
) -> None:
    desk.do(
        """
from torch._subclasses.fake_tensor import FakeTensorMode
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
with torch.inference_mode(), FakeTensorMode():
    net = canvas.model
drawn = torch.rand(3)
"""
    )
    net = desk.variables["net"]
    assert type(net.linear1.weight) is nn.Parameter and net.linear1.weight.dtype == torch.float32
    assert not net.linear1.weight.is_inference()
    torch.manual_seed(0)
    assert torch.equal(desk.variables["drawn"], torch.rand(3, dtype=torch.float64))


def test_its_tensors_and_modules_have_their_names_in_a_graph(desk: Desk) -> None:
    desk.do("x, y = canvas.batch(); loss = canvas.loss(canvas.model(x), y)")
    namespace = desk.lab.console.namespace
    reached = namespace.reached().tensors()
    assert reached["canvas.model.linear1.weight"] is desk.lab.models.live.module.linear1.weight
    node = desk.variables["loss"].grad_fn.next_functions[0][0].next_functions[0][0]
    call = namespace.recordings.kept[-1].call_of(node._sequence_nr())
    assert call is not None and call.module == "canvas.model.linear2"
