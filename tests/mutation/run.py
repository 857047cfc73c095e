"""Make small wrong edits in a package, and count those that its tests notice: `make mutate`.

A mutant is judged in a copy of the program, first by the tests beside it in tests/ or that import
its room, then by those of the rooms that use it, those first that name its function. It is killed
as soon as one fails that passes without it. What survives is printed.
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
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tests.mutation.choosing import PACKAGES, near_tests, sample, wide_tests
from tests.mutation.forks import end_of, start
from tests.mutation.judging import Verdict, judge
from tests.mutation.mutants import Mutant

_PRELOADED = (
    "torch", "torch._dynamo", "torch.distributed", "sklearn.datasets", "PySide6.QtTest",
    "PySide6.QtSvg", "pyqtgraph", "qtawesome", "hypothesis", "safetensors.torch", "optuna",
)  # fmt: skip
ROOT = Path(__file__).parents[2]
_NOT_COPIED = {".git", ".venv", ".hypothesis", "build", "dist", "tour"}
"""Of the root: a room may have such a name."""
_NOT_SWAPPED = "exit 71"


class Sampler:
    def __init__(self, root: Path, folder: Path, cpu_s: float) -> None:
        self._root, self._folder, self._cpu_s = root, folder, cpu_s
        self._copies = 0

    def judged(self, mutants: list[Mutant], is_wide: bool) -> list[Verdict]:
        verdicts = self._round(mutants, near_tests)
        if is_wide:
            alive = [each.mutant for each in verdicts if not each.killed_by]
            wider = {each.mutant: each for each in self._round(alive, wide_tests)}
            for verdict in verdicts:
                again = wider.get(verdict.mutant, Verdict(verdict.mutant))
                verdict.tests += again.tests
                verdict.killed_by = verdict.killed_by or again.killed_by
        return verdicts

    def _round(
        self, mutants: list[Mutant], select: Callable[[Path, str], list[str]]
    ) -> list[Verdict]:
        """Judge them with what is selected: those inside of functions in one process."""
        inside = [mutant for mutant in mutants if mutant.function]
        verdicts = self._process(inside, select, is_loaded=False)
        outside = [v.mutant for v in verdicts if v.killed_by == _NOT_SWAPPED]
        verdicts = [verdict for verdict in verdicts if verdict.killed_by != _NOT_SWAPPED]
        for mutant in [*outside, *(mutant for mutant in mutants if not mutant.function)]:
            verdicts += self._process([mutant], select, is_loaded=True)
        return sorted(verdicts, key=lambda verdict: mutants.index(verdict.mutant))

    def _not_copied(self, folder: str, names: list[str]) -> set[str]:
        return _NOT_COPIED.intersection(names) if Path(folder) == self._root else set()

    def _process(
        self, mutants: list[Mutant], select: Callable[[Path, str], list[str]], is_loaded: bool
    ) -> list[Verdict]:
        paths = dict.fromkeys(mutant.path for mutant in mutants)
        chosen = {path: select(self._root, path) for path in paths}
        if not any(chosen.values()):
            return [Verdict(mutant) for mutant in mutants]
        self._copies += 1
        copy = self._folder / str(self._copies)
        shutil.copytree(self._root, copy, ignore=self._not_copied)
        if is_loaded:
            path = copy / mutants[0].path
            path.write_bytes(mutants[0].applied(path.read_bytes()))
            os.utime(path, (1, 1))  # a compiled file of the same second would be taken for it
        end = end_of(start(partial(judge, copy, chosen, mutants, self._cpu_s, is_loaded)), 1e6)
        found = copy / "verdicts"
        lines = found.read_text().splitlines() if found.exists() else []
        verdicts = [Verdict(**told | {"mutant": Mutant(**told["mutant"])})
                    for told in map(json.loads, lines)]  # fmt: skip
        if is_loaded and not verdicts:  # the tests could not be collected
            verdicts = [Verdict(mutants[0], 0, end)]
        elif len(verdicts) < len(mutants):
            raise RuntimeError(f"{end}: {(copy / 'output.txt').read_text()[-3000:]}")
        shutil.rmtree(copy)
        return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", action="append", help="a folder or a file, or several")
    parser.add_argument("--count", type=int, default=15, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", type=float, default=120, help="seconds of tests for each mutant")
    parser.add_argument("--near", action="store_true", help="leave out tests of other rooms")
    parser.add_argument("--json", type=Path, help="write all verdicts to this file")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--bare", action="store_true", help="load neither torch nor Qt before")
    options = parser.parse_args()
    root = options.root.resolve()
    # Before numpy and torch are loaded: a process with other threads cannot be forked.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    for name in () if options.bare else _PRELOADED:
        importlib.import_module(name)
    packages = options.package or PACKAGES
    chosen = {name: sample(root, name, options.count, options.seed) for name in packages}
    with tempfile.TemporaryDirectory(prefix="tensorlab-mutants-") as folder:
        sampler = Sampler(root, Path(folder), options.cpu)
        every = list(dict.fromkeys(itertools.chain(*chosen.values())))
        verdicts = {v.mutant: v for v in sampler.judged(every, not options.near)}
    told = {name: [verdicts[mutant] for mutant in mutants] for name, mutants in chosen.items()}
    for name in packages:
        tell(root, name, options.seed, told[name])
    if options.json:
        plain = {name: [asdict(verdict) for verdict in told[name]] for name in packages}
        options.json.write_text(json.dumps(plain, indent=1))
    return 0


def tell(root: Path, package: str, seed: int, verdicts: list[Verdict]) -> None:
    survived = [verdict for verdict in verdicts if not verdict.killed_by]
    for verdict in survived:
        print(
            verdict, verdict.mutant.difference((root / verdict.mutant.path).read_bytes()), sep="\n"
        )
    killed = len(verdicts) - len(survived)
    print(f"{package}: {killed} of {len(verdicts)} killed "
          f"({killed / max(len(verdicts), 1):.0%}), seed {seed}", flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
