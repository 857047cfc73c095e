"""Which tests run which blocks of the code: found by running test files once over code that tells.

The compiled files of a copy of the program tell, not its source: Python takes a compiled file that
is marked "unchecked" without a look at the source, in every process, and tracebacks, `inspect` and
line numbers are as ever.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from importlib import _bootstrap_external  # pyright: ignore[reportAttributeAccessIssue]
from pathlib import Path
from typing import Any

from tests.mutation.forks import CODE, Job, Report, run_all
from tests.mutation.mutants import Mutant, blocks

_TELL = """
def _tell_(number, told=set()):
    import os, struct, zlib
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if (number, test) not in told:
        told.add((number, test))
        name = test.rpartition(" ")[0]
        if test.endswith("(setup)"):  # what is set up may be for all tests of the file
            name = test.partition("::")[0]
        try:
            with open({log!r}, "ab") as log:
                log.write(struct.pack("=II", number, zlib.crc32(name.encode())))
        except OSError:  # in tests of a full disk
            pass
"""


def make_telling(root: Path, folders: list[str], log: Path) -> list[str]:
    """Compile all code under `root`, so that each block of a function tells `log` the first time
    that a test runs it. Returns the names of the blocks, `path#block`, by their numbers."""
    names: list[str] = []
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.py")):
        tree = ast.parse(path.read_bytes())
        for block, statements in blocks(tree):
            if block:
                call = ast.parse(f"_tell_({len(names)})").body[0]
                for node in ast.walk(call):
                    ast.copy_location(node, statements[0])
                statements.insert(1 if _is_docstring(statements[0]) else 0, call)
                names.append(f"{path.relative_to(root).as_posix()}#{block}")
        at = sum(
            _is_docstring(statement)
            or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")
            for statement in tree.body
        )
        tree.body[at:at] = ast.parse(_TELL.format(log=str(log))).body
        compiled = compile(tree, str(path), "exec", dont_inherit=True)
        data = _bootstrap_external._code_to_hash_pyc(compiled, bytes(8), checked=False)
        target = Path(importlib.util.cache_from_source(str(path)))
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
    return names


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def told(log: Path, names: list[str], tests: list[str]) -> dict[str, list[str]]:
    """The tests that ran each block: of the file's tests all, where a fixture ran it."""
    by_hash: dict[int, list[str]] = defaultdict(list)
    for test in tests:
        by_hash[zlib.crc32(test.encode())] = [test]
        by_hash[zlib.crc32(test.partition("::")[0].encode())].append(test)
    reached: dict[str, set[str]] = defaultdict(set)
    for number, test in struct.iter_unpack("=II", log.read_bytes() if log.exists() else b""):
        reached[names[number]].update(by_hash.get(test, ()))
    return {block: sorted(found) for block, found in reached.items() if found}


class Reach:
    """Which tests run which blocks. What was found for a file of tests is kept in `folder`."""

    def __init__(self, root: Path, copies: list[Path], folder: Path) -> None:
        self._root, self._copies, self._folder = root, copies, folder
        self._names: list[str] = []
        self._known: dict[str, dict[str, Any]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def survey(self, tests: Iterable[str]) -> None:
        """Run those of the test files that were not run before."""
        jobs = []
        for test in dict.fromkeys(tests):
            kept = self._kept(test)
            if kept.exists():
                self._known[test] = json.loads(kept.read_text())
            else:
                jobs.append(Job([test], 600, self._prepare, partial(self._done, test)))
        run_all(jobs, self._copies)

    def tests(self, mutant: Mutant, among: list[str]) -> dict[str, float]:
        """The tests of these files that run the mutant's block, with their seconds: the files in
        this order, of each the short tests first. Of what runs at import, all that run the file."""
        found: dict[str, float] = {}
        block = f"{mutant.path}#{mutant.block}"
        for known in map(self._known.__getitem__, among):
            names = [b for b in known["blocks"] if b == block or not mutant.block]
            tests = {test for name in names if name.startswith(block)
                     for test in known["blocks"][name]}  # fmt: skip
            seconds = known["passed"]
            found |= {test: seconds[test] for test in sorted(tests, key=seconds.get)}
        return found

    def _kept(self, test: str) -> Path:
        content = test.encode() + (self._root / test).read_bytes()
        return self._folder / f"{hashlib.sha1(content).hexdigest()}.json"

    def _prepare(self, copy: Path) -> None:
        log = copy / "log"
        if not log.exists():
            self._names = make_telling(copy, CODE, log)
        log.write_bytes(b"")

    def _done(self, test: str, copy: Path, report: Report, end: str) -> None:
        blocks = told(copy / "log", self._names, list(report.passed))
        self._known[test] = {"passed": report.passed, "blocks": blocks}
        self._kept(test).write_text(json.dumps(self._known[test]))
        if report.failed or end not in ("", "exit 5"):  # 5: it has no test
            print(f"without a mutant: {test}: {end} {' '.join(report.failed)}", flush=True)
