"""Make small wrong edits in a package, and count those that its tests notice: `make mutate`.

A mutant is judged in a copy of the program, by the tests that run its block (`reach.py`): first
those beside it in tests/ or that import its room, then those of the rooms that use it. It is killed
as soon as one fails. What survives is printed.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.mutation.choosing import PACKAGES, near_tests, sample, wide_tests
from tests.mutation.forks import Job, Report, run_all
from tests.mutation.mutants import Mutant
from tests.mutation.reach import Reach

_PRELOADED = (
    "torch", "torch._dynamo", "torch.distributed", "sklearn.datasets", "pandas", "PySide6.QtTest",
    "PySide6.QtSvg", "pyqtgraph", "qtawesome", "networkx", "hypothesis", "pytestqt.plugin",
    "msgspec", "safetensors.torch", "optuna",
)  # fmt: skip
ROOT = Path(__file__).parents[2]
_NOT_COPIED = (".git", ".venv", ".hypothesis", "build", "dist", "tour")
_times = itertools.count(1)


@dataclass
class Verdict:
    mutant: Mutant
    tests: int = 0
    """So many were there to judge it."""
    killed_by: str = ""
    """How their process ended, and the test that failed; empty if the mutant survived."""


class Judge:
    """Has copies of the program to judge mutants in."""

    def __init__(self, root: Path, copies: list[Path], reach: Reach) -> None:
        self._root, self._copies, self._reach = root, copies, reach

    def judge(self, mutants: list[Mutant]) -> list[Verdict]:
        verdicts = [Verdict(mutant) for mutant in mutants]
        self._round(verdicts, near_tests)
        self._round(verdicts, lambda root, path: [
            test for test in wide_tests(root, path) if test not in near_tests(root, path)
        ])  # fmt: skip
        return verdicts

    def _round(self, verdicts: list[Verdict], select: Callable[[Path, str], list[str]]) -> None:
        """Run what was selected for those that no test has killed."""
        alive = [verdict for verdict in verdicts if not verdict.killed_by]
        paths = sorted({verdict.mutant.path for verdict in alive})
        files = {path: select(self._root, path) for path in paths}
        self._reach.survey(test for path in paths for test in files[path])
        jobs = []
        for verdict in alive:
            tests = self._reach.tests(verdict.mutant, files[verdict.mutant.path])
            verdict.tests += len(tests)
            if tests:
                jobs.append(Job(["-x", *tests], sum(tests.values()),
                                partial(self._make_wrong, verdict.mutant),
                                partial(self._note, verdict)))  # fmt: skip
        run_all(jobs, self._copies)

    def _make_wrong(self, mutant: Mutant, copy: Path) -> None:
        path = copy / mutant.path
        path.write_bytes(mutant.applied((self._root / mutant.path).read_bytes()))
        changed_s = next(_times)  # each its own, or Python takes the compiled file of another one
        os.utime(path, (changed_s, changed_s))

    def _note(self, verdict: Verdict, copy: Path, report: Report, end: str) -> None:
        mutant = verdict.mutant
        shutil.copy2(self._root / mutant.path, copy / mutant.path)
        verdict.killed_by = " ".join([end, *report.failed[:1]]) if end else ""
        print(f"  {mutant.path}:{mutant.line}: {mutant.kind}: "
              f"{verdict.killed_by or 'survived'} ({verdict.tests} tests)", flush=True)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", help="a package, a folder or a file; without it all packages")
    parser.add_argument("--count", type=int, default=15, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write all verdicts to this file")
    parser.add_argument("--jobs", type=int, default=2, help="mutants that are judged at a time")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--bare", action="store_true", help="load neither torch nor Qt before")
    options = parser.parse_args()
    # Before numpy and torch are loaded.
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_NUM_THREADS": "1"}
    root = options.root.resolve()
    for name in () if options.bare else _PRELOADED:
        importlib.import_module(name)
    told: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="tensorlab-mutants-") as folder:
        copies = [Path(folder, str(number)) for number in range(2 * options.jobs)]
        for copy in copies:
            shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        reach = Reach(root, copies[options.jobs :], root / "build" / "mutation")
        judge = Judge(root, copies[: options.jobs], reach)
        for package in [options.package] if options.package else PACKAGES:
            verdicts = judge.judge(sample(root, package, options.count, options.seed))
            told[package] = [asdict(verdict) for verdict in verdicts]
            tell(root, package, options.seed, verdicts)
            if options.json:
                options.json.write_text(json.dumps(told, indent=1))
    return 0


def tell(root: Path, package: str, seed: int, verdicts: list[Verdict]) -> None:
    survived = [verdict for verdict in verdicts if not verdict.killed_by]
    for verdict in survived:
        mutant = verdict.mutant
        print(f"survived: {mutant.path}:{mutant.line}: {mutant.kind} ({verdict.tests} tests)")
        print(mutant.difference((root / mutant.path).read_bytes()))
    killed = len(verdicts) - len(survived)
    print(f"{package}: {killed} of {len(verdicts)} killed "
          f"({killed / max(len(verdicts), 1):.0%}), seed {seed}", flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
