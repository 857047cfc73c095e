"""What the argument of a command names: a project, code, a model in a file, or nothing of these."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from app import templates
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.target import Target, is_file_to_read, load_project, runs_beside, target_of
from engine.project import edits, files
from engine.project.document import DataSetup, Project, Transform, replace
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective


@pytest.fixture
def net(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text("x = 1\n")
    return str(tmp_path / "net.py")


def saved(folder: Path, project: Project, name: str = "p") -> Path:
    path = folder / f"{name}.tlab"
    files.save(project, path)
    return path


def refused(text: str, **options: Any) -> str:
    with pytest.raises(CommandFailure) as caught:
        target_of(text, **options)
    assert caught.value.exit_code == BAD_ARGUMENTS
    return str(caught.value)


# -- projects --------------------------------------------------------------------------------------


def test_a_project_is_what_its_file_says(tmp_path: Path) -> None:
    project = replace(Project(name="p"), objective=Objective("loader"))
    path = saved(tmp_path, edits.record_cell(project, "x = 1"))
    target = target_of(str(path))
    assert (target.text, target.path, target.cells) == (str(path), path, ())
    assert target.subject == CanvasSubject() and target.objective == Objective("loader")
    assert not target.is_code and target.has_folder
    assert [cell.source for cell in target_of(str(path), run_cells=True).cells] == ["x = 1"]


@pytest.mark.parametrize("option", [{"data": "d"}, {"validation": "d"}, {"dataset": "iris"}])
def test_data_of_a_project_are_its_own(tmp_path: Path, option: dict) -> None:
    path = saved(tmp_path, Project())
    assert refused(str(path), **option).startswith("--data, --validation and --dataset are for a")


def test_settings_of_a_project_are_its_own(tmp_path: Path) -> None:
    path = saved(tmp_path, Project())
    assert refused(str(path), settings=path).startswith("--settings is for a subject of code")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ((), "it holds no cells that make it. Run them in the window and save, or name a module"),
        (("net = 1",), "one cell makes it. Nothing of them runs until you say so"),
        (("a = 1", "net = a"), "2 cells make it. Nothing of them runs until you say so"),
    ],
)
def test_a_subject_of_the_console_needs_its_cells(
    tmp_path: Path, cells: tuple[str, ...], words: str
) -> None:
    project = edits.set_subject(Project(), ConsoleSubject("net"))
    for cell in cells:
        project = edits.record_cell(project, cell)
    path = saved(tmp_path, project)
    assert f"its subject is net, of the console, and {words}" in refused(str(path))
    if cells:
        target = target_of(str(path), run_cells=True)
        assert len(target.cells) == len(cells) and target.is_code and target.has_folder


def test_a_file_that_is_not_there_or_is_damaged_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone.tlab"
    assert refused(str(gone)) == f"{gone}: there is no such project file."
    (tmp_path / "bad.tlab").write_text("{")
    with pytest.raises(CommandFailure) as caught:
        load_project(tmp_path / "bad.tlab")
    assert str(caught.value).startswith(f"{tmp_path / 'bad.tlab'}: ")
    assert caught.value.exit_code != BAD_ARGUMENTS


# -- code ------------------------------------------------------------------------------------------


def test_a_module_of_a_file_is_a_target_by_its_whole_path(net: str, monkeypatch) -> None:
    monkeypatch.chdir(Path(net).parent)
    target = target_of("net.py:Net(3)", data="data", validation="held")
    assert target.subject == FileSubject(net, "Net(3)") and target.path == Path("net.py")
    assert target.objective == Objective("data", "held") and target.project.name == "net"
    assert target.is_code and not target.has_folder and target.cells == ()
    both = target_of("net.py:Net", data="net.py:a", validation="net.py:b").objective
    assert (both.data, both.validation) == (f"{net}:a", f"{net}:b")


def test_what_no_code_can_be_is_said(net: str, tmp_path: Path) -> None:
    assert "which module of the file?" in refused(net)
    gone = tmp_path / "gone.py"
    assert refused(f"{gone}:Net") == f"{gone}: there is no such file."
    assert refused(f"{net}:Net", data=f"{gone}:data") == f"{gone}: there is no such file."
    assert refused(f"{net}:Net", run_cells=True).startswith("--run-cells is for a project")
    for given in ({"data": "d"}, {"validation": "d"}):
        assert "leave --data and --validation off" in refused(f"{net}:N", dataset="iris", **given)


def test_a_model_in_a_file_is_a_target(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(b"")
    assert target_of(str(path), data="data").subject == FileSubject(str(path), "model")


def test_code_is_trained_as_the_settings_say(net: str, tmp_path: Path) -> None:
    training = replace(Project().training, epochs=7, data=DataSetup("iris"))
    canvas = saved(tmp_path, replace(Project(), training=training), "canvas")
    target = target_of(f"{net}:Net", settings=canvas)
    assert target.project.training == training and target.objective.of_setup
    with_data = target_of(f"{net}:Net", data="data", settings=canvas)
    assert with_data.objective == Objective("data") and with_data.project.training == training
    own = Objective("loader", step="def step(b): ...", loss_of_setup=True)
    code = replace(Project(), subject=FileSubject(net, "Other"), objective=own)
    target = target_of(f"{net}:Net", settings=saved(tmp_path, code, "code"), run_cells=True)
    assert target.subject == FileSubject(net, "Net")
    assert target.objective == Objective("", "", own.step, False, True)


# -- a data set ------------------------------------------------------------------------------------


def data_of(net: str, dataset: str, settings: Path | None = None) -> DataSetup:
    target = target_of(f"{net}:Net", dataset=dataset, settings=settings)
    assert target.objective.of_setup
    return target.project.training.data


def test_a_data_set_is_named_by_its_kind_and_path(net: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert data_of(net, "iris") == replace(Project().training.data, kind="iris", params={})
    found = data_of(net, "csv:a.csv")
    assert (found.kind, found.path) == ("csv", str(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no", "--dataset: there is no “no”; there are "), ("csv", "Write csv:PATH."),
        ("iris:a", "--dataset: iris has no path."), ("painted", "there is no “painted”"),
        ("console", "there is no “console”"),
    ],
)  # fmt: skip
def test_why_a_data_set_is_none_is_said(net: str, text: str, words: str) -> None:
    told = refused(f"{net}:Net", dataset=text)
    assert words in told
    if text == "no":
        assert "iris, " in told and "csv:PATH" in told and "painted" not in told


def test_settings_of_the_same_kind_are_kept_and_of_another_not(net: str, tmp_path: Path) -> None:
    data = DataSetup("csv", {"faults": "skip"}, path="/a.csv", transforms=(Transform("Normalize"),))
    training = replace(Project().training, data=data)
    settings = saved(tmp_path, replace(Project(), training=training))
    assert data_of(net, "csv:/b.csv", settings) == replace(data, path="/b.csv")
    other = data_of(net, "iris", settings)
    assert (other.kind, other.path, other.params, other.transforms) == ("iris", "", {}, ())


# -- files to read, and folders of runs ------------------------------------------------------------


def test_files_of_tensors_are_only_read_unless_they_have_data(net: str, tmp_path: Path) -> None:
    for text in (str(tmp_path), "/a/w.safetensors", "/a/net.pt2"):
        assert is_file_to_read(text, None) and not is_file_to_read(text, "data")
    for text in (net, f"{net}:Net", "/a/p.tlab"):
        assert not is_file_to_read(text, None)


def test_runs_lie_beside_a_project_that_can_be_written_beside(tmp_path, net, monkeypatch) -> None:
    path = saved(tmp_path, Project())
    project = target_of(str(path))
    assert runs_beside(project) == str(tmp_path / "p.runs")
    assert runs_beside(target_of(f"{net}:Net")) == ""
    template = Target("t", templates.FOLDER / "mlp.tlab", Project())
    assert runs_beside(template) == ""
    monkeypatch.setattr(os, "access", lambda folder, mode: False)
    assert runs_beside(project) == ""
