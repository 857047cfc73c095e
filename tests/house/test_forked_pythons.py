"""A Python program that a test forks has what a started one has: arguments, streams, end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import forking

pytestmark = [
    pytest.mark.usefixtures("forked_processes"),
    pytest.mark.skipif(not forking.POSSIBLE, reason="forks programs"),
]


def ended(*words: str, **options) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, **options)
    return done.returncode, done.stdout, done.stderr


def test_a_file_has_its_arguments_and_its_exit_code(tmp_path: Path) -> None:
    source = "import sys; print(sys.argv, sys.path[0], __name__); sys.exit('no')"
    (tmp_path / "script.py").write_text(source)
    (tmp_path / "beside.py").write_text("import sys; print(sys.argv[1:], __name__); 1 / 0")
    told = f"['script.py', 'a b'] {tmp_path} __main__\n"
    assert ended("script.py", "a b", cwd=tmp_path) == (1, told, "no\n")
    code, out, err = ended("-m", "beside", "c", cwd=tmp_path)
    assert (code, out) == (1, "['c'] __main__\n") and err.endswith("division by zero\n")


def test_it_has_its_streams_its_session_and_dies_of_its_signal() -> None:
    source = (
        "import os\nprint(os.getpid(), os.getsid(0), os.environ['MARK'])\n"
        "print(input())\nos.kill(os.getpid(), 15)"
    )
    program = subprocess.Popen(
        [sys.executable, "-u", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, start_new_session=True, env={"MARK": "x"},
    )  # fmt: skip
    out, _ = program.communicate("hello\n")
    assert out == f"{program.pid} {program.pid} x\nhello\n"
    assert program.returncode == -15


def test_what_it_starts_is_forked_too_and_other_programs_are_started() -> None:
    inner = "import sys; print('torch' in sys.modules)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    assert ended("-c", outer) == (0, "True\n", "")
    assert subprocess.run(["false"]).returncode == 1


def test_the_python_that_it_becomes_runs_in_the_same_process() -> None:
    inner = "import os, sys; print(os.getpid(), sys.argv[1:], 'torch' in sys.modules); sys.exit(3)"
    outer = (
        "import atexit, os, sys\natexit.register(print, 'not at an exec')\nprint(os.getpid())\n"
        f"os.execv(sys.executable, [sys.executable, '-c', {inner!r}, 'a b'])"
    )
    code, out, err = ended("-c", outer)
    first, second = out.splitlines()
    assert (code, second, err) == (3, f"{first} ['a b'] True", "")


def test_one_that_is_told_its_executable_or_another_option_is_started() -> None:
    code = "import sys; print('torch' in sys.modules)"
    assert ended("-c", code, executable=sys.executable) == (0, "False\n", "")
    assert ended("-S", "-c", code) == (0, "False\n", "")
