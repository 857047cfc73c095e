"""The Tensors workspace's presenter: which tensor all views show, and who runs Python."""

from __future__ import annotations

import pytest

from app.presenters.cells import CellsPresenter
from app.presenters.tensors.console import ConsolePresenter
from app.presenters.tensors.running import RunningPresenter
from app.presenters.tensors.workspace import TensorsPresenter
from app.window.tensors_page import TensorsPage
from engine.project.document import Project
from engine.protocol import (
    AliasesCommand,
    CellSnapshot,
    ReadStorageCommand,
    ReadVariablesCommand,
    RunCellCommand,
    Variable,
    VariablesSnapshot,
)


def tensor(name: str, *shape: int) -> Variable:
    return Variable(name=name, kind="tensor", type="Tensor", shape=shape)


NUMBER = Variable(name="n", kind="number", type="int")


class Desk:
    def __init__(self, bench, qtbot) -> None:
        self.bench = bench
        self.page = TensorsPage()
        qtbot.addWidget(self.page)
        cells = CellsPresenter(bench, bench.window)
        console = ConsolePresenter(bench, cells, self.page.console, bench.window)
        self.presenter = TensorsPresenter(bench, self.page, console, bench.window)

    def show(self, *variables: Variable) -> str:
        """The console has these variables now; the expression that is shown then."""
        self.bench.store.take(VariablesSnapshot(variables=variables))
        return self.presenter.expression


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


def test_the_variables_are_asked_for_where_the_engine_was_ready_before(desk, link):
    assert [type(command) for command in link.sent] == [ReadVariablesCommand]


def test_every_form_and_view_runs_its_python_in_the_console(desk, link):
    page = desk.page
    views = (
        page.variables, page.create_form, page.values, page.operation,
        page.broadcast, page.reduction, page.product, page.pick,
    )  # fmt: skip
    for number, view in enumerate(views):
        view.run_requested.emit(f"x = {number}")
        cells = [command for command in link.sent if isinstance(command, RunCellCommand)]
        assert [cell.source for cell in cells] == [f"x = {n}" for n in range(number + 1)]
        link.answer(CellSnapshot(ok=True, error=None), to=cells[-1].id)


def test_the_newest_tensor_is_shown_and_another_when_it_is_gone(desk):
    assert desk.show(NUMBER) == ""
    assert desk.show(NUMBER, tensor("x", 3)) == "x"
    assert desk.show(tensor("x", 3), tensor("y", 2), tensor("z", 2)) == "z"
    desk.presenter.select("x")
    assert desk.show(tensor("x", 4), tensor("y", 2), tensor("z", 2)) == "x"
    desk.presenter.select("x.grad")
    assert desk.show(tensor("x", 4), tensor("y", 2)) == "x.grad"
    assert desk.show(tensor("w", 1), tensor("y", 2)) == "w"
    assert desk.show(tensor("y", 2)) == "y"
    assert desk.show() == ""


def test_an_element_is_kept_while_the_tensor_has_it(desk):
    desk.show(tensor("x", 2, 3))
    desk.presenter.select("x", (1, 2))
    for shape, kept in (((2, 3), (1, 2)), ((4, 5), (1, 2))):
        desk.show(tensor("x", *shape))
        assert desk.presenter.element == kept
    for shape in ((2, 2), (1, 3), (6,), (2, 3, 1)):
        desk.presenter.select("x", (1, 2))
        desk.show(tensor("x", *shape))
        assert desk.presenter.element is None, shape


def test_only_the_view_in_front_asks_after_a_cell(desk, link):
    def asked() -> set[type]:
        before = len(link.sent)
        desk.show(tensor("x", 3))
        return {type(command) for command in link.sent[before:]}

    desk.page.tabs.setCurrentWidget(desk.page.aliases)
    asked()
    assert asked() == {AliasesCommand}
    desk.page.tabs.setCurrentWidget(desk.page.storage)
    assert asked() == {ReadStorageCommand}


@pytest.mark.parametrize("end", ["engine", "project"])
def test_the_variables_go_with_their_engine_and_their_project(desk, link, bench, end):
    desk.show(tensor("x", 3))
    desk.presenter.select("x", (1,))
    if end == "engine":
        link.close()
    else:
        bench.files.new(Project(name="Other"))
    assert desk.presenter.expression == "" and desk.presenter.element is None
    assert desk.page.variables.variable("x") is None


def test_what_leads_to_a_panel_shows_it(desk):
    page, presenter = desk.page, desk.presenter
    for dock, lead in (
        (page.create_dock, presenter.create),
        (page.console_dock, presenter.type_python),
    ):
        dock.hide()
        lead()
        assert not dock.isHidden()


def test_variables_in_sight_are_read_again_while_a_cell_runs(desk, link, qtbot):
    running = desk.presenter.findChild(RunningPresenter)
    assert not desk.page.isVisible()
    link.answer(VariablesSnapshot(variables=()))
    link.finish()
    assert not running.timer.isActive()
    desk.page.console.submit("while True: pass")
    assert running.timer.isActive()
    sent = len(link.sent)
    running.timer.timeout.emit()
    assert len(link.sent) == sent  # nobody sees them
    with qtbot.waitExposed(desk.page):
        desk.page.show()
    running.timer.timeout.emit()
    running.timer.timeout.emit()  # the answer is awaited
    assert link.sent[sent:] == [ReadVariablesCommand(id=sent + 1, revision=1)]
    link.answer(VariablesSnapshot(variables=(tensor("x", 2),)))
    running.timer.timeout.emit()
    assert [type(command) for command in link.sent[sent:]].count(ReadVariablesCommand) == 2
