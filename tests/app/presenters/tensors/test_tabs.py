"""The tabs of the Tensors workspace: what each asks about the tensor, and what it makes of it."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtWidgets import QListWidget

from app.presenters.cells import CellsPresenter
from app.presenters.tensors.console import ConsolePresenter
from app.presenters.tensors.workspace import TensorsPresenter
from app.selection.references import Element
from app.window.tensors_page import TensorsPage
from engine.operations.memory.locating import locate
from engine.operations.memory.storage import read_window
from engine.protocol import (
    AliasesCommand,
    AliasesSnapshot,
    AliasNode,
    LocateCommand,
    ReadStorageCommand,
    StorageNode,
    Variable,
    VariablesSnapshot,
)
from engine.tensors.reach import Reached

X = torch.arange(12.0)[::2].view(2, 3)


class Desk:
    def __init__(self, bench, qtbot) -> None:
        self.page = TensorsPage()
        qtbot.addWidget(self.page)
        cells = CellsPresenter(bench, bench.window)
        console = ConsolePresenter(bench, cells, self.page.console, bench.window)
        self.presenter = TensorsPresenter(bench, self.page, console, bench.window)
        variables = tuple(
            Variable(name=name, kind="tensor", type="Tensor", shape=(2, 3)) for name in "xy"
        )
        bench.store.take(VariablesSnapshot(variables=variables))
        self.presenter.select("x")

    def readers(self) -> list[str]:
        found = self.page.storage.findChild(QListWidget, "storage_readers")
        return [found.item(row).text() for row in range(found.count())]


@pytest.fixture
def storage(bench, link, qtbot) -> Desk:
    """The tab Storage in front, with the storage of x."""
    link.get_ready()
    desk = Desk(bench, qtbot)
    desk.page.tabs.setCurrentWidget(desk.page.storage)
    assert isinstance(link.sent[-1], ReadStorageCommand) and link.sent[-1].expression == "x"
    link.answer(read_window("x", X, None, 1024))
    return desk


def newest(link, kind: type):
    return [command for command in link.sent if isinstance(command, kind)][-1]


def test_an_element_that_is_selected_is_located(storage, link) -> None:
    storage.presenter.select("x", (1, 2))
    asked = newest(link, LocateCommand)
    assert (asked.expression, asked.index, asked.cell) == ("x", (1, 2), None)
    link.answer(locate("x", X, Reached({"x": X, "t": X.T}), index=(1, 2)), to=asked.id)
    assert storage.readers() == ["x[1, 2]", "t[2, 1]"]
    assert storage.page.storage.text("sum").endswith("= 10")
    storage.presenter.select("x", (0, 1))
    asked = newest(link, LocateCommand)
    link.fail("It is gone.", to=asked.id)
    sent = len(link.sent)
    storage.presenter.select("x")
    assert link.sent[sent:] == []
    assert storage.readers() == ["Choose a cell or an element to see what reads it."]


def test_a_cell_that_no_element_reads_is_located_by_its_number(storage, link) -> None:
    storage.page.storage.cell_selected.emit(3)
    asked = newest(link, LocateCommand)
    assert (asked.expression, asked.index, asked.cell) == ("x", None, 3)
    link.answer(locate("x", X, Reached({"x": X}), cell=3), to=asked.id)
    assert storage.readers() == ["No element reads it: a gap."]


def test_a_late_answer_about_another_tensor_is_not_shown(storage, link) -> None:
    storage.presenter.select("x", (1, 2))
    asked = newest(link, LocateCommand)
    before = storage.readers()
    link.answer(locate("y", X, Reached({"y": X}), index=(1, 2)), to=asked.id)
    assert storage.readers() == before


def test_the_cells_go_with_the_last_variable_and_not_before(storage, bench) -> None:
    storage.presenter.select("x.grad")
    assert storage.page.storage.text("facts") != ""
    bench.store.take(VariablesSnapshot(variables=()))
    assert storage.page.storage.text("facts") == ""


def test_a_reader_and_an_element_lead_to_their_tensor(storage) -> None:
    view, presenter = storage.page.storage, storage.presenter
    view.element_selected.emit((0, 2))
    assert (presenter.expression, presenter.element) == ("x", (0, 2))
    view.selection_cleared.emit()
    assert (presenter.expression, presenter.element) == ("x", None)
    view.reader_activated.emit("y", (1, 1))
    assert (presenter.expression, presenter.element) == ("y", (1, 1))


def test_what_is_in_sight_is_read_and_a_refusal_is_told(storage, link) -> None:
    storage.page.storage.window_requested.emit(100, 50)
    asked = newest(link, ReadStorageCommand)
    assert (asked.expression, asked.first, asked.count) == ("x", 100, 50)
    link.fail("x has no storage.", "Try x.to_dense().", to=asked.id)
    assert storage.page.storage.text("facts") == ""
    picture = storage.page.storage.strip
    assert "x has no storage." in picture._empty_text


def test_the_element_is_chosen_again_in_what_was_read_anew(storage, link) -> None:
    storage.presenter.select("x", (1, 0))
    before = len([c for c in link.sent if isinstance(c, LocateCommand)])
    storage.page.storage.window_requested.emit(0, 12)
    link.answer(read_window("x", X, 0, 12), to=newest(link, ReadStorageCommand).id)
    assert storage.page.storage.strip.cell == 6
    assert len([c for c in link.sent if isinstance(c, LocateCommand)]) == before + 1


def test_the_map_shows_the_selected_tensor_and_selects_another(bench, link, qtbot) -> None:
    link.get_ready()
    desk = Desk(bench, qtbot)
    desk.page.tabs.setCurrentWidget(desk.page.aliases)
    asked = newest(link, AliasesCommand)
    nodes = tuple(AliasNode((n,), "base", i, (2, 3), "float32", (3, 1), 0)
                  for i, n in enumerate("xy", start=1))  # fmt: skip
    storages = tuple(StorageNode(i, 24, "cpu", 0) for i in (1, 2))
    link.answer(AliasesSnapshot(storages=storages, tensors=nodes), to=asked.id)
    assert desk.page.aliases.selected == "x"
    desk.page.aliases.tensor_selected.emit("y")
    assert desk.presenter.expression == "y" and desk.page.aliases.selected == "y"
    link.fail("It is busy.", to=newest(link, AliasesCommand).id)
    assert any("It is busy." in said for said in bench.window.said)
    bench.store.take(VariablesSnapshot(variables=()))
    assert desk.page.aliases.selected == "" and desk.page.aliases.tensor_rect("x") is None


def test_the_tabs_know_the_shapes_of_the_variables(bench, link, qtbot) -> None:
    link.get_ready()
    desk = Desk(bench, qtbot)
    new = Variable(name="w", kind="tensor", type="Tensor", shape=(4, 5))
    bench.store.take(VariablesSnapshot(variables=(new,)))
    operations = desk.page.operation.list
    operations.setCurrentItem(operations.item_of("view"))
    assert desk.page.operation.source == "y = w.view(5, -1)"


def test_a_reference_is_shown_on_the_tab_that_is_wanted(storage) -> None:
    page, presenter = storage.page, storage.presenter
    for show, view in (
        (presenter.show_values, page.values),
        (presenter.show_storage, page.storage),
    ):
        show(Element("y", (0, 1)))
        assert page.tabs.currentWidget() is view
        assert (presenter.expression, presenter.element) == ("y", (0, 1))
