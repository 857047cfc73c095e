"""Python files: asked about once, run by the user's word, offered again when they change."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QToolButton

from app.presenters.python_files import PythonFiles
from app.presenters.subject import SubjectPresenter
from engine.project import edits, limits
from engine.project.document import Project, replace
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    ErrorReport,
    ErrorSnapshot,
    FileObject,
    FileSnapshot,
    OutputSnapshot,
    ReadStructureCommand,
    RunFileCommand,
    StructureSnapshot,
    StructureTotals,
    Variable,
    VariablesSnapshot,
)
from tests.words import assert_same_words
from widgets.subject.chooser import Group, Offer, SubjectChooser

NET = FileObject("Net", "class", "Net")
DEEP = FileObject("Deep", "class", "Deep", ("width", "depth"))
MODEL = FileObject("model", "module", "Net")
DATA = FileObject("data", "data", "TensorDataset")
HELPER = FileObject("helper", "function", "function", ("x", "y"))
LOSS = FileObject("loss", "function", "function", ("x",), takes_tensors=True)
CRITERION = FileObject("criterion", "module", "MSELoss", is_bare=True)
MAKE = FileObject("make", "function", "function")
MAIN = FileObject("main", "function", "function")


@pytest.fixture
def files(bench, qtbot) -> PythonFiles:
    return PythonFiles(bench, bench.window)


@pytest.fixture
def chooser(bench, files, qtbot) -> SubjectChooser:
    chooser = SubjectChooser()
    qtbot.addWidget(chooser)
    presenter = SubjectPresenter(bench, files, chooser, bench.window)
    chooser.setProperty("presenter", presenter)
    chooser.show()
    return chooser


@pytest.fixture
def net(tmp_path) -> Path:
    file = tmp_path / "net.py"
    file.write_text("one = 1\n")
    return file


def banner(bench, key="python"):
    return bench.window.banners.banner(key)


def press(shown, text: str) -> None:
    next(b for b in shown.findChildren(QPushButton) if b.text() == text).click()


def ran(file: Path, *objects: FileObject) -> FileSnapshot:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return FileSnapshot(path=str(file), digest=digest, objects=objects)


def runs(link) -> list[str]:
    return [command.path for command in link.sent if isinstance(command, RunFileCommand)]


def offered(chooser: SubjectChooser) -> list[str]:
    chooser.button.menu().aboutToShow.emit()
    return [action.text() for action in chooser.button.menu().actions() if action.text()]


def pick(chooser: SubjectChooser, text: str) -> None:
    offered(chooser)
    next(a for a in chooser.button.menu().actions() if a.text() == text).trigger()


def need(chooser: SubjectChooser) -> str:
    return chooser.need.text() if chooser.need.isVisible() else ""


def test_a_file_is_asked_about_once_for_its_content(bench, link, files, net):
    link.get_ready()
    files.open(str(net))
    assert not runs(link)
    assert banner(bench).title == "Opening net.py runs it in the engine"
    press(banner(bench), "Run the file")
    assert runs(link) == [str(net)] and banner(bench) is None
    link.answer(ran(net))
    files.open(str(net))
    assert len(runs(link)) == 2
    link.answer(ran(net))
    net.write_text("two = 2\n")
    files.open(str(net))
    assert len(runs(link)) == 2 and banner(bench) is not None
    copy = net.with_name("copy.py")
    copy.write_text("one = 1\n")
    files.open(str(copy))
    assert len(runs(link)) == 2


def test_a_file_that_is_gone_or_too_large_is_not_opened(bench, link, files, net, monkeypatch):
    link.get_ready()
    files.open(str(net.with_name("gone.py")))
    assert banner(bench).title == "gone.py was not opened: it cannot be read."
    monkeypatch.setattr(limits, "MAX_FILE_BYTES", 3)
    files.open(str(net))
    assert banner(bench).title == "net.py was not opened: it cannot be read." and not runs(link)


def test_it_can_be_shown_in_the_console_instead(bench, link, files, net):
    link.get_ready()
    wanted = []
    files.cells_wanted.connect(wanted.append)
    files.open(str(net))
    press(banner(bench), "Open in the console")
    assert wanted == [str(net)] and not runs(link)


def test_without_a_path_a_file_is_asked_for(bench, link, files, net):
    link.get_ready()
    files.open()
    assert bench.dialogs.asked == ["Open a Python file"] and banner(bench) is None
    bench.dialogs.path = str(net)
    files.open()
    assert banner(bench) is not None


@pytest.mark.parametrize("name", ["gone.py", "folder", os.fsdecode(b"n\xff.py")])
def test_what_cannot_run_is_told(bench, link, files, tmp_path, name):
    link.get_ready()
    (tmp_path / "folder").mkdir()
    if name.startswith("n"):
        (tmp_path / name).write_text("")
    files.open(str(tmp_path / name))
    assert "was not opened" in banner(bench).title and not runs(link)


def test_without_an_engine_it_can_be_run_later(bench, link, files, net):
    files.run(str(net))
    assert banner(bench).title.startswith("net.py did not run.")
    link.get_ready()
    press(banner(bench), "Run again")
    assert runs(link) == [str(net)]


@pytest.mark.parametrize(
    ("objects", "chosen", "opened"),
    [
        ((CRITERION, LOSS, NET, DATA, HELPER), "Net()", False),
        ((MODEL,), "model", False),
        ((NET, MODEL, MAKE), None, True),
        ((DATA, HELPER), None, False),
        ((DATA, LOSS), "loss", False),
    ],
)
def test_the_only_module_becomes_the_subject(
    bench, link, files, chooser, net, objects, chosen, opened
):
    link.get_ready()
    files.run(str(net), opening=True)
    link.answer(ran(net, *objects))
    expected = FileSubject(str(net), chosen) if chosen else CanvasSubject()
    assert bench.project.subject == expected
    assert chooser.button.menu().isVisible() == opened
    none = not chosen and not opened
    assert (banner(bench) is not None and "no module to work on" in banner(bench).title) == none
    chooser.button.menu().hide()


def test_what_a_file_holds_is_offered_until_the_engine_ends(bench, link, files, chooser, net):
    link.get_ready()
    files.run(str(net))
    link.answer(ran(net, CRITERION, LOSS, NET, DEEP, MAKE, MAIN, MODEL, DATA, HELPER))
    assert bench.project.subject == CanvasSubject()
    others = "Functions of tensors, and modules without parameters"
    shown = [str(net), "Net()", "Deep(…)", "make()", "model", others, "Run net.py again"]
    assert offered(chooser)[1:] == [*shown, "Open a Python file…"]
    pick(chooser, "Net()")
    assert bench.project.subject == FileSubject(str(net), "Net()")
    assert chooser.button.text() == "Subject: net.py: Net()" and need(chooser) == ""
    pick(chooser, "Run net.py again")
    assert runs(link) == [str(net)] * 2
    link.close()
    assert "model" not in offered(chooser) and str(net) not in offered(chooser)
    assert chooser.button.text() == "Subject: net.py: Net()" and need(chooser) == "Run net.py"


def test_words_of_the_chooser_and_of_what_asks_for_arguments(qtbot):
    chooser = SubjectChooser()
    qtbot.addWidget(chooser)
    offer = Offer(FileSubject("net.py", "Deep"), "class Deep", ("width", "depth"))
    chooser.show_offers([Group("net.py", (offer,), again="Run net.py again")])
    chooser.button.menu().aboutToShow.emit()
    chooser.ask_arguments(offer)
    chooser.arguments.hide()
    assert_same_words(chooser, "subject_chooser")


@pytest.mark.parametrize(
    ("text", "shown"), [("n" * 40, "n" * 40), ("n" * 41, "n" * 39 + "…"), ("net", "net")]
)
def test_a_long_title_is_cut_but_told_in_full(chooser, text, shown):
    chooser.show_subject(ConsoleSubject(text))
    assert chooser.button.text() == f"Subject: {shown}"
    assert chooser.button.accessibleName() == f"Subject: {text}"


def test_the_card_for_arguments_has_room_for_a_problem(chooser):
    card = chooser.arguments
    card.ask("Deep", ("width",), QPoint(400, 100))
    assert card.field.cursorPosition() == len("Deep(width=")
    before = card.height()
    card.tell("It is not Python.")
    assert card.height() > before
    card.tell("")
    assert card.height() == before
    card.hide()


def test_the_menu_opens_below_its_button(chooser):
    chooser.open_menu()
    menu = chooser.button.menu()
    assert menu.pos() == chooser.button.mapToGlobal(QPoint(0, chooser.button.height()))
    menu.hide()


def test_arguments_are_asked_for_and_tried_before_they_are_taken(bench, link, files, chooser, net):
    link.get_ready()
    files.run(str(net), opening=True)
    link.answer(ran(net, DEEP))
    card = chooser.arguments
    assert card.isVisible() and card.field.text() == "Deep(width=, depth=)"
    assert bench.project.subject == CanvasSubject()
    card.field.setText("Deep(width=, depth=2)")
    card.field.returnPressed.emit()
    command = link.sent[-1]
    assert isinstance(command, ReadStructureCommand)
    assert command.subject == FileSubject(str(net), "Deep(width=, depth=2)")
    link.fail("It is not Python.", "Write a call.")
    assert card._problem.text() == "It is not Python. Write a call." and card.isVisible()
    assert bench.project.subject == CanvasSubject()
    card.field.setText("Deep(1, depth=2)")
    card.findChild(QPushButton, "arguments_use").click()
    totals = StructureTotals(1, 0, 0, 0, 0, 0)
    link.answer(StructureSnapshot(title="", totals=totals, left=3))
    assert bench.project.subject == CanvasSubject()
    link.answer(StructureSnapshot(title="", totals=totals))
    assert bench.project.subject == FileSubject(str(net), "Deep(1, depth=2)")
    assert not card.isVisible()


def test_an_error_is_shown_with_the_users_lines_and_the_file_can_run_again(
    bench, link, files, chooser, net
):
    link.get_ready()
    files.run(str(net), opening=True)
    lines = 'Traceback (most recent call last):\n  File "net.py", line 3, in <module>\n'
    error = ErrorReport(type="ValueError", message="no", line=3, traceback=f"{lines}ValueError: no")
    link.answer(ErrorSnapshot(command="RunFileCommand", error=error))
    assert banner(bench).title == "net.py stopped at line 3. ValueError: no"
    assert bench.window.said == ["Running net.py …", "net.py stopped."]
    code = banner(bench).findChild(QPlainTextEdit, "banner_code")
    assert code.toPlainText() == f"{lines}ValueError: no"
    assert code.accessibleName() == "Where it stopped"
    assert not files.has_run(str(net)) and not files.is_running(str(net))
    press(banner(bench), "Run again")
    link.answer(ran(net, NET))  # it is still being opened
    assert bench.project.subject == FileSubject(str(net), "Net()")


def test_an_interrupt_and_an_error_of_ours_are_told_in_words(bench, link, files, net):
    link.get_ready()
    files.run(str(net))
    stopped = ErrorReport(type="KeyboardInterrupt", message="")
    link.answer(ErrorSnapshot(command="RunFileCommand", error=stopped))
    assert banner(bench).title == "net.py was stopped while it ran"
    files.run(str(net))
    link.fail("It is not Python source.", "Choose another.")
    assert banner(bench).title == "net.py did not run. It is not Python source. Choose another."


def test_what_it_prints_is_headed_once(bench, link, files, net):
    told = []
    files.prints.connect(told.append)
    files.printed.connect(lambda snapshot: told.append(snapshot.text))
    link.get_ready()
    for _ in range(2):
        files.run(str(net))
        link.answer(OutputSnapshot(stream="stdout", text="a"))
        link.answer(OutputSnapshot(stream="stdout", text="b"))
        link.answer(ran(net))
    assert told == ["net.py", "a", "b"] * 2


@pytest.mark.parametrize("atomic", [False, True])
def test_a_change_of_the_file_is_offered(bench, link, files, chooser, net, qtbot, atomic):
    link.get_ready()
    files.run(str(net), opening=True)
    link.answer(ran(net, NET))
    key = f"changed_{net}"
    for number in range(2):  # the watch goes on after the file was replaced
        if atomic:
            other = net.with_name("net.tmp")
            other.write_text(f"n = {number}\n")
            os.replace(other, net)
        else:
            net.write_text(f"n = {number}\n")
        qtbot.waitUntil(lambda: banner(bench, key) is not None)
        assert banner(bench, key).title == "net.py has changed since it ran"
        assert need(chooser) == "Run net.py again"
        before, subject = len(runs(link)), bench.project.subject
        press(banner(bench, key), "Run net.py again")
        assert len(runs(link)) == before + 1 and need(chooser) == ""
        link.answer(ran(net, MODEL))
        assert banner(bench, key) is None and not files.has_changed(str(net))
        assert need(chooser) == "" and bench.project.subject == subject


def test_a_change_of_an_imported_file_is_offered(bench, link, files, chooser, net, qtbot):
    link.get_ready()
    parts = net.parent / "parts"
    parts.mkdir()
    layers = parts / "layers.py"
    layers.write_text("n = 1\n")
    files.run(str(net), opening=True)
    digest = hashlib.sha256(layers.read_bytes()).hexdigest()
    link.answer(replace(ran(net, NET), imports={str(layers): digest}))
    assert need(chooser) == ""
    layers.write_text("n = 2\n")
    key = f"changed_{net}"
    qtbot.waitUntil(lambda: banner(bench, key) is not None)
    assert banner(bench, key).title == "layers.py has changed since net.py imported it"
    assert need(chooser) == "Run net.py again"
    layers.unlink()  # an editor may be about to write it again
    files.compare()
    assert banner(bench, key) is not None
    layers.write_text("n = 1\n")
    files.compare()
    assert banner(bench, key) is None and need(chooser) == ""


def test_a_change_that_is_taken_back_is_offered_no_more(bench, link, files, net):
    link.get_ready()
    files.run(str(net))
    link.answer(ran(net))
    net.write_text("two = 2\n")
    files.compare()
    assert banner(bench, f"changed_{net}") is not None
    net.write_text("one = 1\n")
    files.compare()
    assert banner(bench, f"changed_{net}") is None
    net.unlink()  # an editor may be about to write it again
    files.compare()
    assert banner(bench, f"changed_{net}") is None


def test_a_project_whose_subject_is_of_a_file_says_what_it_needs(bench, link, files, chooser, net):
    link.get_ready()
    data = net.with_name("data.py")
    data.write_text("x = 1\n")
    objective = Objective(data=f"{data}:x")
    project = edits.set_subject(Project(), FileSubject(str(net), "Net()"))
    project = edits.set_objective(project, objective)
    bench.store.set_project(project)
    assert not runs(link) and need(chooser) == "Run net.py"
    assert "Nothing runs until you say so" in chooser.need.toolTip()
    chooser.findChild(QToolButton, "subject_need").click()
    assert runs(link) == [str(net)] and need(chooser) == "Run data.py"
    link.answer(ran(net, NET, MODEL))
    assert bench.project == project and not chooser.button.menu().isVisible()
    chooser.need.click()
    link.answer(ran(data))
    assert runs(link) == [str(net), str(data)] and need(chooser) == ""


def test_a_subject_of_the_console_needs_the_cells_of_its_project(bench, link, files, chooser):
    link.get_ready()
    wanted = []
    chooser.property("presenter").cells_wanted.connect(lambda: wanted.append(1))
    project = edits.set_subject(Project(), ConsoleSubject("model.body"))
    bench.store.set_project(project)
    assert need(chooser) == ""  # there are no cells that could make it
    bench.store.set_project(edits.record_cell(project, "model = Net()"))
    assert need(chooser) == "Run its cells"
    chooser.need.click()
    assert wanted == [1]
    bench.store.take(VariablesSnapshot(variables=(Variable("model", "module", "Net"),)))
    assert need(chooser) == ""
    for subject in (CanvasSubject(), ConsoleSubject("nn.Linear(3, 2)")):
        bench.store.set_project(replace(bench.project, subject=subject))
        assert need(chooser) == ""


def test_a_file_that_was_replaced_is_still_watched(bench, link, files, net, qtbot):
    link.get_ready()
    files.run(str(net))
    link.answer(ran(net))
    other = net.with_name("net.tmp")
    other.write_text("two = 2\n")
    os.replace(other, net)
    qtbot.waitUntil(lambda: banner(bench, f"changed_{net}") is not None)
    net.write_text("one = 1\n")  # in place: only a watch on the new file sees it
    qtbot.waitUntil(lambda: banner(bench, f"changed_{net}") is None)
