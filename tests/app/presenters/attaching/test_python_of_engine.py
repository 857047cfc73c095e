"""Python files where the engine is on another machine: its files run, with the user's word for what
they hold there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from app.presenters.attaching.engine_files import EngineFiles
from app.presenters.python_files import PythonFiles
from app.presenters.subject import SubjectPresenter
from engine.connecting.engine_place import EnginePlace
from engine.project import edits
from engine.project.subject import FileSubject
from engine.protocol import RunFileCommand
from tests.app.presenters.attaching.conftest import Engine, choose
from widgets.subject.chooser import SubjectChooser

NET = "from torch import nn\n\nclass Net(nn.Module):\n    size = 1\n"


@pytest.fixture
def files(bench, there, qtbot) -> PythonFiles:
    made = PythonFiles(bench, bench.window)
    bench.files.python_chosen.connect(made.open)
    return made


@pytest.fixture
def chooser(bench, files, qtbot) -> SubjectChooser:
    made = SubjectChooser()
    qtbot.addWidget(made)
    made.setProperty("presenter", SubjectPresenter(bench, files, made, bench.window))
    made.show()
    return made


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file; the module that it becomes in this process is forgotten at the end."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    file = tmp_path / "net_there.py"
    file.write_text(NET)
    yield file
    sys.modules.pop("net_there", None)


def buttons(bench, key: str = "python") -> dict[str, QPushButton]:
    banner = bench.window.banners.banner(key)
    return {b.text(): b for b in banner.findChildren(QPushButton)} if banner is not None else {}


def runs(link) -> list[str]:
    return [command.path for command in link.sent if isinstance(command, RunFileCommand)]


def test_a_file_there_is_chosen_runs_and_becomes_the_subject(
    bench, link, there: EngineFiles, engine: Engine, files, chooser, net: Path, monkeypatch
):
    def act(dialog) -> None:
        assert dialog.windowTitle() == "Open a Python file: me@box"
        dialog.view.folder_wanted.emit(str(net.parent))
        engine.work()
        dialog.view.table.selectRow(0)
        dialog.view.button.click()

    # This machine has no such file: whoever looks here sees nothing.
    monkeypatch.setattr("app.presenters.digests.digest_of", lambda path, most: None)
    choose(bench, engine, act)
    files.open()
    engine.work()
    assert not runs(link) and list(buttons(bench))[:1] == ["Run the file"]
    assert "Open in the console" not in buttons(bench)
    words = bench.window.banners.banner("python").text
    assert "with all that you may do on me@box." in words
    buttons(bench)["Run the file"].click()
    engine.work()
    assert runs(link) == [str(net)]
    assert bench.project.subject == FileSubject(str(net), "Net()")
    assert not chooser.need.isVisible()

    # It was agreed to on that machine, with that content, and on no other one.
    files.open(str(net))
    engine.work()
    assert runs(link) == [str(net)] * 2 and not buttons(bench)
    link.place = EnginePlace("ssh other")
    files.open(str(net))
    engine.work()
    assert len(runs(link)) == 2 and buttons(bench)

    link.place = EnginePlace("ssh me@box")
    net.write_text(NET.replace("1", "2"))
    assert not chooser.need.isVisible()
    QGuiApplication.instance().applicationStateChanged.emit(Qt.ApplicationState.ApplicationActive)
    engine.work()
    assert chooser.need.isVisible() and chooser.need.text() == "Run net_there.py again"
    assert "Run net_there.py again" in buttons(bench, f"changed_{net}")
    files.open(str(net))
    engine.work()
    assert len(runs(link)) == 2  # not to this content


def test_a_project_with_a_file_there_runs_it_there(bench, link, engine, files, chooser, net):
    bench.edit("Work on it", lambda p: edits.set_subject(p, FileSubject(str(net), "Net()")))
    assert chooser.need.text() == "Run net_there.py"
    chooser.need.click()
    engine.work()
    assert runs(link) == [str(net)] and not chooser.need.isVisible()


def test_a_file_there_that_cannot_be_read_is_told(bench, link, engine, files, tmp_path):
    files.open(str(tmp_path / "gone.py"))
    engine.work()
    words = "gone.py was not opened: it cannot be read on me@box."
    assert bench.window.banners.banner("python").title == words and not runs(link)


@pytest.mark.parametrize("chosen", [True, False])
def test_a_file_of_this_machine_is_copied_to_where_the_user_says(
    bench, link, engine, files, net, tmp_path, chosen: bool
):
    target = tmp_path / "there" / "copy.py"
    target.parent.mkdir()
    titles = []

    def act(dialog) -> None:
        titles.append(dialog.windowTitle())
        dialog.path = str(target) if chosen else ""

    choose(bench, engine, act)
    bench.files.open(str(net))
    engine.work()
    assert titles == ["Copy net_there.py to run it, without the files beside it: me@box"]
    assert target.exists() == chosen == bool(buttons(bench)) and not runs(link)
    if chosen:
        assert target.read_text() == NET


def test_python_of_the_other_machine_is_opened_from_the_menu(bench, link, engine, files, net):
    choose(bench, engine, lambda dialog: setattr(dialog, "path", str(net)))
    bench.files.open_there()
    engine.work()
    assert "Run the file" in buttons(bench)
