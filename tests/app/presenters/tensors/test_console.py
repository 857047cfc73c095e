"""The console's presenter: which answers reach the console, and which cells the project keeps."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.presenters.cells import CellsPresenter
from app.presenters.tensors.console import ConsolePresenter
from app.selection.references import Line
from engine.project import edits
from engine.project.document import Project
from engine.protocol import (
    CellSnapshot,
    CompleteCommand,
    Completion,
    CompletionsSnapshot,
    EnterFolderCommand,
    ErrorReport,
    InterruptSignal,
    NewNamespaceCommand,
    OutputSnapshot,
    RunCellCommand,
    StopSignal,
)
from tests.app.conftest import SCRIPT
from widgets.console.console_view import ConsoleView
from widgets.model.code_editor import CodeEditor

DONE = CellSnapshot(ok=True, error=None)
FAILED = CellSnapshot(ok=False, error=ErrorReport("NameError", "name 'a' is not defined"))


def found(*names: str) -> CompletionsSnapshot:
    return CompletionsSnapshot(start=0, completions=tuple(Completion(n, "variable") for n in names))


class Desk:
    def __init__(self, bench, qtbot) -> None:
        self.view = ConsoleView()
        qtbot.addWidget(self.view)
        self.cells = CellsPresenter(bench, bench.window)
        self.presenter = ConsolePresenter(bench, self.cells, self.view, bench.window)
        self.again: list[bool] = []
        self.cells.again_requested.connect(lambda: self.again.append(True))

    @property
    def shown(self) -> str:
        return self.view.output.toPlainText()


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


def sources(bench) -> list[str]:
    return [cell.source for cell in bench.project.cells]


def test_only_the_newest_completions_are_shown(desk, link, monkeypatch):
    shown: list[CompletionsSnapshot] = []
    monkeypatch.setattr(desk.view, "show_completions", shown.append)
    desk.view.completion_requested.emit("to", 2)
    desk.view.completion_requested.emit("tor", 3)
    assert link.sent[1] == CompleteCommand(source="tor", cursor=3, id=2, revision=1)
    link.answer(found("stale"), to=1)
    link.answer(found("torch"), to=2)
    assert [answer.completions[0].text for answer in shown] == ["torch"]


def test_completions_that_fail_are_told_in_the_status_bar(desk, link, bench):
    desk.view.completion_requested.emit("a.", 2)
    link.fail("a is broken.")
    assert bench.window.said == ["No completions: a is broken."]


def test_a_cell_that_ran_well_is_kept_and_one_that_failed_is_not(desk, link, bench):
    desk.view.submit("\nx = 1\n")
    assert isinstance(link.sent[0], RunCellCommand) and link.sent[0].source == "\nx = 1\n"
    link.answer(OutputSnapshot(stream="stdout", text="hello\n"))
    assert "hello" in desk.shown and desk.view.busy
    link.answer(DONE)
    assert sources(bench) == ["x = 1"] and not desk.view.busy
    desk.view.submit("a")
    link.answer(FAILED)
    assert sources(bench) == ["x = 1"] and "name 'a' is not defined" in desk.shown
    desk.view.submit("b")
    link.fail("It cannot be run.")
    assert sources(bench) == ["x = 1"] and not desk.view.busy


def test_cells_that_run_again_are_not_kept_twice_and_end_at_the_first_that_fails(desk, link, bench):
    for source in ("x = 1", "y = 2", "z = 3"):
        bench.store.set_project(edits.record_cell(bench.project, source))
    desk.presenter.run_again()
    assert [command.filename for command in link.sent] == ["<kept cell 1>"]
    link.answer(DONE)
    assert [command.source for command in link.sent] == ["x = 1", "y = 2"]
    link.answer(FAILED)
    assert len(link.sent) == 2 and not desk.view.busy
    assert sources(bench) == ["x = 1", "y = 2", "z = 3"]


def test_another_project_hears_nothing_of_the_cell_in_hand(desk, link, bench):
    desk.view.submit("x = 1")
    bench.files.new(Project(name="Other"))
    assert link.signals == [StopSignal(command=1), InterruptSignal(command=1)]
    assert isinstance(link.sent[-1], NewNamespaceCommand)  # its variables are another project's
    link.answer(OutputSnapshot(stream="stdout", text="hello\n"), to=1)
    link.answer(DONE, to=1)
    assert desk.shown == "" and sources(bench) == []


def test_a_project_opened_before_any_cell_ran_finds_a_fresh_namespace(desk, link, bench):
    bench.files.new(Project(name="Other"))
    assert link.sent == [] and link.signals == []


def test_control_c_in_the_input_interrupts_the_running_cell(desk, link):
    control_c = Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier
    QTest.keyClick(desk.view.input, *control_c)
    assert link.signals == []
    desk.view.submit("while True: pass")
    QTest.keyClick(desk.view.input, *control_c)
    assert link.signals == [StopSignal(command=1), InterruptSignal(command=1)]


def test_without_an_engine_a_cell_says_so(desk, link):
    link.close()
    desk.view.submit("x = 1")
    assert "There is no engine" in desk.shown and not desk.view.busy


def test_an_engine_that_ends_takes_the_cell_with_it_and_the_project_can_be_run_again(
    desk, link, bench
):
    desk.view.submit("x = 1")
    link.answer(DONE)
    desk.view.submit("y = 2")
    link.close()
    assert "The engine has ended, and this cell with it." in desk.shown and not desk.view.busy
    banner = bench.window.banners.banner("cells")
    assert banner.title == "The console's variables went with the engine"
    assert banner.text.startswith("One cell made its variables.")
    desk.cells.run_again()
    assert desk.again == [True] and bench.window.banners.banner("cells") is None


def test_an_engine_that_ran_no_cell_takes_nothing_with_it(desk, link, bench):
    bench.store.set_project(edits.record_cell(bench.project, "x = 1"))
    link.close()
    assert bench.window.banners.banner("cells") is None
    desk.cells.note_run()
    link.get_ready()
    link.close()
    link.get_ready()
    bench.window.banners.dismiss("cells")
    link.close()  # nothing has run in this one
    assert bench.window.banners.banner("cells") is None


def test_a_project_with_cells_offers_to_run_them(desk, bench):
    two = edits.record_cell(edits.record_cell(Project(), "x = 1"), "y = 2")
    bench.files.new(two)
    banner = bench.window.banners.banner("cells")
    assert banner.title == "This project holds Python that was run in its console"
    assert banner.text == "2 cells made its variables. Nothing runs until you say so."
    shown = banner.findChild(CodeEditor, "banner_code")
    kept = [cell.source for cell in bench.project.cells]
    assert shown.toPlainText() == f"# %% 1\n{kept[0]}\n# %% 2\n{kept[1]}"
    assert bench.actions["tensors.run_again"].isEnabled()
    bench.files.new(Project())
    assert bench.window.banners.banner("cells") is None
    assert not bench.actions["tensors.run_again"].isEnabled()
    assert not bench.actions["tensors.forget_cells"].isEnabled()


def test_cells_are_forgotten_once_that_is_agreed(desk, bench):
    bench.files.new(edits.record_cell(Project(), "x = 1"))
    bench.dialogs.agrees = False
    desk.cells.forget()
    assert sources(bench) == ["x = 1"]
    assert bench.dialogs.asked == ["Remove one cell from the project? The variables stay."]
    bench.dialogs.agrees = True
    desk.cells.forget()
    assert sources(bench) == [] and bench.window.banners.banner("cells") is None


def test_a_python_file_is_read_by_its_own_encoding(desk, bench, tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes("# coding: latin-1\nname = 'é'\n".encode("latin-1"))
    desk.presenter.open_file(str(path))
    assert "name = 'é'" in desk.view.input.source()
    path.write_bytes(b"name = '\xe9'\n")
    desk.presenter.open_file(str(path))
    assert bench.window.said[-1].startswith("a.py cannot be read: ")
    desk.presenter.open_file()  # and the dialog is left
    assert bench.dialogs.asked == ["Open Python"] and len(bench.window.said) == 1


# -- where relative paths start ------------------------------------------------------------------


def folders(link) -> list[str]:
    return [sent.folder for sent in link.sent if isinstance(sent, EnterFolderCommand)]


def test_cells_run_in_the_projects_folder_once_it_has_one(desk, bench, link, tmp_path):
    project, other = tmp_path / "a", tmp_path / "b"
    project.mkdir()
    other.mkdir()
    assert folders(link) == []
    bench.files.save_as(str(project / "net.tlab"))
    bench.files.save()
    assert folders(link) == [str(project)]
    bench.files.save_as(str(other / "net.tlab"))
    assert folders(link) == [str(project), str(other)]
    link.close()
    link.get_ready()  # a new engine begins elsewhere
    assert folders(link) == [str(project), str(other), str(other)]
    bench.files.new()
    assert folders(link)[-1] == ""


def test_a_script_stays_in_its_own_folder(desk, bench, link, tmp_path):
    bench.files.save_as(str(tmp_path / "net.tlab"))
    before = folders(link)
    link.attach_to(SCRIPT)
    link.get_ready()
    bench.files.new()
    assert folders(link) == before


def test_cells_of_a_python_file_run_in_its_folder_unless_the_project_has_one(
    desk, bench, link, tmp_path
):
    script = tmp_path / "scripts" / "net.py"
    script.parent.mkdir()
    script.write_text("x = 1\n")
    desk.presenter.open_file(str(script))
    assert folders(link) == [str(script.parent)]
    bench.files.save_as(str(tmp_path / "net.tlab"))
    desk.presenter.open_file(str(script))
    assert folders(link) == [str(script.parent), str(tmp_path)]


def test_the_lines_of_what_is_chosen_are_lit_and_a_line_chooses(desk, bench):
    lit: list[list[tuple[str, int]]] = []
    lines = desk.view.output.lines
    lines.light = lit.append
    bench.selection.choose(Line("cell 1", 3), "elsewhere")
    assert lit == [[("cell 1", 3)]]
    bench.selection.choose(None)
    assert lit[1:] == [[]]


def test_a_line_of_the_output_is_chosen_for_all_views(desk, bench):
    desk.view.output.line_chosen.emit("<cell 1>", 3)
    assert bench.selection.current == Line("<cell 1>", 3)
    assert bench.selection.views[desk.view.output] == "console"
