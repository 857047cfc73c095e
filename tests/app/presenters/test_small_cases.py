"""The less usual cases of Export, the subject, the first steps, Python files and the window."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QLockFile
from PySide6.QtWidgets import QPushButton

from app.autosave import Autosave, Recovery
from app.presenters.export import ExportPresenter
from app.presenters.first_steps import FirstStepsPresenter
from app.presenters.python_files import PythonFiles
from app.presenters.show_in import ShowIn
from app.presenters.subject import SubjectPresenter
from app.presenters.weights import WeightsPresenter
from app.presenters.window import WindowPresenter
from app.window.main_window import MainWindow
from engine.project import edits
from engine.project.document import Project, replace
from engine.project.subject import FileSubject, Objective
from engine.protocol import (
    ErrorReport,
    ErrorSnapshot,
    ExampleSnapshot,
    ExportCommand,
    ExportPlanSnapshot,
    FileObject,
    FileSnapshot,
    FitSnapshot,
    LoadWeightsCommand,
    PlanExportCommand,
    ReadStructureCommand,
    RunFileCommand,
    ShowSubjectCommand,
    Variable,
    VariablesSnapshot,
)
from widgets.subject.chooser import SubjectChooser

PLAN = ExportPlanSnapshot(
    title="Canvas", tensors=2, float_bytes={4: 40}, other_bytes=0, refusals={}
)


def asked(link: Any, kind: type) -> list[Any]:
    return [command for command in link.sent if isinstance(command, kind)]


def press(banner: Any, text: str) -> None:
    next(b for b in banner.findChildren(QPushButton) if b.text() == text).click()


# -- export ----------------------------------------------------------------------------------------


@pytest.fixture
def export(bench, link) -> ExportPresenter:
    link.get_ready()
    return ExportPresenter(bench, bench.window)


def test_an_export_under_way_is_shown_as_it_is(export, link) -> None:
    export.export("pt", "/a.pt")
    export.dialog.hide()
    export.open("onnx")
    assert export.dialog.isVisible() and export.dialog.view.formats.chosen == "pt"
    assert asked(link, PlanExportCommand) == []


def test_only_a_script_is_exported_with_fresh_weights(export, link) -> None:
    for form in ("script", "py"):
        export.export(form, f"/a/{form}")
    assert [command.fresh for command in asked(link, ExportCommand)] == [True, False]
    export.export("onnx", "/a.onnx", opset=18)
    assert asked(link, ExportCommand)[-1].opset == 18


def test_without_an_engine_the_dialog_says_why_it_has_no_plan(export, link) -> None:
    link.close()
    export.open()
    view = export.dialog.view
    assert view.told.text() == link.unsent and not view.export.isEnabled()


@pytest.mark.parametrize(
    ("change", "plans"),
    [
        ({"objective": Objective("d")}, 2),
        ({"name": "other"}, 2),
        ({"model": edits.add_block(Project(), "nn.ReLU", 0, 0)[0].model}, 2),
        ({"training": replace(Project().training, seed=5)}, 1),
    ],
)
def test_the_plan_follows_what_is_exported(export, bench, link, change: dict, plans: int) -> None:
    export.open("onnx")
    link.answer(PLAN)
    bench.store.set_project(replace(bench.project, **change))
    assert len(asked(link, PlanExportCommand)) == plans


def test_while_it_exports_no_other_plan_is_made(export, bench, link) -> None:
    export.export("pt", "/a.pt")
    bench.store.set_project(replace(bench.project, name="other"))
    assert asked(link, PlanExportCommand) == []


def test_an_engine_that_ends_without_an_export_changes_no_words(export, link) -> None:
    link.close()  # no dialog was made
    link.get_ready()
    export.open("pt")
    link.answer(PLAN)
    before = export.dialog.view.told.text()
    link.close()
    assert export.dialog.view.told.text() == before


def test_the_dialog_goes_with_the_project(export, bench) -> None:
    export.open("pt")
    bench.files.opened.emit()
    assert not export.dialog.isVisible()


# -- the subject -----------------------------------------------------------------------------------


@pytest.fixture
def files(bench, link) -> PythonFiles:
    link.get_ready()
    return PythonFiles(bench, bench.window)


@pytest.fixture
def chooser(bench, files, qtbot) -> SubjectChooser:
    chooser = SubjectChooser()
    qtbot.addWidget(chooser)
    SubjectPresenter(bench, files, chooser, bench.window)
    chooser.show()
    return chooser


def test_the_engine_is_told_of_another_subject_or_seed_only(bench, link, chooser) -> None:
    subject = FileSubject("/x.pt2", "model")
    training = replace(bench.project.training, seed=bench.project.training.seed + 1)
    for change, told in (
        ({"name": "other"}, 0),
        ({"subject": subject}, 1),
        ({"training": training}, 2),
        ({"training": replace(training, epochs=50)}, 2),
        ({"objective": Objective("d")}, 2),
    ):
        bench.store.set_project(replace(bench.project, **change))
        assert len(asked(link, ShowSubjectCommand)) == told
    assert asked(link, ShowSubjectCommand)[-1].subject == subject


def test_variables_of_an_example_are_no_subjects(bench, chooser) -> None:
    model = Variable("model", "module", "Net")
    bench.store.take(ExampleSnapshot(variables=(model,)))
    chooser.button.menu().aboutToShow.emit()
    assert "model" not in [action.text() for action in chooser.button.menu().actions()]


def test_a_class_that_raises_says_its_error_beside_its_arguments(
    bench, link, files, chooser, tmp_path
) -> None:
    net = tmp_path / "net.py"
    net.write_text("x = 1\n")
    files.run(str(net), opening=True)
    deep = FileObject("Deep", "class", "Deep", ("width",))
    digest = hashlib.sha256(net.read_bytes()).hexdigest()
    link.answer(FileSnapshot(path=str(net), digest=digest, objects=(deep,)))
    card = chooser.arguments
    card.field.setText("Deep(0)")
    card.field.returnPressed.emit()
    error = ErrorReport("ValueError", "width is 0.", "Raise it.")
    link.answer(ErrorSnapshot(command="ReadStructureCommand", error=error))
    assert card._problem.text() == "ValueError: width is 0. Raise it."
    link.close()
    card.field.returnPressed.emit()
    assert card._problem.text() == link.unsent
    assert len(asked(link, ReadStructureCommand)) == 1
    card.hide()


# -- the first steps -------------------------------------------------------------------------------


@pytest.fixture
def steps(bench, link) -> FirstStepsPresenter:
    link.get_ready()
    presenter = FirstStepsPresenter(bench, bench.window)
    presenter.begin()
    return presenter


def banner(bench: Any, key: str = "first_steps") -> Any:
    return bench.window.banners.banner(key)


def test_another_project_ends_the_first_steps(bench, steps) -> None:
    bench.files.new()
    assert banner(bench) is None


def test_a_banner_that_was_closed_stays_closed(bench, link, steps, training_snapshot) -> None:
    press(banner(bench), "Next: step")
    bench.window.banners.dismiss("first_steps")
    link.fail("No.", to=1)
    bench.store.take(training_snapshot(state="finished"))
    assert banner(bench) is None


def test_without_an_engine_a_step_can_be_tried_again(bench, link, steps) -> None:
    link.close()
    press(banner(bench), "Next: step")
    assert banner(bench).text == link.unsent
    link.get_ready()
    press(banner(bench), "Try again")
    assert banner(bench).text == "The batch is on its way to the first block."


# -- python files ----------------------------------------------------------------------------------


@pytest.fixture
def net(tmp_path: Path) -> Path:
    file = tmp_path / "net.py"
    file.write_text("one = 1\n")
    return file


def ran(file: Path) -> FileSnapshot:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return FileSnapshot(path=str(file), digest=digest, objects=())


def test_the_dialog_begins_where_the_project_is(bench, files, tmp_path, monkeypatch) -> None:
    started: list[str] = []
    bench.dialogs.open_path = lambda parent, title, start, name_filter: started.append(start) or ""
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    files.open()
    bench.files.path = str(tmp_path / "a" / "net.tlab")
    files.open()
    assert started == [str(tmp_path / "home"), str(tmp_path / "a")]


def test_a_file_goes_with_its_engine_and_so_does_what_was_said_of_it(
    bench, link, files, net
) -> None:
    changed: list[bool] = []
    files.changed.connect(lambda: changed.append(True))
    files.run(str(net))
    link.answer(ran(net))
    assert bench.window.said == ["Running net.py …", "net.py has run."]
    net.write_text("two = 2\n")
    files.compare()
    assert files.has_run(str(net)) and files.has_changed(str(net))
    assert banner(bench, f"changed_{net}") is not None
    files.run(str(net))
    assert files.is_running(str(net)) and banner(bench, f"changed_{net}") is None
    before = len(changed)
    link.close()
    assert not (files.has_run(str(net)) or files.has_changed(str(net)))
    assert not files.is_running(str(net)) and len(changed) > before
    files.compare()
    assert banner(bench, f"changed_{net}") is None


def test_an_error_says_its_line_if_it_has_one_and_what_to_try(bench, link, files, net) -> None:
    files.run(str(net))
    error = ErrorReport("ValueError", "no", "Try 1.", traceback="")
    link.answer(ErrorSnapshot(command="RunFileCommand", error=error))
    assert (banner(bench, "python").title, banner(bench, "python").text) == (
        "net.py stopped. ValueError: no", "Try 1.",
    )  # fmt: skip
    files.run(str(net))
    link.fail("It is not Python source.", "Choose another.")
    assert banner(bench, "python").text == ""  # the title has it


def test_a_file_that_runs_again_drops_the_answers_to_its_first_run(link, files, net) -> None:
    told: list[bool] = []
    files.ran.connect(lambda snapshot, opening: told.append(opening))
    files.run(str(net), opening=True)
    files.run(str(net))
    first, second = asked(link, RunFileCommand)
    link.answer(ran(net), to=first.id)
    assert told == []
    link.answer(ran(net), to=second.id)
    assert told == [False]


# -- the window ------------------------------------------------------------------------------------


def test_each_window_s_recovered_work_has_a_banner(bench, qtbot, tmp_path: Path) -> None:
    window = MainWindow()
    qtbot.addWidget(window)
    desk = replace(bench, window=window, actions=window.actions_table)
    autosave = Autosave(desk.store, lambda: False, str, tmp_path / "kept")
    presenter = WindowPresenter(desk, autosave, window)
    left = Project(name="left")
    for _ in range(2):
        left = edits.add_block(left, "nn.ReLU", 0, 0)[0]
    recoveries = []
    for number in range(2):
        file = tmp_path / f"{number}.recovery"
        file.write_text("{}")
        lock = QLockFile(str(tmp_path / f"{number}.lock"))
        recoveries.append(Recovery(file, left, "", datetime(2026, 3, 4, 5, 6, 7), lock))
    presenter.offer(recoveries)
    for number in range(2):
        shown = window.banners.banner(f"recovery_{number}")
        assert shown is not None and shown.text.startswith("2 blocks, saved 04 Mar 2026")
    second = window.banners.banner("recovery_1")
    press(second, "Discard")
    assert [each.file.exists() for each in recoveries] == [True, False]


# -- weights and ways ------------------------------------------------------------------------------


def test_what_fits_is_loaded_by_the_same_words(bench, link) -> None:
    link.get_ready()
    presenter = WeightsPresenter(bench, bench.window)
    presenter.load("a.pt", "ema.", {"head": "branch"})
    (command,) = asked(link, LoadWeightsCommand)
    assert (command.path, command.group, command.branches, command.agreed) == (
        str(Path("a.pt").absolute()), "ema.", {"head": "branch"}, False,
    )  # fmt: skip
    assert bench.window.said == ["Reading a.pt …"]
    link.answer(FitSnapshot(path="/a.pt", title="m", loaded=False, matched=1))
    assert bench.window.said[-1] == ""
    presenter.panel.load_requested.emit()
    again = asked(link, LoadWeightsCommand)[-1]
    assert again == replace(command, agreed=True, id=again.id)
    link.close()
    presenter.panel.load_requested.emit()
    assert len(asked(link, LoadWeightsCommand)) == 2  # its subject is gone
    presenter.load("a.pt")
    assert bench.window.said[-1] == f"a.pt was not loaded. {link.unsent}"


def test_an_error_of_a_file_of_weights_has_its_traceback(bench, link) -> None:
    link.get_ready()
    WeightsPresenter(bench, bench.window).load("/a.pt")
    error = ErrorReport("ValueError", "No.", traceback="line 1")
    link.answer(ErrorSnapshot(command="LoadWeightsCommand", error=error))
    assert banner(bench, "weights").toolTip().endswith("line 1")


def test_the_ways_live_as_long_as_the_window(bench) -> None:
    assert ShowIn(bench, (), bench.window).parent() is bench.window


def test_variables_tell_which_cells_the_subject_needs(bench, chooser) -> None:
    bench.store.take(VariablesSnapshot(variables=(Variable("model", "module", "Net"),)))
    chooser.button.menu().aboutToShow.emit()
    assert "model" in [action.text() for action in chooser.button.menu().actions()]
