"""`make mutate` on a program of one file: what its test notices is killed, all else survives."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.mutation.choosing import near_tests, sample, wide_tests
from tests.mutation.mutants import mutants

ROOT = Path(__file__).parents[2]
CODE = '''"""A room."""

import logging


def clipped(number: int, most: int = 9) -> int:
    """Zero above `most`."""
    if number > most:
        logging.info("clipped")
        return 0
    return number


def sent(message: str, to: list[str]) -> None:
    to.append(message)
    to.sort(key=len, reverse=False)


def __repr__() -> int:
    return 1
'''
TESTS = """from engine.tour.small import clipped, sent

def test_clipped():
    assert [clipped(number) for number in (8, 9, 10)] == [8, 9, 0]

def test_sent():
    to = []
    sent("word", to)
    assert to == ["word"]
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    for name, text in {"engine/tour/small.py": CODE, "tests/engine/test_small.py": TESTS}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    for folder in ("app", "widgets"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
def test_an_orphan_that_has_ended_is_gone():
    """A test that waits for a process whose parent has ended does not wait for ever."""
    script = """
        import os, psutil
        from contextlib import suppress
        from tests.mutation.forks import adopt_orphans, end_of, start

        def work():
            read, write = os.pipe()
            parent = os.fork()
            if not parent:
                orphan = os.fork()
                if orphan:
                    os.write(write, str(orphan).encode())
                os._exit(0)
            orphan = int(os.read(read, 20))
            os.waitpid(parent, 0)
            with suppress(psutil.NoSuchProcess):
                psutil.Process(orphan).wait(60)
            return 0

        adopt_orphans()
        print("end:", end_of(start(work), 120))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "end: \n"


def test_mutants_of_a_file():
    found = {(each.line, each.kind, each.text) for each in mutants("a.py", CODE.encode())}
    assert found == {
        (6, "constant", "10"),
        (8, "comparison", "(number >= most)"),
        (8, "comparison", "(number < most)"),
        (8, "condition forced", "(True)"),
        (8, "condition forced", "(False)"),
        (10, "None returned", "return None"),
        (10, "constant", "1"),
        (11, "None returned", "return None"),
        (15, "statement dropped", "pass"),
        (16, "statement dropped", "pass"),
        (16, "keyword dropped", "(to.sort(reverse=False))"),
        (16, "keyword dropped", "(to.sort(key=len))"),
        (16, "constant", "True"),
    }


def test_a_mutant_of_several_lines_is_python():
    lines = ("def f(a, b):", "    if g(", "        a and b", "    ):", "        return a",
             "    return [", "        b", "    ]", "")  # fmt: skip
    source = "\n".join(lines).encode()
    found = list(mutants("a.py", source))
    assert {mutant.kind for mutant in found} >= {"condition forced", "None returned", "and, or"}
    for mutant in found:
        text = mutant.applied(source)
        ast.parse(text)
        assert text.count(b"\n") == source.count(b"\n")


def test_those_that_send_a_command_are_near_its_handler():
    near = near_tests(ROOT, "engine/handlers/artifacts.py")
    assert "tests/engine/artifacts/test_values_of_files.py" in near
    assert "tests/engine/exporting/test_package.py" not in near


def test_a_seed_chooses_the_same_mutants(program: Path):
    first = sample(program, "engine", 4, seed=1)
    assert len({mutant.line for mutant in first}) == 4
    assert sample(program, "engine", 4, seed=1) == first
    assert any(sample(program, "engine", 4, seed) != first for seed in range(2, 5))


def test_killed_is_what_cannot_be_imported(program: Path) -> None:
    (program / "engine/first.py").write_text('FIRST = "a"[0]\n')
    test = "from engine.first import FIRST\n\ndef test_first():\n    assert FIRST == 'a'\n"
    (program / "tests/engine/test_first.py").write_text(test)
    command = [sys.executable, "-m", "tests.mutation.run", "--root", str(program), "--bare"]
    ran = subprocess.run(
        [*command, "--package", "engine/first.py"], cwd=ROOT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert "engine/first.py: 1 of 1 killed (100%), seed 1" in ran.stdout


def test_killed_is_what_a_test_notices(program: Path, tmp_path: Path):
    """Each mutant is one that some test runs; sorting a list of one word, none notices."""
    verdicts = tmp_path / "verdicts.json"
    command = [sys.executable, "-m", "tests.mutation.run", "--root", str(program), "--bare"]
    ran = subprocess.run(
        [*command, "--package", "engine", "--count", "99", "--json", str(verdicts)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(verdicts.read_text())["engine"]
    assert len(found) == 6  # one of a line
    for verdict in found:
        line, by = verdict["mutant"]["line"], verdict["killed_by"]
        test = "" if line == 16 else "test_sent" if line == 15 else "test_clipped"
        assert (test in by) and bool(by) == bool(test), verdict
    assert "engine: 5 of 6 killed (83%), seed 1" in ran.stdout
    assert ran.stdout.count("engine/tour/small.py:16: ") == 2  # when it is judged, and at the end
    assert (program / "engine/tour/small.py").read_text() == CODE


def test_those_of_the_room_that_a_handler_answers_for_are_wide():
    wide = wide_tests(ROOT, "engine/handlers/subjects/code.py")
    assert "tests/engine/subjects/test_comparing.py" in wide
    assert "tests/engine/exporting/test_package.py" not in wide
    wide = wide_tests(ROOT, "engine/lab/holding.py")
    assert {"tests/engine/loops/test_held_loops.py", "tests/engine/console/test_held_code.py"} <= {
        *wide
    }
