"""The copies of the user's files in the folder of a run: which there are, and which are wanted."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from engine.project.document import Project
from engine.runs import code, record
from engine.runs.code import KeptCode, Ran, changed, copies_wanted
from engine.runs.record import CodeFile, RunProblem
from engine.runs.writer import RunWriter


def ran(path: Path, root: Path, imported: bool = False) -> Ran:
    return Ran(path, root, sha256(path.read_bytes()).hexdigest(), imported)


@pytest.fixture
def files(tmp_path: Path) -> list[Ran]:
    """net.py, with what it imports from below, and data.py in another folder."""
    for name in ("own/net.py", "own/parts/act.py", "data/data.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"name = {name!r}\n")
    own, data = tmp_path / "own", tmp_path / "data"
    return [
        ran(own / "net.py", own),
        ran(own / "parts" / "act.py", own, imported=True),
        ran(data / "data.py", data),
    ]


@pytest.fixture
def begun(files: list[Ran], tmp_path: Path) -> RunWriter:
    writer = RunWriter.new(tmp_path / "runs", Project())
    writer.keep_code(KeptCode(files))
    writer.begin()
    writer.work()
    writer.close()
    return writer


def test_each_file_is_copied_as_it_lies_in_its_folder(begun: RunWriter, files) -> None:
    kept = record.load(begun.folder).code
    assert [file.copy for file in kept] == ["0/net.py", "0/parts/act.py", "1/data.py"]
    for file, each in zip(kept, files, strict=True):
        assert (file.path, file.sha256) == (str(each.path), each.sha256)
        assert (begun.folder / "code" / file.copy).read_bytes() == each.path.read_bytes()
    alone = KeptCode(files[:2]).files
    assert [file.copy for file in alone] == ["net.py", "parts/act.py"]


def test_a_file_that_has_changed_since_it_ran_has_no_copy(files, tmp_path: Path) -> None:
    files[0].path.write_text("other = 1\n")
    kept = KeptCode(files)
    kept.write(tmp_path)
    assert [file.copy for file in kept.files] == ["", "0/parts/act.py", "1/data.py"]
    assert kept.files[0].sha256 == files[0].sha256
    files[0].path.unlink()
    with pytest.raises(RunProblem, match=r"the copy of net\.py"):
        copies_wanted(tmp_path, kept.files)


def test_a_run_that_goes_back_has_the_code_too(begun: RunWriter) -> None:
    fork = begun.forked(3)
    fork.begin()
    fork.close()
    kept = record.load(fork.folder).code
    assert kept == record.load(begun.folder).code
    Path(kept[0].path).unlink()
    assert [copy.copy for copy in copies_wanted(fork.folder, kept)] == [
        str(fork.folder / "code" / "0" / "net.py")
    ]


def wanted(begun: RunWriter) -> list[str]:
    found = copies_wanted(begun.folder, record.load(begun.folder).code)
    return [Path(copy.path).name for copy in found]


def test_copies_are_wanted_only_for_what_is_gone(begun: RunWriter, files) -> None:
    net, act, data = (each.path for each in files)
    assert wanted(begun) == []
    data.unlink()
    assert wanted(begun) == ["data.py"]
    data.write_text("name = 'data/data.py'\n")
    act.unlink()
    assert wanted(begun) == ["net.py", "data.py"]  # those that import it
    net.write_text("name = 'no import any more'\n")
    assert wanted(begun) == []


def test_what_has_changed_is_named(files) -> None:
    kept = KeptCode(files).files
    assert changed(kept, files) == ()
    now = [files[0], files[1]._replace(sha256="0" * 64)]
    assert changed(kept, now) == ("act.py",)
    assert changed((), files) == ()


@pytest.mark.parametrize("copy", ["", "/etc/passwd", "../run.json", "0/../../run.json"])
def test_a_copy_lies_in_the_folder_of_copies(begun: RunWriter, copy: str) -> None:
    digest = sha256((begun.folder / "run.json").read_bytes()).hexdigest()
    with pytest.raises(RunProblem, match="missing or not"):
        copies_wanted(begun.folder, [CodeFile("/gone/net.py", copy, digest)])
    assert code.FOLDER == "code"
