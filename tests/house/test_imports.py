"""Who may import what, where import-linter cannot see it: at run time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _modules(folder: str) -> list[str]:
    """Dotted names of all modules under a top folder, `__main__` modules left out."""
    return sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / folder).rglob("*.py")
        if path.stem != "__main__"
    )


def test_the_windows_side_loads_no_torch():
    """What fails is the first module that loads it."""
    folders = ("engine/protocol", "engine/project", "widgets", "app")
    code = (
        "import importlib, sys\n"
        f"for name in {[name for folder in folders for name in _modules(folder)]!r}:\n"
        "    importlib.import_module(name)\n"
        "    if 'torch' in sys.modules: sys.exit(name)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_command_line_loads_neither_torch_nor_qt():
    code = (
        "import sys\nfrom app import cli\nfrom app.commands import doctor, exec_file, projects\n"
        "print([name for name in ('torch', 'PySide6') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_importing_the_package_is_cheap():
    """Every spawned worker imports it again (see tensorlab.py)."""
    code = "import sys, tensorlab; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "tensorlab" in loaded
    assert not loaded & {"app", "app.cli", "engine", "widgets", "torch", "PySide6", "numpy"}


def test_the_engine_is_importable_as_part_of_the_package_from_anywhere(tmp_path):
    """Also by a script outside the checkout, where only the editable install leads to it."""
    code = (
        "import sys, tensorlab.engine.project.document as document\n"
        "assert document.Project().name == 'Untitled'\n"
        "assert not {'engine', 'PySide6'} & set(sys.modules), sorted(sys.modules)\n"
        "print(document.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert Path(done.stdout.strip()) == ROOT / "engine" / "project" / "document.py"
