"""No command imports a module of the current folder: it may be a stranger's."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from app.templates import load_template
from engine.project import files
from engine.project.document import replace
from engine.system.program import FOLDER, program_file

MARKER = "imported.txt"
OWN = ("app", "engine", "widgets", "tensorlab", "sitecustomize", "usercustomize")


def names() -> set[str]:
    """Everything that the program, torch or Qt could import, by its first name."""
    installed = set(metadata.packages_distributions())
    return {name for name in {*sys.stdlib_module_names, *installed, *OWN} if name.isidentifier()}


def shadow(folder: Path, shadowed: set[str]) -> None:
    """Write a module of each name, which leaves a marker and raises."""
    code = (
        f"import posix\nposix.close(posix.open({str(folder / MARKER)!r}, 65))\n"
        "raise ImportError(f'{__name__} of the current folder')\n"
    )
    for name in shadowed:
        (folder / f"{name}.py").write_text(code)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module of each name, and a project."""
    folder = tmp_path_factory.mktemp("stranger")
    shadow(folder, names())
    mlp = load_template("mlp")
    files.save(replace(mlp, training=replace(mlp.training, epochs=1)), folder / "mine.tlab")
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "beside.py").write_text("import json\nfound = json.dumps(1)\n")
    (folder / "elsewhere" / "script.py").write_text("import beside\nprint('found', beside.found)\n")
    return folder


def run(folder: Path, start: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, *start, *arguments],
        cwd=folder, env={**environment, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert not (folder / MARKER).exists(), done.stderr
    assert "of the current folder" not in done.stderr
    return done


AS_PROGRAM = [str(program_file())]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("doctor",), "Qt: PySide6"),
        (("inspect", "mine.tlab", "--json"), '"parameters"'),
        (("train", "mine.tlab", "--epochs", "1", "--out", "w.pt"), "finished after"),
        (("train", "mine.tlab", "--nproc-per-node", "2", "--epochs", "1"), "finished after"),
        (("runs", "mine.tlab"), "loss"),
        (("diff", "w.pt", "w.pt"), "equal"),
        (("export", "mine.tlab", "--out", "x.pt2"), "x.pt2"),
        (("attach", "--list"), ""),
        (("run", "elsewhere/script.py"), "found 1"),
    ],
)  # fmt: skip
def test_no_command_imports_from_the_current_folder(
    folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = run(folder, AS_PROGRAM, *arguments)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["doctor", "export"])
def test_the_help_of_a_command_imports_nothing_there(folder: Path, command: str) -> None:
    assert "usage: tensorlab" in run(folder, AS_PROGRAM, command, "--help").stdout


def test_nor_does_python_m_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python puts the current folder first on sys.path for -m. What it then imports before the
    program begins is beyond the program."""
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    listed = "import runpy, sys; print(*sys.modules)"
    before = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True).stdout
    shadow(tmp_path, names() - {name.partition(".")[0] for name in before.split()} - {"app"})
    assert "tensorlab" in run(tmp_path, ["-m", "app"], "--version").stdout
    assert "Qt: PySide6" in run(tmp_path, ["-m", "app"], "doctor").stdout


def test_layout_workers_do_not_either(folder: Path) -> None:
    start = (
        "import sys; sys.path[0] = sys.argv[1]\n"
        "from app.processes.worker_processes import WorkerProcesses\n"
        "workers = WorkerProcesses(); print(workers.call(len, ((1, 2),))); workers.kill()\n"
    )
    assert run(folder, ["-c", start], str(FOLDER)).stdout == "2\n"
