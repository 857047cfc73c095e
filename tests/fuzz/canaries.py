"""Projects, runs and recovered work whose texts are code: opening them in a window with an engine
runs nothing of it."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication

from app.application import build
from app.autosave import find_recoveries
from app.processes.inline_link import InlineLink
from app.settings import Settings
from engine.project import files
from engine.project.document import GIVEN, Project
from engine.protocol import (
    CheckTrainingCommand,
    DescribeDataCommand,
    FindCheckpointCommand,
    ListRunsCommand,
    PreviewRatesCommand,
    ReadStructureCommand,
    RunCellCommand,
    StartForwardCommand,
    TrainCommand,
    WriteStepCommand,
)
from engine.runs.record import FILE, RunProblem, load
from tests.fuzz.mutate import CANARY, CODE
from tests.fuzz.projects import TEMPLATES
from tests.fuzz.runs import _run
from tests.fuzz.windows import _Discards

STEP = "def step(batch):\n    return 0"
SPELLINGS = (
    CODE,
    f"({CODE}, 1)",
    f'f"{{{CODE}}}"',
    f'f"{{0:{{{CODE}}}}}"',
    f"torch.os.mkdir({CANARY!r})",
    f"torch.__dict__['os'].mkdir({CANARY!r})",
    f"().__class__.__base__.__subclasses__() and {CODE}",
    "torch.canary",
    "[torch.canary for _ in 'x' if torch.canary()]",
    f"@(lambda f: {CODE})\n{STEP}",
    f"{STEP}\n{CODE}",
    "canary.py:x",
    "canary.pt2",
)
"""`torch.canary` is a function that the maker puts there: a name that must not be called."""
CELL = """
net = nn.Linear(64, 10)
x = d = v = torch.ones(4, 64), torch.arange(4)
"""
"""What the user has run: the document's names are there, and its other texts could be reached."""
ASKED = (
    ReadStructureCommand, DescribeDataCommand, FindCheckpointCommand, WriteStepCommand,
    CheckTrainingCommand, PreviewRatesCommand, StartForwardCommand, TrainCommand,
)  # fmt: skip
"""What the pages of a window ask about a project, and what a user presses without an answer to the
question about its Python."""
CODE_FIELDS = (*GIVEN, "expression", "data", "validation", "step", "path", "lr_lambda", "source")
PLACES = ("file", "file", "recovery", "run")


