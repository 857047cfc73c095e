"""A project keeps its subject as a reference, and what code is trained for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.project import edits, files, limits
from engine.project.document import Project, replace
from engine.project.subject import (
    MODEL,
    CanvasSubject,
    ConsoleSubject,
    FileSubject,
    Objective,
    Subject,
    file_name,
    files_of,
    is_same_subject,
    needs_cells,
    python_file,
    takes_setup_data,
    title,
    whole_title,
)


@pytest.mark.parametrize(
    ("subject", "is_code", "of_cells", "python", "name"),
    [
        (CanvasSubject(), False, False, "", ""),
        (ConsoleSubject("nets[0].head"), True, True, "", "nets_0_head"),
        (ConsoleSubject("()"), True, True, "", "model"),
        (FileSubject("/x/net.py", "Net(3)"), True, False, "/x/net.py", "net"),
        (FileSubject("/x/net.v2.pt2", "model"), True, False, "", "net.v2"),
    ],
)
def test_what_follows_from_a_subject_alone(
    subject: Subject, is_code: bool, of_cells: bool, python: str, name: str
) -> None:
    assert (subject.is_code, needs_cells(subject)) == (is_code, of_cells)
    assert (python_file(subject), file_name(subject)) == (python, name)


def document(**changes: object) -> dict:
    fields = msgspec.json.decode(files.dumps(Project(subject=ConsoleSubject("model"))))
    return {**fields, **changes}


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"subject": {"type": "console", "expression": " "}}, "subject.expression", "needs an exp"),
        ({"subject": {"type": "console", "expression": "x" * 1001}}, "subject.expression", "1,001"),
        ({"subject": {"type": "console"}}, "subject", "missing required field `expression`"),
        ({"subject": {"type": "pickle"}}, "subject", "Invalid value 'pickle'"),
        ({"subject": {"type": "file", "path": "", "expression": "x"}}, "subject.path", "its path"),
        (
            {"subject": {"type": "file", "path": "\0", "expression": "x"}},
            "subject.path",
            "its path",
        ),
        ({"objective": {"data": "x" * 4097}}, "objective.data", "4,097 characters"),
        ({"objective": {"validation": "x" * 4097}}, "objective.validation", "4,097 characters"),
        ({"objective": {"step": "x" * 100_001}}, "objective.step", "100,001 characters"),
        ({"objective": {"of_setup": "yes"}}, "objective.of_setup", "bool"),
    ],
)
def test_a_field_out_of_bounds_is_named(changes: dict, field: str, words: str) -> None:
    with pytest.raises(files.FileProblem, match=words) as caught:
        files.from_document(document(**changes))
    assert caught.value.field.startswith(field)


def test_a_project_of_version_1_works_on_its_canvas() -> None:
    old = document(version=1)
    del old["subject"], old["objective"]
    loaded = files.from_document(old)
    assert loaded.subject == CanvasSubject() and loaded.objective == Objective()


def test_another_subject_begins_without_data() -> None:
    project = edits.set_subject(Project(), FileSubject("net.py", "Net"))
    project = edits.set_objective(project, Objective(data="loader", step="def step(batch): ..."))
    assert edits.set_subject(project, FileSubject("net.py", "Net")) is project
    other = edits.set_subject(project, ConsoleSubject("model"))
    assert (other.subject, other.objective) == (ConsoleSubject("model"), Objective())
    of_setup = edits.set_objective(project, Objective("loader", of_setup=True))
    other = edits.set_subject(of_setup, ConsoleSubject("model"))
    assert other.objective == Objective(of_setup=True)  # the data set is of the project
    for wrong in (
        Objective(data="x" * (limits.MAX_PATH_CHARS + 1)),
        Objective(validation="x" * (limits.MAX_PATH_CHARS + 1)),
        Objective(step="x" * (limits.MAX_SOURCE_CHARS + 1)),
    ):
        with pytest.raises(edits.EditError, match="at most"):
            edits.set_objective(project, wrong)


def test_a_project_and_the_files_beside_it_can_be_moved_together(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "data").mkdir(parents=True)
    far = str(tmp_path / "far.py")
    data = f"{here / 'data' / 'sets.py'}:loader"
    objective = Objective(data, f"{far}:loader", "def step(b): b", of_setup=True)
    subject = FileSubject(str(here / "net.py"), "Net()")
    project = replace(Project(name="p"), subject=subject, objective=objective)
    files.save(project, here / "p.tlab")
    assert files.load(here / "p.tlab") == project
    written = msgspec.json.decode((here / "p.tlab").read_bytes())
    assert written["subject"]["path"] == "net.py"
    assert written["objective"]["data"] == "data/sets.py:loader"
    assert written["objective"]["validation"] == f"{far}:loader"  # it does not move with it
    here.rename(there)
    moved = files.load(there / "p.tlab")
    assert moved.subject == FileSubject(str(there / "net.py"), "Net()")
    assert moved.objective.data == f"{there / 'data' / 'sets.py'}:loader"
    assert moved.objective.validation == f"{far}:loader"
    assert moved.objective.step == "def step(b): b" and moved.objective.of_setup


def test_a_subject_without_a_file_is_written_as_it_is(tmp_path: Path) -> None:
    objective = Objective("(x, y)", "loader[1:2]")
    project = replace(Project(name="p"), subject=ConsoleSubject("net.py"), objective=objective)
    files.save(project, tmp_path / "p.tlab")
    assert files.load(tmp_path / "p.tlab") == project


def test_data_of_the_setup_needs_no_file_and_no_name() -> None:
    of_setup = Objective("data.py:loader", of_setup=True)
    assert of_setup.has_data and not Objective().has_data and Objective("x").has_data
    assert files_of(FileSubject("net.py", "Net"), of_setup) == ("net.py",)
    assert takes_setup_data(CanvasSubject(), Objective())
    assert takes_setup_data(ConsoleSubject("net"), of_setup)
    assert not takes_setup_data(ConsoleSubject("net"), Objective("x"))
    before = document()  # as files were without it
    del before["objective"]["of_setup"]
    assert files.from_document(before).objective == Objective()


def test_a_subject_is_named_in_a_few_words() -> None:
    for subject, told, whole in (
        (CanvasSubject(), "Canvas", "Canvas"),
        (ConsoleSubject("nets[0]"), "nets[0]", "nets[0]"),
        (FileSubject("/a/net.py", "Net()"), "net.py: Net()", "/a/net.py: Net()"),
        (FileSubject("/a/net.pt2", MODEL), "net.pt2", f"/a/net.pt2: {MODEL}"),
        (FileSubject("/a/net.pt2", "part"), "net.pt2: part", "/a/net.pt2: part"),
        (FileSubject("/a/net.py", MODEL), f"net.py: {MODEL}", f"/a/net.py: {MODEL}"),
    ):
        assert (title(subject), whole_title(subject)) == (told, whole)
        assert needs_cells(subject) == isinstance(subject, ConsoleSubject)


def test_a_file_that_has_moved_is_the_same_subject(tmp_path: Path) -> None:
    there = tmp_path / "net.py"
    there.write_text("")
    gone, now = FileSubject("/gone/net.py", "Net()"), FileSubject(str(there), "Net()")
    assert is_same_subject(now, now) and is_same_subject(gone, now)
    assert not is_same_subject(now, gone)  # it has not moved: both are there, or this one is
    assert not is_same_subject(gone, FileSubject(str(there), "Other()"))
    assert not is_same_subject(gone, ConsoleSubject("net"))
    assert not is_same_subject(ConsoleSubject("net.py: Net()"), now)
    assert is_same_subject(CanvasSubject(), CanvasSubject())


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ((-1.0, 1.0, 0), ""), ((1.0, -1.0, 5), ""),
        ((1.001, 0.0, 0), "outside the plane"), ((0.0, -1.001, 0), "outside the plane"),
        ((-1.5, 0.0, 0), "The point (-1.5, 0) is"), ((0.0, 1.5, 0), "The point (0, 1.5) is"),
        ((0.0, 0.0, 6), "from 0 to 5, not 6."), ((0.0, 0.0, -1), "from 0 to 5, not -1."),
    ],
)  # fmt: skip
def test_a_painted_point_is_in_the_plane_and_of_a_class(point: Any, words: str) -> None:
    told = limits.point_problem(point)
    assert words in told and bool(told) == bool(words)


def test_coordinates_are_kept_within_bounds() -> None:
    most = limits.MAX_POSITION
    assert [limits.clamped(x) for x in (2 * most, -2 * most, 3, -most, most)] == [
        most, -most, 3.0, -most, most,
    ]  # fmt: skip
