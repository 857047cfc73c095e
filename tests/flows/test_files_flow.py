"""The page Files in the whole program: opened, looked through, loaded, compared, closed."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from app import templates
from app.presenters.artifacts.files import name_for
from engine.project.subject import MODEL, FileSubject
from engine.protocol import VariablesSnapshot

pytestmark = pytest.mark.one_program


@pytest.fixture
def bench(program):
    return program.bench


def opened(program, path: Path):
    """The page with a file, read."""
    program.bench.files.open(str(path))
    program.bench.link.drain()
    return program.workspaces.files.view


def test_a_file_is_shown_with_the_numbers_of_a_tensor(program, bench, tmp_path) -> None:
    weight = torch.arange(12.0).view(3, 4)
    torch.save({"fc.weight": weight, "epoch": 2}, tmp_path / "w.pt")
    view = opened(program, tmp_path / "w.pt")
    assert program.window.workspace == "files" and program.window.rail.buttons["files"].isVisible()
    assert view._title.text() == "w.pt" and "1 tensors" in view._totals.text()
    bench.link.drain()
    table = view.values.tabs.table
    assert [table.text_at(2, column) for column in range(4)] == ["8", "9", "10", "11"]
    assert "mean 5.5" in view.values.statistics._text.text()
    assert "read only" in view.values._readout.text()
    assert bench.settings.recent_files[0] == str(tmp_path / "w.pt")


def test_a_tensor_becomes_a_variable(program, bench, tmp_path) -> None:
    torch.save({"fc.weight": torch.ones(2, 3)}, tmp_path / "w.pt")
    view = opened(program, tmp_path / "w.pt")
    view.variable.click()
    bench.link.drain()
    assert program.window.workspace == "tensors"
    (variable,) = bench.newest(VariablesSnapshot).variables
    assert (variable.name, variable.shape) == ("fc_weight", (2, 3))
    assert program.workspaces.tensors.expression == "fc_weight"


def test_the_tensors_are_loaded_into_the_subject(program, bench, tmp_path) -> None:
    assert bench.files.new(templates.load_template("mlp"))
    program.workspaces.run_python("state = canvas.model.state_dict()")
    program.workspaces.run_python(
        f"torch.save({{'ema': {{k: torch.full_like(v, 0.25) for k, v in state.items()}}}},"
        f" {str(tmp_path / 'w.pt')!r})"
    )
    bench.link.drain()
    view = opened(program, tmp_path / "w.pt")
    assert view.load.text() == "Load into Canvas"
    view.tree.tree.setCurrentIndex(view.tree._filter.index(0, 0))
    assert view.load.text() == "Load ema into Canvas"
    view.load.click()
    bench.link.drain()
    assert "loaded into Canvas" in program.weights.panel.title.text()
    program.workspaces.run_python(
        "same = torch.tensor(all(bool((v == 0.25).all()) for v in canvas.model.parameters()))"
    )
    bench.link.drain()
    rows = {each.name: each.text for each in bench.newest(VariablesSnapshot).variables}
    assert rows["same"] == "True"


def test_the_tensors_become_a_model_of_blocks_with_their_numbers(program, bench, tmp_path) -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    torch.save({"epoch": 3, "model": module.state_dict()}, tmp_path / "w.pt")
    opened(program, tmp_path / "w.pt").blocks.click()
    bench.link.drain()
    assert program.window.workspace == "model"
    names = [block.name for block in bench.project.model.blocks]
    assert names == ["x", "linear_0", "identity_1", "linear_2", "output1"]
    banner = program.window.banners.banner("file")
    assert banner.title == "5 blocks from w.pt" and "Activations" in banner.text
    assert program.weights.panel.title.text() == "w.pt: 4 of 4 tensors loaded into Canvas"
    torch.save(module[2](module[0](torch.eye(3))), tmp_path / "out.pt")
    program.workspaces.run_python(
        f"same = torch.equal(canvas.model(torch.eye(3)), torch.load({str(tmp_path / 'out.pt')!r}))"
    )
    bench.link.drain()
    rows = {each.name: each.text for each in bench.newest(VariablesSnapshot).variables}
    assert rows["same"] == "True"


def test_a_file_whose_layers_are_no_chain_says_why(program, bench, tmp_path) -> None:
    torch.save({"a.weight": torch.ones(4, 3), "b.weight": torch.ones(4, 3)}, tmp_path / "w.pt")
    before = bench.project
    opened(program, tmp_path / "w.pt").blocks.click()
    banner = program.window.banners.banner("file")
    assert banner.title == "No model of blocks was made from w.pt."
    assert "b takes 3 features, and a gives 4 features" in banner.text
    assert bench.project is before


def test_two_files_are_compared(program, bench, answers, tmp_path) -> None:
    torch.save({"a": torch.ones(2), "b": torch.zeros(1)}, tmp_path / "one.pt")
    torch.save({"a": torch.tensor([1.0, 3.0]), "b": torch.zeros(1)}, tmp_path / "two.pt")
    view = opened(program, tmp_path / "one.pt")
    view.tabs.setCurrentWidget(view.difference)
    answers.open = str(tmp_path / "two.pt")
    view.difference.choose.click()
    bench.link.drain()
    assert "1 of 2 keys differ" in view.difference._words.text()
    table = view.difference.table
    assert [table.cell(0, column).text() for column in range(3)] == ["a", "different", "2"]
    answers.open = str(tmp_path / "gone.pt")
    view.difference.choose.click()
    bench.link.drain()
    assert "There is no file" in view.difference._words.text()


def test_two_files_that_are_dropped_are_compared(program, bench, tmp_path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "one.pt")
    torch.save({"a": torch.zeros(2), "b": torch.zeros(1)}, tmp_path / "two.pt")
    program.window.pair_dropped.emit(str(tmp_path / "one.pt"), str(tmp_path / "two.pt"))
    bench.link.drain()
    view = program.workspaces.files.view
    assert program.window.workspace == "files" and view._title.text() == "one.pt"
    assert view.tabs.currentWidget() is view.difference
    assert view.difference._words.text() == "a is this file, b is two.pt. 2 of 2 keys differ."
    opened(program, tmp_path / "two.pt")
    assert view._title.text() == "two.pt" and view.tabs.currentWidget() is view.values
    assert "Compare this file" in view.difference._words.text()


def test_a_program_is_drawn_and_can_become_the_subject(
    program, bench, answers, tmp_path, qtbot
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(
            torch.jit.script(nn.Sequential(nn.Linear(2, 3), nn.ReLU())), tmp_path / "s.pt"
        )
    view = opened(program, tmp_path / "s.pt")
    qtbot.waitUntil(lambda: view.calls.view.laid_out, timeout=30_000)
    assert view.tabs.currentWidget() is view.graph_page
    titles = {node.name for node in view.calls.view._graph.nodes}
    assert {"linear", "relu", "input", "parameter"} == titles
    proposed = []
    answers.save_path = lambda *asked: proposed.append(asked) or str(tmp_path / "graph.dot")
    view.calls.bar.export_requested.emit("dot")
    assert proposed[0][2].endswith("/s graph.dot")
    assert (tmp_path / "graph.dot").read_text().startswith('digraph "program"')
    view.work.click()
    bench.link.drain()
    assert program.window.workspace == "model"
    assert bench.project.subject == FileSubject(str(tmp_path / "s.pt"), MODEL)


def test_a_refused_file_leaves_the_one_that_is_open(program, bench, tmp_path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "good.pt")
    torch.save(nn.Linear(1, 1), tmp_path / "whole.pt")
    view = opened(program, tmp_path / "good.pt")
    opened(program, tmp_path / "whole.pt")
    assert view._title.text() == "good.pt"
    title = program.window.banners.banner("file").title
    assert title.startswith("whole.pt was refused: its pickle asks for torch.nn.modules.linear.")
    view.close_button.click()
    assert view.path == "" and view._pages.currentIndex() == 0
    assert program.window.workspace == "files"


def test_names_of_variables() -> None:
    assert name_for("model/body.0.weight", set()) == "body_0_weight"
    assert name_for("0.weight", {"t_0_weight"}) == "t_0_weight_2"
    assert name_for("class", set()) == "t_class"
    assert name_for("…", set()) == "tensor"
