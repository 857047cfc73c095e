"""Mutants are judged in a process that has collected the tests, each in a fork of it."""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests.mutation.forks import adopt_orphans, end_of, start
from tests.mutation.loaded import swap
from tests.mutation.mutants import Mutant

_ROOT = Path(__file__).parents[2]
_TEST_S, _MUTANT_S = 600, 900
_DATA_BYTES = 8 << 30
"""More, and a mutant that fills the memory would end its neighbours."""


@dataclass
class Verdict:
    mutant: Mutant
    tests: int = 0
    """So many were run."""
    killed_by: str = ""
    """The test that failed, or how the process ended; empty if the mutant survived."""

    def __str__(self) -> str:
        mutant = self.mutant
        end = f"killed by {self.killed_by}" if self.killed_by else f"survived {self.tests} tests"
        return f"{mutant.path}:{mutant.line}: {mutant.kind}: {end}"


def judge(
    copy: Path, chosen: dict[str, list[str]], mutants: list[Mutant], cpu_s: float, is_loaded: bool
) -> int:
    """In a process of its own: collect the test files chosen for each mutated file in a copy of
    the program, and write the verdict on each mutant to a file there. `is_loaded`: the mutant is
    in the copy already, since it changes what runs when its file is imported."""
    adopt_orphans()
    os.chdir(copy)
    told = os.fdopen(os.dup(1), "w", buffering=1)
    output = os.open(copy / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for standard, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(descriptor, standard)
    sys.path[:] = [str(copy), *(path for path in sys.path if path != str(_ROOT))]
    for name in [
        name for name in sys.modules if re.match(r"(app|widgets|engine|tensorlab|tests)\b", name)
    ]:
        del sys.modules[name]
    importlib.invalidate_caches()
    tests = dict.fromkeys(test for found in chosen.values() for test in found)
    return pytest.main(
        ["-q", "--assert=plain", "-p", "no:cacheprovider", f"--timeout={_TEST_S}",
         f"--rootdir={copy}", f"--basetemp={copy / 'temporary'}", *tests],
        plugins=[_Plugin(copy, chosen, mutants, cpu_s, is_loaded, told)],
    )  # fmt: skip


class _Plugin:
    """Judges the mutants when pytest has collected the tests, in place of running them."""

    def __init__(
        self, copy: Path, chosen: dict[str, list[str]], mutants: list[Mutant], cpu_s: float,
        is_loaded: bool, told: TextIO,
    ) -> None:  # fmt: skip
        self._copy, self._chosen, self._mutants, self._told = copy, chosen, mutants, told
        self._cpu_s, self._is_loaded = cpu_s, is_loaded
        self._sound: dict[str, bool] = {}
        """Whether a test that killed a mutant passes without one."""
        self._forks = 0
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:  # what could be collected does not import the mutant
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        for mutant in self._mutants:
            verdict = self._judged(session, mutant)
            with (self._copy / "verdicts").open("a") as file:
                file.write(json.dumps(asdict(verdict)) + "\n")
            print(verdict, file=self._told)
        return True

    def _judged(self, session: pytest.Session, mutant: Mutant) -> Verdict:
        path = self._copy / mutant.path
        source = path.read_bytes()
        if not self._is_loaded:
            path.write_bytes(mutant.applied(source))  # for processes that tests start
        own = {self._copy / test for test in self._chosen[mutant.path]}
        ordered = ranked([item for item in session.items if item.path in own], mutant)
        verdict, suspect = Verdict(mutant), True
        while suspect:
            items = [item for item in ordered if self._sound.get(item.nodeid, True)]
            told = self._forked(items, None if self._is_loaded else (path, source))
            failed = told.get("failed", "")
            verdict.tests, verdict.killed_by = told.get("tests", 0), failed or told["end"]
            suspect = bool(failed) and not self._is_loaded and failed not in self._sound
            if suspect:
                alone = [item for item in items if item.nodeid == failed]
                path.write_bytes(source)
                self._sound[failed] = "failed" not in self._forked(alone, None)
                path.write_bytes(mutant.applied(source))
                suspect = not self._sound[failed]
        path.write_bytes(source)
        return verdict

    def _forked(
        self, items: list[pytest.Item], change: tuple[Path, bytes] | None
    ) -> dict[str, Any]:
        """Run the tests until one fails, with the changed file: how many ran, which failed, and
        how the process ended."""
        self._forks += 1
        result = self._copy / "result"
        result.unlink(missing_ok=True)
        end = end_of(start(partial(self._run, items, change, result)), _MUTANT_S)
        told = json.loads(result.read_text()) if result.exists() else {}
        return {**told, "end": end}

    def _run(
        self, items: list[pytest.Item], change: tuple[Path, bytes] | None, result: Path
    ) -> int:
        limit = int(self._cpu_s + 60)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_BYTES, _DATA_BYTES))
        if change and not swap(change[0], change[1], change[0].read_bytes()):
            return 71
        folder = self._copy / f"temporary{self._forks}"
        folder.mkdir()
        if items:
            items[0].config._tmp_path_factory._basetemp = folder
        ran = 0
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            ran += 1
            if self._failed or sum(os.times()[:4]) > self._cpu_s:
                break
        told: dict[str, Any] = {"tests": ran}
        if self._failed:
            told["failed"] = self._failed[0]
        result.write_text(json.dumps(told))
        return 0


def ranked(items: list[pytest.Item], mutant: Mutant) -> list[pytest.Item]:
    """The tests of the file that most likely notices the mutant first, in it those that name its
    function first."""
    module = mutant.path.removesuffix(".py").replace("/", ".")
    names = {name for name in mutant.function.split(".") if name != "__init__"}
    words = {word for part in module.split(".")[-2:] for word in part.split("_")}
    scores: dict[Path, list[tuple[int, pytest.Item]]] = defaultdict(list)
    for item in items:
        code = getattr(getattr(item, "function", None), "__code__", None)
        named = 4 * len(names.intersection(code.co_names if code else ()))
        scores[item.path].append((named + len(words.intersection(item.name.split("_"))), item))

    def of_file(path: Path) -> int:
        text, own = path.read_text(), set(path.stem.split("_"))
        named = sum(name in text for name in names)
        best = max(score for score, _ in scores[path])
        return best + 4 * (module in text) + 3 * len(words & own) + 2 * named

    order = sorted(scores, key=of_file, reverse=True)
    return [item for path in order
            for _, item in sorted(scores[path], key=lambda each: -each[0])]  # fmt: skip
