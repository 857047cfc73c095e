"""The tabs of Tensors by themselves: what each shows, asks, clears and passes on."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QObject, Signal

from app.presenters.cells import CellsPresenter
from app.presenters.tensors.console import ConsolePresenter
from app.presenters.tensors.tabs import AliasTab, OperationTab, ShapeTab, StorageTab, ValuesTab
from app.presenters.tensors.workspace import STORAGE, VALUES, VARIABLES, TensorsPresenter
from app.selection.references import Element, Parameter, StorageCell
from app.window.tensors_page import TensorsPage
from engine.protocol import (
    AliasesCommand,
    LocateCommand,
    ReadStorageCommand,
    ReadValuesCommand,
    Variable,
    VariablesSnapshot,
)


class View(QObject):
    """Notes what it is told: any method is there."""

    asked, run_requested = Signal(object), Signal(str)
    element_selected, selection_cleared = Signal(object), Signal()
    window_requested, cell_selected = Signal(object, int), Signal(int)
    reader_activated, tensor_selected = Signal(str, object), Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[Any, ...]] = []
        self.element: Any = None
        self.in_front = True

    def isVisible(self) -> bool:
        return self.in_front

    def wanted(self) -> tuple[int | None, int]:
        return 5, 7

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("show_", "forget", "refresh", "start_anew")):
            return lambda *given: self.told.append((name, *given))
        raise AttributeError(name)

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [told[1:] for told in self.told if told[0] == name]


class LineView(View):
    """Of a line, whose elements are those of any tensor in it."""

    element_selected = Signal(str, object)


@pytest.fixture
def view(bench, link) -> View:
    link.get_ready()
    return View()


@pytest.fixture
def line(bench, link) -> LineView:
    link.get_ready()
    return LineView()


def made(kind: type, bench: Any, view: View) -> Any:
    tab = kind(bench, view, bench.window)
    tab.heard = []
    tab.selected.connect(lambda expression, index: tab.heard.append((expression, index)))
    tab.cell_selected.connect(lambda cell: tab.heard.append(cell))
    tab.run_requested.connect(tab.heard.append)
    return tab


def test_values_are_read_again_or_those_of_another_tensor(bench, link, view: View) -> None:
    tab = made(ValuesTab, bench, view)
    tab.show_tensor("x")
    tab.show_element((1,))
    assert view.told == [("show_element", (1,))]  # it is not in front
    tab.refresh()
    assert view.told[1:] == [("show_tensor", "x"), ("show_element", (1,))]
    tab.refresh()
    assert view.told[3:] == [("refresh",)]
    tab.show_tensor("y")
    tab.refresh()
    assert view.told[4:] == [("show_tensor", "y"), ("show_element", None)]
    view.element_selected.emit((2,))
    view.run_requested.emit("y + 1")
    assert tab.heard == [("y", (2,)), "y + 1"]


def test_an_answer_about_values_or_its_error_is_shown(bench, link, view: View) -> None:
    made(ValuesTab, bench, view)
    command = ReadValuesCommand(expression="x")
    view.asked.emit(command)
    answer = VariablesSnapshot(variables=())  # of any kind
    link.answer(answer)
    assert len(view.of("show_snapshot")) == 1
    link.fail("x is gone.")
    ((asked, error),) = view.of("show_error")
    assert asked == command and error.message == "x is gone."


def test_the_storage_is_that_of_the_tensor_in_sight(bench, link, view: View) -> None:
    tab = made(StorageTab, bench, view)
    tab.refresh()
    assert link.sent == []  # there is no tensor
    tab.show_tensor("x")
    tab.refresh()
    (command,) = link.sent
    assert isinstance(command, ReadStorageCommand)
    assert (command.expression, command.first, command.count) == ("x", 5, 7)
    assert view.of("show_storage") == []
    link.fail("No storage.", "Try another.")
    tab.show_tensor("")
    assert view.of("show_storage") == [(None, "No storage. Try another."), (None,)]


@pytest.mark.parametrize("element", [None, (0, 1)])
def test_a_cell_is_a_choice_unless_an_element_is_chosen(bench, link, view: View, element) -> None:
    tab = made(StorageTab, bench, view)
    tab.show_tensor("x")
    view.element = element
    view.cell_selected.emit(3)
    (command,) = link.sent
    assert isinstance(command, LocateCommand)
    assert (command.expression, command.index, command.cell) == ("x", None, 3)
    assert tab.heard == ([3] if element is None else [])
    link.fail("It is gone.")
    assert view.of("show_location") == [(None,)]
    view.selection_cleared.emit()
    view.reader_activated.emit("y", (2,))
    assert tab.heard[-2:] == [("x", None), ("y", (2,))]


def test_a_cell_is_shown_and_located(bench, link, view: View) -> None:
    tab = made(StorageTab, bench, view)
    tab.show_tensor("x")
    tab.show_cell(4)
    assert view.of("show_cell") == [(4,)] and link.sent[-1].cell == 4
    tab.show_element(None)
    assert view.of("show_element") == [(None,)] and len(link.sent) == 1


def test_the_map_of_tensors_lights_the_selected_one(bench, link, view: View) -> None:
    tab = made(AliasTab, bench, view)
    tab.show_tensor("x")
    assert view.told == [("show_selected", "x")]
    tab.refresh()
    assert [type(command) for command in link.sent] == [AliasesCommand]
    link.fail("It is busy.", "Wait.")
    assert bench.window.said == ["It is busy. Wait."]
    view.tensor_selected.emit("y")
    assert tab.heard == [("y", None)]
    tab.show_tensor("")
    ((shown,),) = view.of("show_aliases")
    assert (shown.storages, shown.tensors) == ((), ())


@pytest.mark.parametrize("kind", [OperationTab, ShapeTab])
def test_a_line_is_explained_and_forgotten_with_its_engine(
    bench, link, line: LineView, kind
) -> None:
    tab = made(kind, bench, line)
    line.asked.emit(ReadValuesCommand(expression="x"))
    link.fail("No x.")
    ((error,),) = line.of("show_error")
    assert error.message == "No x."
    line.asked.emit(ReadValuesCommand(expression="x"))
    asked = len(link.sent)
    tab.forget()
    link.answer(VariablesSnapshot(variables=()), to=asked)
    assert line.of("show_snapshot") == []
    ((words,),) = line.of("forget")
    assert words.startswith("The engine has ended")
    tab.refresh()
    assert line.of("refresh") == [()]
    line.run_requested.emit("y = x")
    assert tab.heard == ["y = x"]
    line.in_front = False
    line.asked.emit(ReadValuesCommand(expression="x"))
    assert len(link.sent) == asked  # a tab in the back asks nothing


def test_another_project_clears_the_lines(bench, link, line: LineView) -> None:
    operation, shape = made(OperationTab, bench, line), made(ShapeTab, bench, line)
    for tab, name, given in ((operation, "start_anew", ()), (shape, "forget", ("",))):
        line.told.clear()
        tab._ask(ReadValuesCommand(expression="x"))
        asked = len(link.sent)
        tab.start_anew()
        link.answer(VariablesSnapshot(variables=()), to=asked)
        assert line.told == [(name, *given)]


def test_the_names_and_shapes_of_tensors_are_offered(bench, line: LineView) -> None:
    variables = (
        Variable("x", "tensor", "Tensor", shape=(2, 3)), Variable("n", "number", "int"),
    )  # fmt: skip
    shape, operation = made(ShapeTab, bench, line), made(OperationTab, bench, line)
    shape.show_variables(variables)
    assert line.told == [("show_names", ["x"])]
    shape.show_tensor("")
    shape.show_tensor("x")
    shape.show_tensor("x + 1")
    assert line.of("show_expression") == [("x", (2, 3)), ("x + 1", None)]
    operation.show_variables(variables)
    operation.show_tensor("")
    line.element_selected.emit("y", (1,))
    assert shape.heard == [("y", (1,))]
    assert line.told[-2:] == [("show_variables", variables), ("show_expression", "")]


# -- the workspace ---------------------------------------------------------------------------------


class Desk:
    def __init__(self, bench: Any, qtbot: Any) -> None:
        self.page = TensorsPage()
        qtbot.addWidget(self.page)
        console = ConsolePresenter(
            bench, CellsPresenter(bench, bench.window), self.page.console, bench.window
        )
        self.presenter = TensorsPresenter(bench, self.page, console, bench.window)
        tensors = (Variable(name, "tensor", "Tensor", shape=(2, 3)) for name in "xy")
        bench.store.take(VariablesSnapshot(variables=tuple(tensors)))


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


def test_what_is_chosen_in_tensors_is_chosen_for_all_views(desk: Desk, bench) -> None:
    views: list[str] = []
    choose = bench.selection.choose
    bench.selection.choose = lambda reference, view="", **more: (
        views.append(view), choose(reference, view, **more)
    )  # fmt: skip
    desk.page.variables.variable_selected.emit("x")
    desk.page.values.element_selected.emit((0, 1))
    assert bench.selection.current == Element("x", (0, 1))
    desk.page.storage.cell_selected.emit(3)
    assert views[:2] == [VARIABLES, VALUES]
    desk.page.bar.expression_entered.emit("y.T")
    assert bench.selection.current == Element("y.T", None)
    desk.presenter.select("x", (0, 1))
    desk.page.bar.element_cleared.emit()
    assert (desk.presenter.expression, desk.presenter.element) == ("x", None)
    kinds = bench.selection.views
    assert [kinds[v] for v in (desk.page.variables, desk.page.values, desk.page.storage)] == [
        VARIABLES, VALUES, STORAGE,
    ]  # fmt: skip


def test_what_is_chosen_elsewhere_is_selected_unless_the_user_works_here(desk, bench) -> None:
    bench.selection.choose(Element("x", (1, 2)), "elsewhere")
    assert (desk.presenter.expression, desk.presenter.element) == ("x", (1, 2))
    bench.selection.choose(Parameter("0.weight"), "elsewhere")
    assert desk.presenter.expression == "canvas.model[0].weight"
    bench.selection.choose(None)
    assert desk.presenter.expression == "canvas.model[0].weight"
    desk.page.show()
    bench.selection.choose(Element("y"), "elsewhere")
    assert desk.presenter.expression != "y"


def test_a_cell_of_a_storage_is_shown_there(desk: Desk, link) -> None:
    desk.presenter.show_storage(StorageCell("x", 3))
    asked = [each for each in link.sent if isinstance(each, LocateCommand)][-1]
    assert (asked.expression, asked.cell) == ("x", 3)
    assert desk.page.tabs.currentWidget() is desk.page.storage and desk.presenter.element is None


def test_the_devices_of_the_engine_are_offered(desk: Desk, link) -> None:
    told: list[tuple[str, ...]] = []
    desk.page.create_form.set_devices = told.append
    link.close()
    link.get_ready()
    assert told == [("cpu",)]


def test_python_is_run_as_if_typed(desk: Desk) -> None:
    ran: list[str] = []
    desk.page.console.submit = lambda source, *more, **rest: ran.append(source)
    desk.presenter.submit("z = x + y")
    assert ran == ["z = x + y"]
