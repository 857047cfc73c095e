"""The Python that a project's file names: asked about, remembered, and told to the engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton

from app.presenters.cells import CellsPresenter
from app.presenters.python_files import PythonFiles
from app.presenters.subject import SubjectPresenter
from engine.project import edits, files
from engine.project.document import Cell, DataSetup, Loading, Project, TrainingSetup, replace
from engine.project.subject import CanvasSubject, ConsoleSubject, Objective
from engine.protocol import ReadVariablesCommand, ShowSubjectCommand
from widgets.model.code_editor import CodeEditor
from widgets.subject.chooser import SubjectChooser

NAMED = Project(
    subject=ConsoleSubject("net"), objective=Objective(data="pair()", step="def step(b): ...")
)


@pytest.fixture
def cells(bench, link) -> CellsPresenter:
    link.get_ready()
    return CellsPresenter(bench, bench.window)


@pytest.fixture
def chooser(bench, qtbot) -> SubjectChooser:
    chooser = SubjectChooser()
    qtbot.addWidget(chooser)
    SubjectPresenter(bench, PythonFiles(bench, bench.window), chooser, bench.window)
    return chooser


def saved(path: Path, project: Project) -> str:
    files.save(project, path)
    return str(path)


def is_used(bench, link) -> bool:
    """Whether the engine may use the document's Python."""
    bench.send(ReadVariablesCommand())
    return not link.sent[-1].unagreed


def test_a_project_that_names_python_is_asked_about_once_for_what_it_holds(
    bench, link, cells, tmp_path
):
    path = saved(tmp_path / "a.tlab", NAMED)
    assert bench.files.open(path)
    assert not is_used(bench, link)
    banner = bench.window.banners.banner("cells")
    code = banner.findChild(CodeEditor, "banner_code").toPlainText()
    assert code == "# %% What it names\nnet\npair()\ndef step(b): ..."
    banner.findChild(QPushButton, "banner_allow_its_python").click()
    assert is_used(bench, link)
    bench.files.new()
    assert bench.files.open(path) and is_used(bench, link)
    assert bench.window.banners.banner("cells") is None
    other = replace(NAMED, objective=Objective(data="others()"))
    assert bench.files.open(saved(tmp_path / "a.tlab", other)) and not is_used(bench, link)
    assert bench.files.open(saved(tmp_path / "b.tlab", NAMED)) and not is_used(bench, link)


@pytest.mark.parametrize(
    "project",
    [
        Project(subject=ConsoleSubject("net")),
        Project(objective=Objective(validation="x")),
        Project(objective=Objective(step="def step(b): ...")),
        Project(training=TrainingSetup(data=DataSetup("console", path="x"))),
        *(
            Project(
                training=TrainingSetup(data=DataSetup(loading=replace(Loading(), **{name: "x"})))
            )
            for name in ("sampler", "batch_sampler", "worker_init_fn", "generator", "collate_fn")
        ),
    ],
)
def test_each_field_that_names_python_is_asked_about(bench, link, cells, tmp_path, project):
    assert bench.files.open(saved(tmp_path / "a.tlab", project)) and not is_used(bench, link)
    assert bench.window.banners.banner("cells") is not None
    assert bench.files.new() and is_used(bench, link)


def test_what_is_only_data_is_not_asked_about(bench, link, cells, tmp_path):
    assert bench.files.open(saved(tmp_path / "a.tlab", Project(cells=(Cell("c1", "x"),))))
    assert is_used(bench, link)  # of the cells nothing runs by itself
    buttons = bench.window.banners.banner("cells").findChildren(QPushButton)
    assert [button.text() for button in buttons] == ["Run again"]


def test_to_run_the_cells_agrees_to_what_the_project_names(bench, link, cells, tmp_path):
    project = replace(NAMED, cells=(Cell("c1", "net = nn.Linear(1, 1)"),))
    path = saved(tmp_path / "a.tlab", project)
    assert bench.files.open(path) and not is_used(bench, link)
    cells.run_again()
    assert is_used(bench, link)
    assert bench.files.new() and bench.files.open(path) and is_used(bench, link)


def test_what_the_user_chooses_instead_is_his_own(bench, link, cells, tmp_path):
    bench.files.open(saved(tmp_path / "a.tlab", Project(subject=ConsoleSubject("net"))))
    assert not is_used(bench, link)
    bench.edit("Work on", lambda p: edits.set_subject(p, ConsoleSubject("mine")))
    assert is_used(bench, link)
    bench.history.stack.undo()
    assert not is_used(bench, link)


def test_what_is_saved_here_is_known_when_it_is_opened_again(bench, link, cells, tmp_path):
    bench.edit("Work on", lambda p: edits.set_subject(p, ConsoleSubject("mine")))
    assert bench.files.save_as(str(tmp_path / "a.tlab"))
    assert bench.files.new() and bench.files.open(str(tmp_path / "a.tlab"))
    assert is_used(bench, link)


def test_saving_agrees_to_nothing(bench, link, cells, tmp_path):
    path = saved(tmp_path / "a.tlab", NAMED)
    assert bench.files.open(path) and bench.files.save()
    assert not is_used(bench, link)
    assert bench.files.new() and bench.files.open(path) and not is_used(bench, link)


def test_recovered_work_is_asked_about(bench, link, cells):
    bench.files.recover(NAMED, "")
    assert not is_used(bench, link)
    assert bench.window.banners.banner("cells") is not None


def test_nothing_is_asked_of_the_engine_before_it_is_known(bench, link, cells, chooser, tmp_path):
    """Also in what is sent while the project is being opened."""
    before = len(link.sent)
    bench.files.open(saved(tmp_path / "a.tlab", NAMED))
    shown = [each for each in link.sent[before:] if isinstance(each, ShowSubjectCommand)]
    assert shown and all(each.unagreed for each in shown)


def test_the_subject_says_what_it_needs(bench, link, cells, chooser, tmp_path):
    bench.files.open(saved(tmp_path / "a.tlab", NAMED))
    assert chooser.need.text() == "Allow its Python"
    asked = bench.store.revision
    chooser.need.click()
    assert is_used(bench, link) and chooser.need.text() != "Allow its Python"
    assert bench.store.revision > asked  # what was refused is asked again
    assert not isinstance(bench.project.subject, CanvasSubject)
