"""Where the engine keeps what it writes by itself, and what is left of windows that were killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from engine.system import folders as temporary
from engine.system import program, spawning
from engine.system.folders import data_folder, former_folder


def test_the_data_folder_is_the_one_that_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", "/chosen")
    assert data_folder() == Path("/chosen") and former_folder() is None
    for unset in (lambda: monkeypatch.setenv("TENSORLAB_DATA_DIR", ""),
                  lambda: monkeypatch.delenv("TENSORLAB_DATA_DIR")):  # fmt: skip
        unset()
        former = former_folder()
        assert former is not None and former != data_folder()
        assert data_folder().name == former.name == "tensorlab"


def test_folders_of_processes_that_are_gone_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary.make_folder() as own:
        assert Path(own).name.startswith(f"tensorlab-engine-{os.getpid()}-")
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        names = [
            f"tensorlab-engine-{ended.pid}-abc",
            f"tensorlab-engine-{os.getppid()}-abc",
            "tensorlab-engine-99999999999999999999-abc",
            "tensorlab-engine-abc-1",
            f"another-{ended.pid}-abc",
        ]
        for name in names:
            (tmp_path / name / "inside").mkdir(parents=True)
        temporary.sweep()
        assert {path.name for path in tmp_path.iterdir()} == {Path(own).name, *names[1:]}


def test_a_process_of_another_user_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        assert number == 0
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert temporary._lives(1)


@pytest.mark.parametrize("before", [None, "/mine"])
def test_a_program_of_the_library_imports_the_library_first(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.setenv("MINE", "1")
    if before is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", before)
    made = spawning.program_environment()
    root = str(Path(spawning.__file__).parents[2])
    assert made["PYTHONPATH"] == (root if before is None else f"{root}{os.pathsep}{before}")
    assert (made["PYTHONSAFEPATH"], made["PYTHONUNBUFFERED"], made["MINE"]) == ("1", "1", "1")
    assert made["OMP_WAIT_POLICY"] == "PASSIVE" and os.environ.get("PYTHONSAFEPATH") != "1"


def test_the_program_is_a_file_of_the_checkout_or_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    assert not program.is_package() and program.program_file() == tmp_path / "tensorlab.py"
    (tmp_path / "__init__.py").touch()
    assert program.is_package() and program.program_file() == tmp_path / "__init__.py"
