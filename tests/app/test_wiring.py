"""The whole program without an engine: which part hears which signal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QObject, QSettings

from app import application
from app.application import Application, build
from app.presenters.first_steps import FirstStepsPresenter
from app.presenters.model.checker import ModelChecker
from app.presenters.train.pictures.over_time import OverTimePresenter
from app.presenters.train.runs.runs import RunsPresenter
from app.selection.references import Element, Node
from app.settings import Settings
from engine.project import edits, files
from engine.project.document import Project, replace
from engine.project.examples import graph_examples
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    CellSnapshot,
    ErrorReport,
    FileSnapshot,
    HeldSnapshot,
    OutputSnapshot,
    RunCellCommand,
    RunFileCommand,
    StartBackwardCommand,
)
from tests.app.conftest import AnsweringLink, Person
from tests.app.test_application import Layouts, link_of


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))


@pytest.fixture
def program(qtbot, tmp_path, monkeypatch, settings) -> Iterator[Application]:
    monkeypatch.setattr(application, "LayoutWorker", Layouts)
    made = build(AnsweringLink, Person(), settings, tmp_path / "recovery")
    made.window.show()
    made.start()
    made.bench.link.get_ready()
    yield made
    made.window.close()
    made.window.deleteLater()
    made.deleteLater()


class Calls:
    """Notes what is called, in place of doing it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch, self.made = monkeypatch, list[tuple[Any, ...]]()

    def take(self, owner: Any, *names: str) -> None:
        for name in names:
            self._patch.setattr(
                owner, name, lambda *given, _name=name: self.made.append((_name, *given))
            )

    def newest(self) -> tuple[Any, ...]:
        assert self.made, "nothing was called"
        return self.made.pop()


@pytest.fixture
def calls(monkeypatch) -> Calls:
    return Calls(monkeypatch)


def sent(program: Application, kind: type) -> list[Any]:
    return [command for command in link_of(program).sent if isinstance(command, kind)]


def structure_of(program: Application) -> Any:
    """The structure in place of the canvas."""
    bench = program.bench
    bench.store.set_project(edits.set_subject(bench.project, ConsoleSubject("net")))
    return program.workspaces.structure


# -- the pages -------------------------------------------------------------------------------------


OF_TRAIN = (
    "Objective", "Data", "Rates", "Execution", "Holding", "Checks", "Parameters", "Element",
    "Predictions", "Annotations", "Landscape", "Memory", "Ranks", "OverTime", "Runs",
)  # fmt: skip


def test_the_page_of_train_has_each_of_its_presenters(program) -> None:
    program.workspaces.at_train()
    found = [type(child).__name__ for child in program.workspaces.findChildren(QObject)]
    assert [found.count(f"{name}Presenter") for name in OF_TRAIN] == [1] * len(OF_TRAIN)


def test_pages_are_made_at_their_first_visit_once(program) -> None:
    to, window = program.workspaces, program.window
    assert set(window.pages) == {"start", "model"}
    for name in ("tensors", "autograd", "train", "files"):
        assert name not in window.pages
        window.show_workspace(name)
        assert name in window.pages and window.workspace == name
    assert to.at_tensors() is to.tensors and to.at_passes() is to.autograd
    assert len(to.findChildren(ModelChecker)) == 1


def test_a_tensor_of_train_is_shown_in_tensors(program, calls) -> None:
    to = program.workspaces
    to.at_train()
    calls.take(to.tensors, "show_values")
    wanted = Element("lab.logged['x']")
    to.findChild(OverTimePresenter).tensor_wanted.emit(wanted)
    assert calls.newest() == ("show_values", wanted) and program.window.workspace == "tensors"


def test_trained_weights_and_the_model_s_python_are_exported(program, calls) -> None:
    to = program.workspaces
    calls.take(program.export, "open")
    to.at_train().export_requested.emit()
    assert calls.newest() == ("open", "pt")
    to.at_model().page.code.save_requested.emit()
    assert calls.newest() == ("open", "py")


def test_python_that_a_run_names_is_asked_about_as_the_project_s(program, calls) -> None:
    calls.take(program.cells, "ask")
    program.workspaces.at_train()
    program.workspaces.findChild(RunsPresenter).agreement_wanted.emit("This run", len)
    assert calls.newest() == ("ask", "This run", len)


def test_a_kind_of_note_is_muted_where_it_stands(program) -> None:
    to = program.workspaces
    to.at_train().view.findings.muted.emit("mode")
    assert program.bench.settings.muted_advice == ("mode",)
    to.at_tensors().page.console.output.finding_muted.emit("zero_grad")
    assert program.bench.settings.muted_advice == ("mode", "zero_grad")


