"""Broken folders of runs: each is listed in words, and opened or refused, and can be written on."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from torch import nn

from app.commands.runs import run_report, words_of
from engine.handlers.training.runs import list_runs
from engine.lab import Lab
from engine.project.document import DataSetup, Project, TrainingSetup
from engine.protocol import (
    CompareRunsCommand,
    EpochRow,
    ListRunsCommand,
    NoteRunCommand,
    ReadRunCommand,
    RunsSnapshot,
    StepColumns,
    decode_snapshot,
    encode_snapshot,
)
from engine.runs import folders
from engine.runs.record import FILE, Trial
from engine.runs.writer import RunWriter
from engine.server.session import handler_of
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.loop import TrainingLoop
from tests.fuzz.mutate import broken_bytes, damaged, nasty
from widgets.runs.run_words import sweep_words, texts, tips

SETUP = TrainingSetup(data=DataSetup("moons", {"samples": 50}), batch_size=16, epochs=2)
TABLES = {
    "steps": ("step", "loss", "accuracy", "rss_bytes", "cuda_allocated_bytes", "wall_s"),
    "step_figures": ("step", "name", "value"),
    "epochs": ("epoch", "step", "train_loss", "validation_accuracy"),
    "epoch_figures": ("epoch", "part", "name", "value"),
}


class Runs:
    """Makes a broken file of a run's folder a call, and tries the folder."""

    def __init__(self, random_: random.Random, folder: Path) -> None:
        self._random, self._runs = random_, folder / "runs"
        self._whole = _run(folder / "whole")
        self._last: Path | None = None
        self._lab = Lab(emit=lambda snapshot: None)
        self._names = 0

    def make(self) -> Path:
        if self._last is not None:
            shutil.rmtree(self._last)
        self._names += 1
        folder = self._last = self._runs / f"run-{self._names}"
        shutil.copytree(self._whole, folder)
        kind = self._random.choice((FILE, FILE, FILE, "sql", "sql", folders.METRICS, "checkpoint"))
        if kind == "checkpoint":
            (path,) = (folder / folders.CHECKPOINTS).iterdir()
        else:
            path = folder / (folders.METRICS if kind == "sql" else kind)
        if kind == "sql":
            self._break_tables(path)
        elif kind == FILE and self._random.random() < 0.8:
            path.write_text(json.dumps(self._damaged(json.loads(path.read_text()))), "utf-8")
        else:
            path.write_bytes(broken_bytes(path.read_bytes(), self._random))
        return path

    def _damaged(self, document: dict) -> object:
        document = damaged(document, self._random)
        if isinstance(document, dict) and self._random.random() < 0.5:
            field = self._random.choice(("writer", "trial", "began_s", "state", "note", "versions"))
            document[field] = nasty(self._random)
        return document

    def _break_tables(self, path: Path) -> None:
        random_ = self._random
        with closing(sqlite3.connect(path)) as connection:
            for _ in range(random_.choice((1, 1, 2, 4))):
                table = random_.choice(list(TABLES))
                column = random_.choice(TABLES[table])
                value = nasty(random_)
                if isinstance(value, list | dict):
                    value = b"\xff\0" * 3
                try:
                    match random_.randrange(6):
                        case 0:
                            connection.execute(f"DROP TABLE {table}")
                        case 1:
                            connection.execute(f"DELETE FROM {table}")
                        case 2:
                            connection.execute(f"PRAGMA user_version = {random_.randrange(-1, 5)}")
                        case 3:
                            connection.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO x")
                        case _:
                            connection.execute(
                                f"UPDATE OR IGNORE {table} SET {column} = ?", [value]
                            )
                except (sqlite3.Error, OverflowError, UnicodeEncodeError):
                    continue  # SQLite refuses it, or it was dropped before
            connection.commit()

    def attempt(self, path: Path) -> str:
        """Raises what the program may not raise. Returns "refused" or "opened"."""
        folder = path.parent if path.name in (FILE, folders.METRICS) else path.parents[1]
        lab, there, whole = self._lab, str(folder), str(self._whole)
        (listed,) = list_runs(lab, ListRunsCommand(runs=str(folder.parent)))
        told = decode_snapshot(encode_snapshot(listed))
        assert isinstance(told, RunsSnapshot)
        (row,) = told.runs
        assert row.state != "damaged" or row.problem
        for words in (*texts(row, told.read_s), *tips(row, told.read_s), words_of(row)):
            words.encode()
        json.dumps(run_report(row), allow_nan=False)
        if row.trial is not None:
            sweep_words([row]).encode()
        outcome = "refused" if row.problem else "opened"
        for command in (
            ReadRunCommand(folder=there),
            CompareRunsCommand(first=there, second=whole),
            NoteRunCommand(folder=there, note="x"),
        ):
            try:
                for snapshot in handler_of(type(command))(lab, command):
                    if snapshot is not None:
                        decode_snapshot(encode_snapshot(snapshot))
            except LabError as error:
                _require_words(error)
                outcome = "refused"
        try:
            writer = RunWriter.resumed(folder, "x", Project(training=SETUP))
            writer.begin(4)
            writer.add(StepColumns((5,), (0.5,), (0.5,), (0.5,), (0.5,), (0.5,), (5,)), ())
            writer.end("stopped")
            writer.problem.encode()
        except LabError as error:
            _require_words(error)
        return outcome


def _run(folder: Path) -> Path:
    """A run that has ended, with figures of all kinds and a checkpoint."""
    loop = TrainingLoop(nn.Linear(2, 2), SETUP)
    steps = loop.steps()
    for _ in range(4):
        next(steps)
    steps.close()
    writer = RunWriter.new(folder.parent, Project(training=SETUP), folder)
    writer.tag(Trial("sweep", 1, {"batch_size": 16, "optimizer_params.lr": 0.1}, value=0.5))
    writer.begin()
    figures = tuple(map(float, range(1, 5)))
    columns = StepColumns((1, 2, 3, 4), *[figures] * 5, (1, 2, 3, 4), figures={"R2": figures})
    writer.add(columns, (EpochRow(1, 4, 1.0, 0.5, 2.0, 0.25, {"R2": 1.0}, {"R2": 2.0}),))
    checkpoint_files.save(loop.checkpoint(writer.record.id), folder)
    writer.end("finished")
    loop.close()
    return folder


def _require_words(error: LabError) -> None:
    assert str(error).strip() and error.hint
    str(error).encode()