class Canaries:
    """Makes one file a call: each text of each base in turn, each time in the next spelling."""

    def __init__(self, random_: random.Random, folder: Path, stack: ExitStack) -> None:
        self._random, self._folder = random_, folder
        qt = QApplication.instance() or QApplication(["tensorlab"])
        assert isinstance(qt, QApplication)
        self._qt = qt
        torch.canary = lambda *_args, **_named: os.mkdir(CANARY)
        stack.callback(lambda: delattr(torch, "canary"))
        (folder / "canary.py").write_text(f"{CODE}\nx = 1\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch.jit is deprecated; its files stay
            torch.jit.save(torch.jit.script(torch.nn.Linear(64, 10)), folder / "canary.pt2")
        self._run = _run(folder / "whole")
        store = QSettings(str(folder / "s.ini"), QSettings.Format.IniFormat)
        for name in ("theme", "trace/code", "attach/address", "recent_files", "train/parameters"):
            store.setValue(name, CODE)
        self._recovery = folder / "recovery"
        self._recovery.mkdir()
        self._application = build(
            link_factory=InlineLink, dialogs=_Discards(native=False), settings=Settings(store),
            recovery=self._recovery,
        )  # fmt: skip
        self._application.window.show()
        stack.callback(self._close)
        for page in ("model", "autograd", "tensors", "train"):
            self._application.window.show_workspace(page)
        self._application.bench.link.start()
        self._application.bench.send(RunCellCommand(source=CELL))
        self._application.bench.link.drain()
        self._errors: list[BaseException] = []
        hook, sys.excepthook = sys.excepthook, lambda kind, error, trace: self._errors.append(error)
        stack.callback(lambda: setattr(sys, "excepthook", hook))
        self._turns = self._texts()
        self._made = 0

    def _texts(self) -> Iterator[tuple[dict[str, Any], list[Any], str]]:
        """Each text of each base: those that are Python in every spelling, others in one."""
        while True:
            turns = []
            for base in bases():
                for number, path in enumerate(_paths(base)):
                    spellings = SPELLINGS if path[-1] in CODE_FIELDS else (SPELLINGS[number % 13],)
                    turns += [(base, path, spelling) for spelling in spellings]
            self._random.shuffle(turns)
            yield from turns

    def make(self) -> Path:
        base, path, spelling = next(self._turns)
        document = copy.deepcopy(base)
        holder = document
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = spelling
        place = PLACES[self._made % len(PLACES)]
        self._made += 1
        match place:
            case "recovery":
                made = self._recovery / f"{self._made}.recovery"
                record: Any = {"original": "", "project": document}
            case "run":
                record = {**json.loads((self._run / FILE).read_text()), "project": document}
                made = self._folder / "runs" / f"run-{self._made}" / FILE
                shutil.copytree(self._run, made.parent)
            case _:
                made, record = self._folder / f"{self._made}.tlab", document
        made.write_text(json.dumps(record), "utf-8")
        return made

    def attempt(self, path: Path) -> str:
        """Open it in the window, and ask about it. Raises what the program may not raise."""
        bench = self._application.bench
        if path.name == FILE:
            is_opened = bench.files.new()
            bench.send(ListRunsCommand(runs=str(path.parents[1])))
            pane = self._application.window.page("train").runs
            pane.settings_requested.emit(str(path.parent))  # read, and taken over
            bench.link.drain()
            try:
                load(path.parent)
            except RunProblem:
                is_opened = False
        elif path.suffix == ".tlab":
            is_opened = bench.files.open(str(path))
        else:
            found = [each for each in find_recoveries(path.parent) if each.file == path]
            for recovery in found:
                bench.files.recover(recovery.project, recovery.original)
                recovery.lock.unlock()
            is_opened = bool(found)
        project = bench.project
        fields = {
            "subject": project.subject, "objective": project.objective, "model": project.model,
            "training": project.training, "data": project.training.data,
        }  # fmt: skip
        for kind in ASKED:
            given = {name: value for name, value in fields.items() if hasattr(kind, name)}
            more = (
                {"paused": True, "runs": str(self._folder / "own")} if kind is TrainCommand else {}
            )
            bench.send(kind(**given, **more))
        bench.link.drain()
        self._qt.processEvents()
        errors, self._errors = self._errors, []
        if errors:
            raise errors[0]
        return "opened" if is_opened else "refused"

    def _close(self) -> None:
        self._application.window.close()
        self._application.window.deleteLater()
        self._application.deleteLater()
        self._qt.processEvents()


def bases() -> Iterator[dict[str, Any]]:
    """Documents in which each text that may be code is filled in."""
    mlp = json.loads((TEMPLATES / "mlp.tlab").read_bytes())
    empty = json.loads(files.dumps(Project()))
    given = dict.fromkeys(("worker_init_fn", "collate_fn"), "x")
    objective = {"data": "d", "validation": "v", "step": STEP}
    schedule = {"kind": "lr_scheduler.LambdaLR", "params": {"lr_lambda": "0.5 ** step"}}
    cells = [{"id": "c1", "source": "x = 1"}]
    data = {"kind": "console", "path": "x", "loading": given}
    for document in (mlp, empty):
        document["cells"] = cells
        training = {**document.get("training", {}), "data": data, "schedule": schedule}
        document["training"], document["objective"] = training, objective
    yield mlp
    for subject in (
        {"type": "console", "expression": "net"},
        {"type": "file", "path": "canary.py", "expression": "Net()"},
        {"type": "file", "path": "canary.pt2", "expression": "model"},
    ):
        yield {**copy.deepcopy(empty), "subject": subject}
        of_setup = {**objective, "of_setup": True, "loss_of_setup": True}
        yield {**copy.deepcopy(empty), "subject": subject, "objective": of_setup}


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each text in a document."""
    if isinstance(value, str):
        yield above
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _paths(inner, (*above, key))