def test_the_graph_of_a_variable_is_shown_in_autograd(program) -> None:
    to = program.workspaces
    to.at_tensors().page.variables.graph_requested.emit("y")
    assert program.window.workspace == "autograd"
    assert to.autograd.page.currentWidget() is to.autograd.page.steps
    assert sent(program, StartBackwardCommand)[-1].root == "y"


def test_a_structure_leads_to_its_file_its_cells_and_the_end_of_a_line(program, calls) -> None:
    to = program.workspaces
    structure = structure_of(program)
    heard: list[Any] = []
    to.file_wanted.connect(heard.append)
    structure.file_requested.emit("/a/net.py")
    assert heard == ["/a/net.py"]
    assert [each.path for each in sent(program, RunFileCommand)] == ["/a/net.py"]
    calls.take(to.tensors, "run_again")
    structure.cells_requested.emit()
    assert calls.newest() == ("run_again",)


def test_the_error_of_a_line_is_told_beside_it(program) -> None:
    structure = structure_of(program)
    told: list[str] = []
    structure.view.bar.tell = lambda text, role="": told.append(text)
    structure.view.bar.run_requested.emit("net.eval()")
    assert sent(program, RunCellCommand)[-1].source == "net.eval()"
    number = next(each.id for each in sent(program, RunCellCommand))
    error = ErrorReport("NameError", "name 'net' is not defined")
    link_of(program).answer(CellSnapshot(ok=False, error=error), to=number)
    assert len(told) == 1 and "net" in told[0]


def test_first_steps_lead_to_their_workspaces(program, calls) -> None:
    to = program.workspaces
    start = to.at_start()
    start.first_steps_requested.emit()
    assert program.window.workspace == "model"
    steps = to.findChild(FirstStepsPresenter)
    assert program.window.banners.banner("first_steps") is not None
    steps.steps_wanted.emit()
    assert program.window.workspace == "autograd"
    calls.take(to.at_train(), "train")
    program.window.show_workspace("model")
    steps.training_wanted.emit()
    assert calls.newest() == ("train",) and program.window.workspace == "train"


def test_an_example_is_shown_in_the_tab_of_steps(program) -> None:
    to = program.workspaces
    key = next(iter(graph_examples()))
    to.at_trace()
    to.start.example_requested.emit(key)
    assert to.autograd.page.currentWidget() is to.autograd.page.steps


def test_recording_has_one_switch_on_all_pages(program) -> None:
    to = program.workspaces
    page, steps = to.at_tensors().page, to.at_passes().page.steps
    told: list[bool] = []
    views = (page.console, page.storage.recording, steps.recording)
    for view in views:
        view.show_recording = told.append
        view.record_wanted.emit(not program.recording.is_on)
        assert program.recording.is_on == (views.index(view) % 2 == 1)


def test_code_held_in_backward_before_the_page_was_made_is_shown_there(program, calls) -> None:
    held = HeldSnapshot(at="backward", title="<cell 1>", line=2, source="a\nb\n", after="forward")
    link_of(program)._receive(held)
    assert "autograd" not in program.window.pages
    shown = program.workspaces.at_passes().page.steps.own_call
    assert not shown.isHidden()
    link_of(program)._receive(HeldSnapshot())
    assert shown.isHidden()


def test_ranks_are_shown_beside_train(program) -> None:
    to = program.workspaces
    shown: list[Any] = []
    to.at_train()
    to.findChild(OverTimePresenter).show_ranks = lambda *told: shown.append(told)
    to.show_ranks(1, {})
    assert shown == [(1, {})]


# -- the parts of the program ----------------------------------------------------------------------


def test_the_end_of_an_engine_takes_its_nodes_from_the_selection(program) -> None:
    bench = program.bench
    bench.selection.choose(Node(1, 2))
    link_of(program)._receive(HeldSnapshot(at="line", title="cell 1", line=1))
    assert bench.store.held is not None
    link_of(program).ended.emit()
    assert bench.selection.current is None and bench.store.held is None


def test_a_layout_that_fails_is_said(program, monkeypatch) -> None:
    program.bench.layout.failed.emit("It took too long.")
    assert program.window.statusBar().currentMessage() == "It took too long."


def test_the_ways_after_an_engine_was_lost(program, calls) -> None:
    to = program.workspaces
    train = to.at_train()
    calls.take(train, "resume", "restore")
    for signal, name in (
        (program.engine.resume_requested, "resume"), (program.engine.restore_requested, "restore"),
    ):  # fmt: skip
        program.window.show_workspace("model")
        signal.emit()
        assert calls.newest() == (name,) and program.window.workspace == "train"


