"""A module of the console as the subject: its structure in the Model workspace, and lines on it."""

from __future__ import annotations

import copy

import pytest
import torch

from engine.project import edits
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import TrainingSnapshot
from widgets.structure import modules_model, weights_model
from widgets.text import format_number

WAIT_MS = 30_000
CELL = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
data = (torch.randn(12, 4), torch.randint(0, 2, (12,)))
opt = torch.optim.SGD(model[0].parameters(), 0.1)
"""


def work_on(program, subject) -> None:
    program.bench.edit("Work on it", lambda project: edits.set_subject(project, subject))


@pytest.fixture
def lab(program, qtbot):
    """The program with the structure of `model`, a module of the console."""
    program.workspaces.run_python(CELL)
    program.bench.link.drain()
    work_on(program, ConsoleSubject("model"))
    program.workspaces.at_model()
    wait_shown(program, qtbot)
    return program


def wait_shown(program, qtbot):
    """The view, once it shows what the engine has now."""
    structure = program.workspaces.structure

    def read() -> bool:
        program.bench.link.drain()
        return structure.view.shows_structure and not structure._reading.isActive()

    qtbot.waitUntil(read, timeout=WAIT_MS)
    return structure.view


def module_of(program):
    return program.bench.link._session.lab.console.namespace.variables["model"]


def column(view, number: int) -> list[str]:
    rows = range(view.weights.filter.rowCount())
    return [view.weights.filter.index(row, number).data() for row in rows]


def test_the_structure_stands_in_the_place_of_the_canvas(lab, qtbot):
    window = lab.window
    view = lab.workspaces.structure.view
    assert window.stack.currentWidget() is view
    assert [row.path for row in view.tree.model.rows] == ["", "0", "1", "2"]
    assert column(view, weights_model.OPTIMIZER) == ["opt", "opt", "none", "none"]
    for row, parameter in zip(view.weights.model.rows, module_of(lab).parameters(), strict=True):
        assert row.mean == parameter.detach().double().mean().item()
    window.show_workspace("tensors")
    window.show_workspace("model")
    assert window.stack.currentWidget() is view
    work_on(lab, CanvasSubject())
    assert window.stack.currentWidget() is window.page("model")
    lab.bench.history.stack.undo()
    assert window.stack.currentWidget() is view


def test_data_brings_shapes(lab, qtbot):
    objective = Objective(data="data")
    lab.bench.edit("Set the data", lambda project: edits.set_objective(project, objective))
    view = wait_shown(lab, qtbot)
    model = view.tree.model
    shapes = [model.index_of(n, modules_model.SHAPES).data() for n in range(4)]
    assert shapes == [
        "(12, 4) → (12, 2)",
        "(12, 4) → (12, 8)",
        "(12, 8) → (12, 8)",
        "(12, 8) → (12, 2)",
    ]
    assert model.rows[0].macs == 12 * 4 * 8 + 12 * 8 * 2
    lab.bench.edit("Spoil", lambda p: edits.set_objective(p, Objective(data="dta")))
    view = wait_shown(lab, qtbot)
    assert "no variable named `dta`" in view._batch.text()


def test_lines_run_in_the_console_and_stand_in_its_history(lab, qtbot):
    view = lab.workspaces.structure.view
    tree = view.tree
    tree.tree.setCurrentIndex(tree._filter.mapFromSource(tree.model.index_at("2")))
    assert view.bar.source == "model[2].requires_grad_(False)"
    view.bar.run_button.click()
    wait_shown(lab, qtbot)
    assert [p.requires_grad for p in module_of(lab).parameters()] == [True, True, False, False]
    assert column(view, weights_model.TRAINABLE) == ["frozen", "frozen"]
    view.weights.table.selectRow(0)
    view.bar.action.setCurrentIndex(view.bar.action.findText("Initialise"))
    view.bar.function.setCurrentIndex(view.bar.function.findText("normal_"))
    view.bar.arguments.setText("std=0.02")

    def tried() -> bool:
        lab.bench.link.drain()
        return "This gives" in view.bar.told.text()

    qtbot.waitUntil(tried, timeout=WAIT_MS)
    tried_std = column(view, weights_model.STD)[0].split(" → ")[1]
    view.bar.run_button.click()
    view.bar.action.setCurrentIndex(view.bar.action.findText("Unfreeze"))
    wait_shown(lab, qtbot)
    is_now = module_of(lab)[2].weight.detach().double().std().item()
    assert tried_std == format_number(is_now, 3)
    assert column(view, weights_model.STD)[0] == format_number(is_now)
    sources = [cell.source for cell in lab.bench.project.cells]
    assert sources[1:] == [
        "model[2].requires_grad_(False)",
        "torch.nn.init.normal_(model[2].weight, std=0.02)",
    ]
    console = lab.window.page("tensors").console
    assert console.history.older("") == sources[-1]


def test_a_cell_that_fails_is_told_and_lost_variables_come_back_by_the_cells(lab, qtbot):
    view = lab.workspaces.structure.view
    lab.workspaces.run_python("del model")
    view.bar.run_button.click()
    lab.bench.link.drain()
    assert view.bar.told.text() == "NameError in line 1: name 'model' is not defined"

    def missing() -> bool:
        lab.bench.link.drain()
        return not view.shows_structure and "model" in view.trouble.text()

    qtbot.waitUntil(missing, timeout=WAIT_MS)
    assert view.remedy.text() == "Run its cells"


def test_a_file_runs_on_a_click_and_lines_act_on_the_module_made_of_it(lab, qtbot, tmp_path):
    path = tmp_path / "net.py"
    path.write_text("from torch import nn\n\ndef net():\n    return nn.Linear(3, 2)\n")
    work_on(lab, FileSubject(str(path), "net()"))
    view = lab.workspaces.structure.view

    def told() -> bool:
        lab.bench.link.drain()
        return "has not run" in view.trouble.text()

    qtbot.waitUntil(told, timeout=WAIT_MS)
    assert view.remedy.text() == "Run net.py"
    view.remedy.click()
    wait_shown(lab, qtbot)
    assert view.bar.source == "lab.subject.requires_grad_(False)"
    view.bar.run_button.click()
    lab.bench.link.drain()
    wait_shown(lab, qtbot)
    assert column(view, weights_model.TRAINABLE) == ["frozen", "frozen"]
    assert lab.bench.project.cells[-1].source == "lab.subject.requires_grad_(False)"


def test_a_forward_is_drawn_a_layer_watched_and_the_subject_compared(lab, qtbot):
    lab.workspaces.run_python(CELL.replace("nn.Linear(8, 2)", "nn.Linear(8, 8)"))
    objective = Objective(data="(data[0], data[0].repeat(1, 2))")
    lab.bench.edit("Set the data", lambda project: edits.set_objective(project, objective))
    view = wait_shown(lab, qtbot)
    comparing, net = view.compare, module_of(lab)
    train = lab.workspaces.train.view

    def drawn() -> bool:
        lab.bench.link.drain()
        return view.calls.view.facts is not None

    qtbot.waitUntil(drawn, timeout=WAIT_MS)
    tree = view.tree
    tree.tree.setCurrentIndex(tree._filter.mapFromSource(tree.model.index_at("2")))
    calls = view.calls.view
    assert calls.facts.visible.boxes[calls.selected_box].key == "Sequential.2"
    tree.model.watch_wanted.emit("2", True)
    comparing.keep_requested.emit()
    lab.bench.link.drain()
    assert tree.model.watched == {"2"} and net[2]._forward_hooks
    lab.workspaces.run_python(
        "for _ in range(2):\n"
        "    nn.functional.mse_loss(model(data[0]), data[0].repeat(1, 2)).backward()\n"
        "    opt.step()"
    )
    lab.bench.link.drain()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    norms = train.board.figures["2: norms"].tracks
    assert [len(track.raw) for track in norms.values()] == [2, 2, 2]
    comparing.compare_requested.emit(None)
    lab.bench.link.drain()
    told = view.difference._told
    assert {row.name for row in told.weights} == {"0.weight", "0.bias"}
    assert told.equal_weights == 2 and told.outputs[told.first].path == "0"
    tree.model.watch_wanted.emit("2", False)
    lab.bench.link.drain()
    assert not net[2]._forward_hooks
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_the_table_has_the_numbers_of_the_step_that_train_has_gone_to(lab, qtbot):
    lab.workspaces.run_python(
        "model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))"
    )
    objective = Objective(data="data")
    lab.bench.edit("Set the data", lambda project: edits.set_objective(project, objective))
    view = wait_shown(lab, qtbot)
    train = lab.workspaces.train
    copies = {}

    def shows_now() -> bool:
        lab.bench.link.drain()
        now = module_of(lab).state_dict()
        shown = {row.name: row.mean for row in view.weights.model.rows}
        return shown == {name: t.double().mean().item() for name, t in now.items()}

    assert shows_now()
    for step in (1, 2):
        train.step()
        lab.bench.link.drain()
        assert lab.bench.newest(TrainingSnapshot).step == step
        qtbot.waitUntil(shows_now, timeout=WAIT_MS)
        copies[step] = copy.deepcopy(module_of(lab).state_dict())
    for row, p in zip(
        view.weights.model.rows, module_of(lab).state_dict(keep_vars=True).values(), strict=True
    ):
        assert row.gradient == (None if p.grad is None else p.grad.double().norm().item())
    train.back()
    lab.bench.link.drain()
    assert all(t.equal(copies[1][name]) for name, t in module_of(lab).state_dict().items())
    qtbot.waitUntil(shows_now, timeout=WAIT_MS)
