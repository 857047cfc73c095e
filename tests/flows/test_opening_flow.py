"""Another project is opened: nothing of the one before stays in sight."""

from __future__ import annotations

import pytest

from app import templates
from engine.project.document import replace
from engine.protocol import (
    BackwardSnapshot,
    GraphSnapshot,
    ModelSnapshot,
    TrainingSnapshot,
)

pytestmark = pytest.mark.one_program


@pytest.fixture
def bench(program):
    return program.bench


def open_template(program, key: str) -> None:
    """Open a template; the engine has not answered yet."""
    assert program.bench.files.new(templates.load_template(key))


def setup(program, **changes) -> None:
    training = replace(program.bench.project.training, **changes)
    program.window.page("train").form.setup_edited.emit(training, "Set it up")
    program.bench.link.drain()


def test_the_failed_run_of_the_project_before_has_gone(program, bench):
    open_template(program, "mlp")
    program.window.show_workspace("train")
    view = program.window.page("train")
    setup(program, epochs=1, optimizer="optim.SGD", optimizer_params={"lr": 1e30})
    view.bar.train_requested.emit()
    bench.link.drain()
    assert view.bar._result.text().startswith("Failed") and view.bar.weights.fresh
    open_template(program, "lenet")
    bench.link.drain()
    assert view.bar._result.text() == "" and not view.bar.weights.fresh
    assert view._pages.currentIndex() == 0
    assert bench.newest(TrainingSnapshot) is None
    assert all(len(t.raw) == 0 for plot in view.board.plots.values() for t in plot.tracks.values())


def test_a_run_that_goes_on_does_not_come_back_into_the_next_project(program, bench):
    open_template(program, "mlp")
    program.window.show_workspace("train")
    view = program.window.page("train")
    bench.link.drain()
    view.bar.step_requested.emit()
    bench.link.drain()
    assert bench.newest(TrainingSnapshot).state == "paused"
    open_template(program, "lenet")
    bench.link.drain()
    assert bench.newest(TrainingSnapshot) is None and view._pages.currentIndex() == 0
    view.bar.step_requested.emit()
    bench.link.drain()
    assert bench.newest(TrainingSnapshot).step == 1


@pytest.mark.parametrize("of_console", [False, True])
def test_the_graph_of_the_project_before_has_gone(program, bench, of_console):
    open_template(program, "mlp")
    passes = program.workspaces.at_passes()
    view = passes.page.steps
    bench.link.drain()
    if of_console:
        program.workspaces.run_python("x = torch.ones(2, requires_grad=True); z = x.sum()")
        bench.link.drain()
        view.roots.choose("z")
    else:
        passes.start_backward()
    bench.link.drain()
    assert bench.newest(BackwardSnapshot) is not None
    open_template(program, "lenet")
    bench.link.drain()
    assert bench.newest(GraphSnapshot) is None and bench.newest(BackwardSnapshot) is None
    assert view._graph is None and view.roots.root == ""
    assert view._problem.text() == "" and not view._problem.isVisible()


def test_no_error_is_shown_before_the_engine_has_answered(program, bench):
    program.window.show_workspace("model")
    page = program.window.page("model")
    bench.link.drain()
    assert not page.problems.problems()
    assert not page.properties.problems.problems()
    assert page.problems_dock.windowTitle() == "Problems"
    open_template(program, "mlp")
    assert not page.problems.problems() and not page.properties.problems.problems()
    assert "checks the model" in page.properties._summary.text()
    bench.link.drain()
    assert bench.newest(ModelSnapshot).runnable
    assert "The model runs" in page.properties._summary.text()


def test_a_project_that_is_opened_again_unchanged_is_checked_again(program, bench):
    for _ in range(2):
        open_template(program, "mlp")
        bench.link.drain()
        assert bench.newest(ModelSnapshot).runnable


def test_the_code_and_totals_are_not_those_of_the_project_before(program, bench):
    open_template(program, "lenet")
    program.window.show_workspace("model")
    bench.link.drain()
    page = program.window.page("model")
    assert "Conv2d" in page.code.editor.toPlainText()
    open_template(program, "mlp")
    assert page.code.editor.toPlainText() == "" and program.window._totals.text() == ""
    bench.link.drain()
    assert "Linear" in page.code.editor.toPlainText()


def test_a_problem_stands_in_one_list_only(program, bench):
    open_template(program, "mlp")
    program.window.show_workspace("model")
    page = program.window.page("model")
    program.workspaces.model.edits.delete(["b1"], ())
    bench.link.drain()
    bench.selection.choose(None)
    assert page.properties.problems.problems()
    page.problems_dock.raise_()
    bench.link.drain()
    program.window.repaint()
    assert page.problems.problems() and not page.properties.problems.problems()
    page.code_dock.raise_()
    assert page.properties.problems.problems()
