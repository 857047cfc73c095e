"""A module of the console is trained by Train and exported, as a plain loop would have it."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.metrics import r2_score
from torch import nn
from torch.utils.data import DataLoader

from engine.project import edits
from engine.project.document import replace
from engine.project.subject import CanvasSubject, ConsoleSubject
from engine.protocol import ExportSnapshot, RunCellCommand, TrainingSnapshot
from tests.labels import said
from tests.pictures import assert_same_picture
from widgets import theme

pytestmark = pytest.mark.one_program

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))
    def forward(self, x):
        return self.layers(x)

x = torch.linspace(-1, 1, 120).reshape(40, 3)
data = torch.utils.data.TensorDataset(x, x.sum(1))
held = (x[:8], x[:8].sum(1))
"""


@pytest.fixture
def net(program):
    """The program whose subject is the class Net of its console, with Train in front."""
    program.workspaces.run_python(NET)
    program.bench.link.drain()
    program.subject.choose(ConsoleSubject("Net"))
    program.window.show_workspace("train")
    return program


def form(program):
    return program.window.page("train").form.objective


def write(field, text: str) -> None:
    field.setText(text)
    field.editingFinished.emit()


def test_it_is_trained_bit_for_bit_and_exported(net, qapp, tmp_path):
    assert "Name your data" in form(net)._words.text()
    write(form(net).data, "data")
    net.bench.link.drain()
    assert "F.mse_loss(prediction, y)" in form(net).step.toPlainText()
    assert form(net)._words.text() == (
        "Written for regression: the first batch is (float32 (40, 3), float32 (40,)). Edit it to"
        " make it yours."
    )
    write(form(net).validation, "held")
    view = net.window.page("train")
    view.bar.train_requested.emit()
    net.bench.link.drain()
    run = net.bench.newest(TrainingSnapshot)
    assert (run.state, run.step, run.total_steps) == ("finished", 20, 20)
    qapp.processEvents()  # the layout shows a new widget then
    assert list(view.board.figures) == ["RMSE", "R2"] and view.board.figures["RMSE"].isVisible()
    rmse, r2 = (view.board.figures[name].tracks["validation"].raw for name in ("RMSE", "R2"))
    net.export.export("pt", str(tmp_path / "net.pt"))
    net.bench.link.drain()
    assert net.bench.newest(ExportSnapshot).max_abs_error == 0.0

    names: dict = {"nn": nn, "torch": torch}
    exec(NET, names)
    torch.manual_seed(0)
    model = names["Net"]()
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(20):
        for x, y in DataLoader(names["data"], 64, shuffle=True):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x).squeeze(-1), y).backward()
            optimizer.step()
    learnt = torch.load(tmp_path / "net.pt", weights_only=True)
    assert all(torch.equal(learnt[key], value) for key, value in model.state_dict().items())
    with torch.no_grad():
        x, y = names["held"]
        last = model.eval()(x).squeeze(-1)
    assert float(rmse.y[-1]) == pytest.approx(nn.functional.mse_loss(last, y).sqrt().item())
    assert float(r2.y[-1]) == pytest.approx(r2_score(y, last), rel=1e-5)


def test_an_own_step_is_an_undo_step_and_names_its_figures(net):
    write(form(net).data, "data")
    net.bench.link.drain()
    own = "def step(batch):\n    x, y = batch\n    e = model(x)[:, 0] - y\n"
    own += "    return {'loss': e.square().mean(), 'bias': e.mean()}"
    form(net).step.setPlainText(own)
    form(net).step.left.emit()
    assert net.bench.history.stack.undoText() == "Edit the step"
    assert net.bench.project.objective.step == own + "\n"
    net.bench.link.drain()
    assert form(net)._words.text() == (
        "Your step. The first batch is (float32 (40, 3), float32 (40,))."
    )
    view = net.window.page("train")
    view.bar.train_requested.emit()
    net.bench.link.drain()
    assert list(view.board.figures) == ["bias"]
    columns = net.bench.newest(TrainingSnapshot).steps
    assert all(math.isnan(value) for value in columns.accuracy)
    form(net)._usual_button.click()
    net.bench.link.drain()
    assert net.bench.project.objective.step == ""
    assert "F.mse_loss" in form(net).step.toPlainText()
    view.bar.train_requested.emit()
    net.bench.link.drain()
    assert list(view.board.figures) == ["RMSE", "R2"]


