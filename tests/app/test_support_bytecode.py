"""PySide's support modules are compiled once, and found again at the next start."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from app.support_bytecode import support_bytecode

COUNT = """
    import builtins
    compiled = []
    plain = builtins.compile
    def counting(source, filename, *rest, **options):
        compiled.append(str(filename))
        return plain(source, filename, *rest, **options)
    builtins.compile = counting
    from app.python_imports import import_plainly
    import_plainly()
    from PySide6.QtCore import QObject
    assert builtins.compile is counting
    print(sum(name.startswith("shibokensupport/") for name in compiled))
    try:
        QObject().setParent(3)
    except TypeError as error:
        print(error)
"""


def start(cache) -> tuple[int, str]:
    """How many support modules a start compiles, and an error that they put into words."""
    environment = os.environ | {"XDG_CACHE_HOME": str(cache), "HOME": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(COUNT)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    count, words = done.stdout.split("\n", 1)
    assert "Supported signatures" in words and not done.stderr
    return int(count), words


def test_the_second_start_compiles_nothing_and_a_broken_file_is_made_anew(tmp_path):
    count, words = start(tmp_path)
    assert count > 5
    assert start(tmp_path) == (0, words)
    (file,) = tmp_path.rglob("*.bytecode")
    whole = file.read_bytes()
    for broken in (whole[:-100], b"other" + whole[5:]):
        file.write_bytes(broken)
        assert start(tmp_path) == (count, words)
    assert file.read_bytes() == whole


@pytest.fixture
def use(tmp_path):
    def one(source: str, name: str = "shibokensupport/x.py") -> object:
        with support_bytecode(tmp_path / "cache"):
            code = compile(source, name, "exec")
        names: dict[str, object] = {}
        exec(code, names)
        return names["x"]

    return one


def test_other_source_is_compiled_and_other_files_are_not_kept(use, tmp_path):
    assert use("x = 1") == 1
    kept = (tmp_path / "cache").read_bytes()
    assert use("x = 2", "elsewhere.py") == 2
    assert (tmp_path / "cache").read_bytes() == kept
    assert use("x = 2") == 2
    assert (tmp_path / "cache").read_bytes() != kept
    assert use("x = 2") == 2


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with support_bytecode(tmp_path / "file" / "cache"):
        code = compile("x = 1", "shibokensupport/x.py", "exec")
    assert "x" in code.co_names
