"""The whole program without an engine: what each action and each signal between parts leads to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject, QSettings, Signal
from PySide6.QtWidgets import QApplication

from app import application
from app.application import Application, build
from app.selection.references import Blocks
from app.settings import Settings
from engine.project import edits
from engine.project.examples import graph_examples, mistakes
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    Finding,
    HeldSnapshot,
    LoopSnapshot,
    OpenArtifactCommand,
    RunCellCommand,
    StepBackwardSignal,
    StepColumns,
)
from tests.app.conftest import AnsweringLink, Person

WORKSPACES = ("start", "tensors", "model", "autograd", "train", "files")


class Layouts(QObject):
    """Lays out nothing: no process is started."""

    failed = Signal(str)

    def submit(self, *_arguments, **_calls) -> None: ...

    def cancel(self, slot: str) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def program(qtbot, tmp_path, monkeypatch) -> Iterator[Application]:
    monkeypatch.setattr(application, "LayoutWorker", Layouts)
    settings = Settings(QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))
    made = build(AnsweringLink, Person(), settings, tmp_path / "recovery")
    made.window.show()
    made.start()
    made.bench.link.get_ready()
    yield made
    made.window.close()
    made.window.deleteLater()
    made.deleteLater()


def link_of(program: Application) -> AnsweringLink:
    assert isinstance(program.bench.link, AnsweringLink)
    return program.bench.link


def cells(program: Application) -> list[str]:
    """The sources that the console was to run."""
    sent = link_of(program).sent
    return [command.source for command in sent if isinstance(command, RunCellCommand)]


def loop(reply_to: int) -> LoopSnapshot:
    return LoopSnapshot(
        run="loop", state="running", step=1, steps_per_second=1.0, steps=StepColumns(),
        device="cpu", title="<cell 1>", reply_to=reply_to,
    )  # fmt: skip


def test_it_starts_with_the_start_page_and_the_canvas_ready(program):
    assert program.window.workspace == "start"
    assert list(program.window.pages) == ["start", "model"]
    assert program.bench.link.state == "ready"


# -- actions ---------------------------------------------------------------------------------------

LEADS_TO = {
    "view.start": "start",
    "view.tensors": "tensors",
    "view.model": "model",
    "view.autograd": "autograd",
    "view.train": "train",
    "view.files": "files",
    "file.attach": "start",
    "tensors.console": "tensors",
    "tensors.create": "tensors",
    "tensors.show": "tensors",
    "autograd.start": "autograd",
    "autograd.start_backward": "autograd",
    "train.check": "train",
    "train.start": "train",
    "train.resume": "train",
}


@pytest.mark.parametrize("action", LEADS_TO)
def test_an_action_shows_its_workspace(program, action):
    program.window.show_workspace("files" if action != "view.files" else "model")
    program.bench.actions[action].trigger()
    assert program.window.workspace == LEADS_TO[action]


def test_the_actions_of_the_tensors_workspace_lead_to_its_parts(program):
    page, act = program.workspaces.at_tensors().page, program.bench.actions
    program.window.activateWindow()
    page.console_dock.hide()
    page.create_dock.hide()
    act["tensors.console"].trigger()
    assert page.console_dock.isVisible() and page.console.isAncestorOf(program.window.focusWidget())
    act["tensors.create"].trigger()
    assert page.create_dock.isVisible() and page.create_form.factory_box.hasFocus()
    act["tensors.show"].trigger()
    assert page.bar.expression.hasFocus()


def test_panels_fold_on_their_own_side(program):
    page, act = program.workspaces.at_model().page, program.bench.actions
    sides = {dock: page.dockWidgetArea(dock).name.lower() for dock in page.docks()}
    for side in ("left", "right"):
        act[f"view.fold_{side}"].trigger()
        hidden = {sides[dock] for dock in page.docks() if dock.isHidden()}
        assert hidden == {f"{side}dockwidgetarea"}
        act[f"view.fold_{side}"].trigger()
        assert not any(dock.isHidden() for dock in page.docks())


def test_the_canvas_is_edited_by_actions(program):
    act, store = program.bench.actions, program.bench.store
    program.window.show_workspace("model")
    program.window.block_wanted.emit("nn.Linear")
    assert [block.kind for block in store.project.model.blocks] == ["nn.Linear"]
    for action, count in (
        ("edit.select_all", 1),
        ("edit.duplicate", 2),
        ("edit.delete", 1),
        ("edit.select_all", 1),
        ("edit.copy", 1),
        ("edit.paste", 2),
        ("edit.select_all", 2),
        ("edit.cut", 0),
        ("edit.undo", 2),
        ("edit.redo", 0),
    ):
        act[action].trigger()
        assert len(store.project.model.blocks) == count, action


def test_a_block_from_the_command_palette_comes_to_the_model_workspace(program):
    program.window.block_wanted.emit("nn.ReLU")
    assert program.window.workspace == "model"
    assert [block.kind for block in program.bench.project.model.blocks] == ["nn.ReLU"]


@pytest.mark.parametrize("choice", ["light", "dark", "system"])
def test_the_theme_is_chosen_by_an_action(program, qapp, choice):
    from app.window.new_window import apply_theme

    program.bench.actions[f"view.theme_{choice}"].trigger()
    assert program.bench.settings.theme == choice
    apply_theme("light")


# -- cells, examples, mistakes ---------------------------------------------------------------------


def test_the_start_page_leads_to_examples_and_mistakes(program):
    start, to = program.workspaces.at_start(), program.workspaces
    key, example = list(graph_examples().items())[1]
    start.way_chosen.emit("autograd", key)
    assert program.window.workspace == "autograd"
    assert to.autograd.page.currentWidget() is to.autograd.page.steps
    assert [each for each in link_of(program).sent if getattr(each, "source", "") == example.code]
    to.at_trace()
    key = list(mistakes())[1]
    program.window.show_workspace("start")
    start.way_chosen.emit("mistakes", key)
    assert program.window.workspace == "autograd"
    assert to.autograd.page.currentWidget() is to.autograd.page.mistakes
    assert to.autograd.page.mistakes._mistake.key == key
    assert cells(program) == []  # nothing runs


def test_a_variable_of_a_file_is_made_in_the_console_and_selected(program):
    program.workspaces.files.cell_requested.emit("w = lab.open('a.pt')['w']", "w")
    assert cells(program) == ["w = lab.open('a.pt')['w']"]
    assert program.window.workspace == "tensors"
    assert program.workspaces.tensors.expression == "w"


def test_a_line_of_the_structure_runs_in_the_console_and_its_data_is_named_in_train(program):
    structure = program.workspaces.structure
    structure.cell_requested.emit("net.eval()")
    assert cells(program) == ["net.eval()"]
    program.bench.store.set_project(edits.set_subject(program.bench.project, ConsoleSubject("net")))
    structure.data_requested.emit()
    assert program.window.workspace == "train"


def test_the_place_of_the_canvas_is_taken_by_the_structure_of_code(program):
    bench, to, stack = program.bench, program.workspaces, program.window.stack
    program.window.show_workspace("model")
    assert stack.currentWidget() is to.model.page
    canvas = bench.project
    bench.store.set_project(edits.set_subject(canvas, ConsoleSubject("net")))
    assert stack.currentWidget() is to.structure.view
    bench.store.set_project(canvas)
    assert stack.currentWidget() is to.model.page


# -- files -----------------------------------------------------------------------------------------


def opened(program: Application) -> list[str]:
    sent = link_of(program).sent
    return [command.path for command in sent if isinstance(command, OpenArtifactCommand)]


def test_files_of_tensors_are_opened_in_files(program):
    program.bench.files.artifact_chosen.emit("/here/a.pt")
    assert opened(program) == ["/here/a.pt"]
    program.window.pair_dropped.emit("/here/b.pt", "/here/c.pt")
    assert opened(program) == ["/here/a.pt", "/here/b.pt"]
    assert program.workspaces.files._other == "/here/c.pt"
    program.window.show_workspace("start")
    program.workspaces.files.opened.emit()
    assert program.window.workspace == "files"
    program.workspaces.files.blocks_made.emit()
    assert program.window.workspace == "model"


def test_the_program_of_a_file_becomes_the_subject(program):
    program.workspaces.files.work_requested.emit("/here/net.pt2")
    assert program.bench.project.subject.path == "/here/net.pt2"
    assert program.window.workspace == "model"


# -- from one view to another ----------------------------------------------------------------------


def test_the_ways_from_what_is_selected_are_a_menu(program, monkeypatch):
    bench, said = program.bench, []
    monkeypatch.setattr(program.window, "say", said.append)
    bench.actions["view.show_in"].trigger()
    assert said == ["No other view shows what is selected."]
    program.window.block_wanted.emit("nn.Linear")
    block = bench.project.model.blocks[0].id
    program.window.show_workspace("train")
    bench.selection.choose(Blocks((block,)), "elsewhere")
    bench.actions["view.show_in"].trigger()
    menu = QApplication.activePopupWidget()
    ways = ["&Model", "&Code", "Autograd &graph of a new pass"]
    assert [action.text() for action in menu.actions()] == ways
    menu.actions()[0].trigger()
    menu.close()
    assert len(said) == 1 and program.window.workspace == "model"
    bench.actions["view.back"].trigger()


# -- loops, findings, code that is held ------------------------------------------------------------


def test_a_loop_of_a_cell_is_told_once_where_train_is_not_seen(program, monkeypatch):
    said = []
    monkeypatch.setattr(program.window, "say", said.append)
    link_of(program)._receive(loop(5))
    assert said == ["Train shows the loop of your code."] and "train" in program.window.pages
    link_of(program)._receive(loop(5))
    assert len(said) == 1
    link_of(program)._receive(loop(6))
    assert len(said) == 2
    program.window.show_workspace("train")
    link_of(program)._receive(loop(7))
    assert len(said) == 2


def test_a_finding_stands_beside_its_run_or_in_the_console(program):
    to = program.workspaces
    program.workspaces.drop_findings("zero_grad")  # no page has any
    assert list(program.window.pages) == ["start", "model"]
    finding = Finding("zero_grad", "Gradients add up.", ("w: 3",), "optimizer.zero_grad()")
    to.show_finding(finding, beside_run=True)
    assert "train" in vars(to) and "tensors" not in vars(to)
    to.show_finding(finding, beside_run=False)

    def shown() -> tuple[bool, int]:
        notes = to.tensors.page.console.output.notes()
        return bool(to.train.view.findings.notes()), len(notes)

    assert shown() == (True, 1)
    to.drop_findings("mode")
    assert shown() == (True, 1)
    to.drop_findings("zero_grad")
    assert shown() == (False, 0)


@pytest.mark.parametrize("after", ["", "after its forward pass"])
def test_code_that_is_held_in_its_backward_is_shown_in_autograd(program, after):
    """A step of Train that is held there stays where it is."""
    program.window.show_workspace("train")
    held = HeldSnapshot(at="backward", title="<cell 1>", line=2, source="a\nb\n", after=after)
    link_of(program)._receive(held)
    assert program.window.workspace == ("train" if after else "autograd")


def test_each_switch_holds_every_backward(program):
    to, action = program.workspaces, program.bench.actions["autograd.own_backward"]
    to.at_train()
    to.at_passes()
    switches = [to.train.view.bar.own_backward, to.autograd.page.steps.roots.own_backward]
    for press in (*(switch.click for switch in switches), action.trigger):
        before = action.isChecked()
        press()
        on = not before
        assert [switch.isChecked() for switch in switches] == [on, on]
        assert action.isChecked() == on
        assert link_of(program).signals[-1] == StepBackwardSignal(on=on)


def test_a_switch_that_is_on_is_so_on_a_page_that_is_made_later(program):
    program.bench.actions["autograd.own_backward"].trigger()
    assert program.workspaces.at_train().view.bar.own_backward.isChecked()
    assert program.workspaces.at_passes().page.steps.roots.own_backward.isChecked()


def test_the_keys_of_steps_go_to_the_trace_only_while_it_is_seen(program):
    act, to = program.bench.actions, program.workspaces

    def owner() -> str:
        keys = {name: act[name].isEnabled() for name in ("trace.over", "autograd.step")}
        assert sum(keys.values()) == 1
        return next(name for name, on in keys.items() if on)

    assert act["trace.over"].shortcut() == act["autograd.step"].shortcut()
    assert owner() == "autograd.step"
    to.at_trace()
    assert owner() == "trace.over"
    program.window.show_workspace("model")
    assert owner() == "autograd.step"
    program.window.show_workspace("autograd")
    assert owner() == "trace.over"
    to.at_passes()
    assert owner() == "autograd.step"


# -- what is remembered ----------------------------------------------------------------------------


def test_columns_and_the_rarer_tools_are_remembered(program):
    settings, to = program.bench.settings, program.workspaces
    to.remember_panels()
    assert not settings.bytes("autograd_forward_columns")
    page = to.at_passes().page
    page.steps.bar.more_toggled.emit(True)
    assert settings.autograd_more
    to.remember_panels()
    for mode, state in page.steps.columns.states().items():
        assert settings.bytes(f"autograd_{mode}_columns") == state
    assert settings.bytes("model_docks") == to.model.page.dock_state()


def test_files_that_are_dropped_on_a_picture_reach_the_window(program):
    to = program.workspaces
    views = (
        to.at_model().page.canvas,
        to.at_passes().page.steps.graph,
        to.at_files().view.calls.view,
    )
    assert not any(view.acceptDrops() or view.viewport().acceptDrops() for view in views)


def test_the_engine_ends_with_the_window_and_its_file_of_recovery_goes(program, tmp_path):
    program.bench.edit("Add", lambda p: edits.add_block(p, "nn.ReLU", 0, 0)[0])
    program.autosave.write()
    assert list((tmp_path / "recovery").glob("*.recovery"))
    program.window.close()
    assert program.bench.link.state == "lost"
    assert not list((tmp_path / "recovery").glob("*.recovery"))