def test_what_cannot_be_trained_is_told_in_place(net):
    view = net.window.page("train")
    view.bar.train_requested.emit()
    assert "There is no data to train on" in view.bar._result.text()
    write(form(net).data, "gone")
    net.bench.link.drain()
    assert "There is no variable named `gone`." in form(net)._words.text()
    write(form(net).data, "x")
    net.bench.link.drain()
    assert form(net)._words.text().startswith("No usual task fits: the batch is")
    form(net).step.setPlainText("def step(batch)\n    return 1")
    form(net).step.left.emit()
    view.bar.train_requested.emit()
    net.bench.link.drain()
    assert "Line 1 of the step: expected ':'" in view.bar._result.text()
    form(net).step.setPlainText("def step(batch):\n    raise KeyError('mine')")
    form(net).step.left.emit()
    view.bar.train_requested.emit()
    net.bench.link.drain()
    assert "KeyError: 'mine'" in view.bar._result.text()


def test_the_canvas_has_its_own_form(net):
    setup = net.window.page("train").form
    assert setup.objective.isVisible() and not setup.data.isVisible()
    net.subject.choose(CanvasSubject())
    assert setup.data.isVisible() and not setup.objective.isVisible()


@pytest.mark.own_program
def test_a_data_set_of_train_is_previewed_and_trained_on(program):
    program.bench.send(RunCellCommand(source="net = nn.Linear(4, 3)"))
    program.subject.choose(ConsoleSubject("net"))
    program.window.show_workspace("train")
    view = program.window.page("train")
    source = form(program).source
    source.setCurrentIndex(1)
    source.activated.emit(1)
    view.form.data._choose("iris")
    view.form.data._preview.click()
    program.bench.link.drain()
    assert "120 samples for training, 30 for validation" in said(view.form.data, "data_facts")
    assert "F.cross_entropy(prediction, y)" in form(program).step.toPlainText()
    words = form(program)._words.text()
    assert words.startswith("Written for classification: the first batch is (float32 (64, 4), int")
    view.bar.train_requested.emit()
    program.bench.link.drain()
    run = program.bench.newest(TrainingSnapshot)
    assert (run.state, run.step, run.validation_samples) == ("finished", 40, 30)
    program.bench.history.stack.undo()
    assert program.bench.project.training.data.kind == "digits"
    program.bench.link.drain()
    assert "mat1 and mat2" in form(program)._words.text()  # digits have no 4 numbers


@pytest.mark.own_program
@pytest.mark.parametrize("held", ["pairs", ""])
def test_an_end_at_chance_level_is_said_of_code_too(program, held):
    program.workspaces.run_python(
        "net = nn.Linear(3, 4)\nnet.weight.data.zero_()\n"  # it always gives the same class
        "pairs = torch.randn(80, 3), torch.arange(80) % 8 % 5 % 4"  # class 0: three of eight
    )
    program.bench.link.drain()
    program.subject.choose(ConsoleSubject("net"))
    program.window.show_workspace("train")
    write(form(program).data, "pairs")
    write(form(program).validation, held)
    still = replace(program.bench.project.training, optimizer_params={"lr": 0.0}, epochs=2)
    program.bench.edit("Learn nothing", lambda project: edits.set_training(project, still))
    view = program.window.page("train")
    view.bar.train_requested.emit()
    program.bench.link.drain()
    assert program.bench.newest(TrainingSnapshot).state == "finished"
    assert "Always guessing the most frequent class reaches 37.5 %" in view.bar._result.text()


@pytest.mark.own_program
@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_form_looks_as_it_did(net, qapp, name):
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    write(form(net).data, "data")
    net.bench.link.drain()
    net.window.page("train").form.resize(320, 760)
    assert_same_picture(form(net), f"objective_form_{name}")
    assert_same_picture(form(net).of_step, f"objective_step_{name}")