def test_cells_run_again_in_the_console(program, calls) -> None:
    calls.take(program.workspaces.tensors, "run_again")
    program.cells.again_requested.emit()
    assert calls.newest() == ("run_again",) and program.window.workspace == "tensors"
    program.window.show_workspace("model")
    program.subject.cells_wanted.emit()
    assert calls.newest() == ("run_again",)


def test_a_python_file_prints_in_the_console_and_is_opened_there(program, calls, tmp_path) -> None:
    to, files = program.workspaces, program.python_files
    console = to.tensors.page.console
    calls.take(console, "begin_output", "add_output")
    files.prints.emit("net.py")
    assert calls.newest() == ("begin_output", "net.py")
    output = OutputSnapshot(stream="stdout", text="a")
    files.printed.emit(output)
    assert calls.newest() == ("add_output", output)
    calls.take(to.tensors.console, "open_file")
    files.cells_wanted.emit("/a/net.py")
    assert calls.newest() == ("open_file", "/a/net.py") and program.window.workspace == "tensors"


@pytest.mark.parametrize(
    ("workspace", "opening", "after"),
    [("start", True, "model"), ("start", False, "start"), ("train", True, "train")],
)
def test_a_file_that_was_opened_leaves_the_start_page(
    program, workspace: str, opening: bool, after: str
) -> None:
    program.window.show_workspace(workspace)
    program.python_files.ran.emit(FileSnapshot(path="/a.py", digest="", objects=()), opening)
    assert program.window.workspace == after


def test_a_file_of_tensors_is_loaded_into_the_subject(program, monkeypatch) -> None:
    heard: list[Any] = []
    program.workspaces.weights_wanted.connect(lambda *given: heard.append(given))
    program.workspaces.files.load_requested.emit("/a.pt", "ema.", {"a": "b"})
    assert heard == [("/a.pt", "ema.", {"a": "b"})]
    command = link_of(program).sent[-1]
    assert (command.path, command.group, command.branches) == ("/a.pt", "ema.", {"a": "b"})


# -- beginning and end -----------------------------------------------------------------------------


def test_a_project_is_opened_and_recovered_work_offered(
    qtbot, tmp_path, monkeypatch, settings
) -> None:
    monkeypatch.setattr(application, "LayoutWorker", Layouts)
    offered: list[Any] = []
    monkeypatch.setattr(application, "find_recoveries", lambda folder: [folder])
    made = build(AnsweringLink, Person(), settings, tmp_path / "recovery")
    made.frame.offer = offered.append
    path = str(tmp_path / "net.tlab")
    files.save(replace(Project(), view=replace(Project().view, workspace="model")), path)
    made.open(path)
    assert made.bench.files.path == path and made.window.workspace == "model"
    assert offered == [[tmp_path / "recovery"]]
    made.start()
    assert made.bench.link.state == "starting" and len(offered) == 1
    made.window.close()
    made.window.deleteLater()
    made.deleteLater()


def test_a_window_of_a_file_shows_start_first_only_without_a_project(
    qtbot, tmp_path, monkeypatch, settings
) -> None:
    monkeypatch.setattr(application, "LayoutWorker", Layouts)
    made = build(AnsweringLink, Person(), settings, tmp_path / "recovery")
    chosen: list[str] = []
    made.bench.files.python_chosen.connect(chosen.append)
    file = tmp_path / "net.py"
    file.write_text("x = 1\n")
    made.start(str(file))
    assert chosen == [str(file)] and made.window.workspace == "start"
    made.window.close()
    made.window.deleteLater()
    made.deleteLater()


def test_a_process_that_was_called_is_used(program, calls) -> None:
    calls.take(program.attaching, "use")
    calls.take(link_of(program), "start")
    program.start(attached=("call", "way"))
    assert calls.made == [("use", "call", "way")]


def test_only_edits_are_put_aside_and_not_weights(program, monkeypatch) -> None:
    monkeypatch.setattr(type(program.bench.weights), "modified", True)
    program.autosave.write()
    assert not program.autosave.file.exists()
    program.bench.edit("Add", lambda p: edits.add_block(p, "nn.ReLU", 0, 0)[0])
    program.autosave.write()
    assert program.autosave.file.exists()


def test_the_end_of_the_window_ends_its_parts(program, calls, settings) -> None:
    program.workspaces.at_model().page.docks()[0].hide()
    program.bench.store.set_project(edits.set_subject(program.bench.project, ConsoleSubject("n")))
    calls.take(program.ranks, "close")
    calls.take(program.bench.layout, "close")
    program.close()
    assert sorted(name for name, *_ in calls.made) == ["close", "close"]
    assert program.bench.link.state == "lost" and not settings.bytes("model_docks").isEmpty()
    assert program.bench.history.stack.signalsBlocked()
    program.close()  # twice is no error
