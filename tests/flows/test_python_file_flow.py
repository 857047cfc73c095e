"""A Python file of the user's in the real program: dropped, run, chosen, changed, run again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QPushButton

from app.application import Application
from engine.project import edits, files
from engine.project.document import Project
from engine.project.subject import CanvasSubject, FileSubject
from tests.gestures import Answers, started

pytestmark = pytest.mark.one_program

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, hidden={hidden}):
        super().__init__()
        self.layer = nn.Linear(4, hidden)

    def forward(self, x):
        return self.layer(x)

print("made", Net().layer.weight.shape)
"""


@pytest.fixture
def net(tmp_path, monkeypatch) -> Iterator[Path]:
    """A file; the module that it becomes in this process is forgotten at the end."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    file = tmp_path / "net.py"
    file.write_text(NET.format(hidden=8))
    yield file
    sys.modules.pop("net", None)


def drop(program: Application, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    none = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPointF(5, 5).toPoint(), copy, data, left, none)
    QApplication.sendEvent(program.window, enter)
    QApplication.sendEvent(program.window, QDropEvent(QPointF(5, 5), copy, data, left, none))


def press(program: Application, name: str, key: str = "python") -> None:
    shown = program.window.banners.banner(key)
    assert shown is not None
    shown.findChild(QPushButton, f"banner_{name}").click()
    program.bench.link.drain()


def output(program: Application) -> str:
    return program.workspaces.tensors.page.console.output.toPlainText()


def test_a_file_dropped_on_the_window_runs_when_the_user_says_so(program, net, qtbot):
    drop(program, net)
    program.bench.link.drain()
    assert program.bench.project.subject == CanvasSubject()
    assert "tensors" not in program.window.pages
    press(program, "run_the_file")
    assert program.bench.project.subject == FileSubject(str(net), "Net()")
    assert program.window.workspace == "model"
    assert output(program).split("\n")[:2] == ["net.py prints:", "made torch.Size([8, 4])"]
    net.write_text(NET.format(hidden=5))
    qtbot.waitUntil(lambda: program.window.subject_chooser.need.isVisible())
    press(program, "run_net.py_again", f"changed_{net}")
    assert output(program).split("\n")[2:4] == ["net.py prints:", "made torch.Size([5, 4])"]
    assert not program.window.subject_chooser.need.isVisible()


def test_the_console_takes_it_cell_by_cell_instead(program, tmp_path):
    path = tmp_path / "cells.py"
    path.write_text("# %% one\nx = 1\n# %% two\ny = 2\n")
    assert not program.bench.files.open(str(path))
    press(program, "open_in_the_console")
    console = program.workspaces.at_tensors().page.console
    assert console.input.source() == "# %% one\nx = 1"
    assert not console.busy


def test_a_file_on_the_command_line_is_asked_about_and_later_runs_at_once(
    forked_processes, qtbot, net, tmp_path
):
    from app.processes.inline_link import InlineLink

    with started(InlineLink, Answers(), tmp_path) as program:
        program.bench.link.close()
        program.start(str(net))
        press(program, "run_the_file")
        assert program.bench.project.subject == FileSubject(str(net), "Net()")
    with started(InlineLink, Answers(), tmp_path) as program:
        program.bench.link.close()
        program.start(str(net))
        program.bench.link.drain()
        assert program.window.banners.banner("python") is None
        assert program.bench.project.subject == FileSubject(str(net), "Net()")


def test_an_error_shows_the_lines_of_the_user_only(program, net):
    net.write_text("def make():\n    return [1][4]\n\nmodel = make()\n")
    program.python_files.run(str(net), opening=True)
    program.bench.link.drain()
    banner = program.window.banners.banner("python")
    assert banner.title == "net.py stopped at line 2. IndexError: list index out of range"
    shown = banner.findChild(QPlainTextEdit, "banner_code").toPlainText()
    assert shown.startswith(f'Traceback (most recent call last):\n  File "{net}", line 4')
    assert "engine" not in shown
    net.write_text(NET.format(hidden=2))
    press(program, "run_again")
    assert program.bench.project.subject == FileSubject(str(net), "Net()")


def test_a_project_that_names_a_file_runs_nothing_until_the_user_says_so(program, net, tmp_path):
    mark = tmp_path / "ran"
    net.write_text(f"{NET.format(hidden=3)}\nopen({str(mark)!r}, 'w').close()\n")
    project = edits.set_subject(Project(), FileSubject(str(net), "Net()"))
    project = edits.add_block(project, "nn.Linear", 0, 0)[0]  # so that a checkpoint is looked for
    path = tmp_path / "work.tlab"
    files.save(project, path)
    assert program.bench.files.open(str(path))
    for show in ("train", "model", "autograd"):
        program.window.show_workspace(show)
        program.bench.link.drain()
    assert not mark.exists()
    need = program.window.subject_chooser.need
    assert need.isVisible() and need.text() == "Run net.py"
    need.click()
    program.bench.link.drain()
    assert mark.exists() and not need.isVisible()
    assert program.bench.project.subject == project.subject


def test_arguments_of_a_class_are_tried_in_the_engine(program, net):
    net.write_text(NET.format(hidden=3).replace("hidden=3", "hidden").replace("Net()", "Net(1)"))
    program.python_files.run(str(net), opening=True)
    program.bench.link.drain()
    card = program.window.subject_chooser.arguments
    for written, problem in (
        ("Net(hidden=)", "is not a Python expression"),
        ("Net(hidden='x')", "TypeError"),
        ("Net(hidden=7)", ""),
    ):
        card.field.setText(written)
        card.field.returnPressed.emit()
        program.bench.link.drain()
        assert problem in card._problem.text()
        assert card.isVisible() == bool(problem)
    assert program.bench.project.subject == FileSubject(str(net), "Net(hidden=7)")


def test_weights_dropped_on_the_window_are_loaded_into_the_subject(program, net, tmp_path):
    program.python_files.run(str(net), opening=True)
    program.bench.link.drain()
    weights = {"module.layer.weight": torch.ones(8, 4), "module.layer.bias": torch.zeros(8)}
    torch.save(weights, tmp_path / "w.pt")
    drop(program, tmp_path / "w.pt")
    program.bench.link.drain()
    program.workspaces.files.view.load.click()
    program.bench.link.drain()
    panel = program.weights.panel
    assert panel.title.text() == "w.pt: 2 of 2 tensors of net.py: Net()" and panel.isVisible()
    panel.load.click()
    program.bench.link.drain()
    assert panel.title.text() == "w.pt: 2 of 2 tensors loaded into net.py: Net()"
    program.export.export("pt", str(tmp_path / "out.pt"))
    program.bench.link.drain()
    written = torch.load(tmp_path / "out.pt")
    assert torch.equal(written["layer.weight"], torch.ones(8, 4))
    assert not program.bench.weights.modified  # those of the canvas are as they were


def test_a_file_that_does_not_end_is_stopped_and_the_engine_goes_on(real_program, net, qtbot):
    program = real_program
    net.write_text('print("started", flush=True)\nwhile True:\n    pass\n')
    program.python_files.run(str(net), opening=True)
    qtbot.waitUntil(lambda: "tensors" in program.window.pages and "started" in output(program))
    program.bench.actions["engine.interrupt"].trigger()
    qtbot.waitUntil(lambda: program.window.banners.banner("python") is not None, timeout=20_000)
    assert program.window.banners.banner("python").title == "net.py was stopped while it ran"
    net.write_text(NET.format(hidden=2))
    program.window.banners.banner("python").findChild(QPushButton, "banner_run_again").click()
    wanted = FileSubject(str(net), "Net()")
    qtbot.waitUntil(lambda: program.bench.project.subject == wanted, timeout=20_000)
