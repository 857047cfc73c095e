"""Event files of TensorBoard: a run goes out and comes in again, and those of other programs."""

from __future__ import annotations

import math
import os
import random
import sqlite3
import struct
import sys
from contextlib import closing
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing import event_file_loader
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from torch.utils.tensorboard import SummaryWriter

from engine.events import reading
from engine.events.reading import event_folders, figures_of, has_events, read_events
from engine.events.rows import event_rows
from engine.events.writing import write_run
from engine.handlers.training.runs import list_runs, read_run
from engine.lab import Lab
from engine.project.document import Project, TrainingSetup
from engine.protocol import EpochRow, ListRunsCommand, ReadRunCommand, StepColumns
from engine.runs.folders import METRICS
from engine.runs.record import RunProblem
from engine.runs.writer import RunWriter
from engine.system.errors import LabError
from tests.fuzz.mutate import broken_bytes

SETUP = TrainingSetup(epochs=2, optimizer_params={"lr": 0.003, "eps": float("inf")}, batch_size=32)


def single(value: float) -> float:
    """As event files keep it: rounded to float32."""
    return struct.unpack("f", struct.pack("f", value))[0]


@pytest.fixture
def run(tmp_path: Path) -> RunWriter:
    """Nine steps with a figure in the last ones, two epochs; the first one has not validated."""
    writer = RunWriter.new(tmp_path / "net.runs", Project(training=SETUP))
    writer.begin()
    numbers = tuple(range(1, 10))
    writer.add(
        StepColumns(
            step=numbers,
            loss=tuple(1 / number for number in numbers),
            accuracy=(math.nan,) * 9,
            gradient_norm=tuple(math.sqrt(number) for number in numbers),
            learning_rate=(0.003,) * 9,
            step_ms=tuple(number / 7 for number in numbers),
            samples_per_second=tuple(number / 9 for number in numbers),
            rss_bytes=tuple(number * 2**20 for number in numbers),
            figures={"R2": (math.nan,) * 6 + (0.5, math.inf, 0.75)},
        ),
        (
            EpochRow(1, 5, 0.7, math.nan, math.nan, math.nan),
            EpochRow(2, 9, 0.3, math.nan, 0.4, 0.9, {"R2": 0.1}, {"R2": 0.2}),
        ),
    )
    writer.end("finished")
    return writer


def test_a_run_goes_out_and_comes_in_again(run: RunWriter, tmp_path: Path) -> None:
    out = tmp_path / "events"
    assert list(write_run(run.folder, out / "one"))[-1] == 9
    assert event_folders(tmp_path) == [out / "one"]
    steps, epochs = figures_of(read_events(out / "one"), 100)
    numbers = range(1, 10)
    assert steps.step == tuple(numbers)
    assert steps.loss == tuple(single(1 / number) for number in numbers)
    assert steps.gradient_norm == tuple(single(math.sqrt(number)) for number in numbers)
    assert steps.learning_rate == (single(0.003),) * 9
    assert steps.step_ms == tuple(single(number / 7) for number in numbers)
    assert steps.samples_per_second == tuple(single(number / 9) for number in numbers)
    assert steps.gpu_percent == ()
    assert steps.rss_bytes == tuple(number * 2**20 for number in numbers)
    assert all(map(math.isnan, steps.accuracy))
    assert repr(steps.figures) == repr({"R2": (math.nan,) * 6 + (0.5, math.inf, 0.75)})
    first, last = epochs
    assert (first.step, first.train_loss) == (5, single(0.7)) and math.isnan(first.validation_loss)
    assert (last.step, last.train_loss, last.validation_loss) == (9, single(0.3), single(0.4))
    assert last.validation_accuracy == single(0.9)
    assert (last.train_figures, last.validation_figures) == (
        {"R2": single(0.1)}, {"R2": single(0.2)},
    )  # fmt: skip


def test_tensorboard_reads_it_with_steps_times_and_settings(run: RunWriter, tmp_path: Path) -> None:
    list(write_run(run.folder, tmp_path / "events"))
    theirs = EventAccumulator(str(tmp_path / "events"))
    theirs.Reload()
    losses = theirs.Scalars("step/loss")
    assert [(event.step, event.value) for event in losses] == [
        (number, single(1 / number)) for number in range(1, 10)
    ]
    with closing(sqlite3.connect(run.folder / METRICS)) as told:
        (told_s,) = told.execute("SELECT DISTINCT wall_s FROM steps").fetchone()
    assert {event.wall_time for event in losses} == {told_s} and told_s > run.record.began_s
    assert theirs.Scalars("epoch/validation_loss")[-1].wall_time == told_s
    text = theirs.Tensors("settings/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "| optimizer_params.lr | 0.003 |" in text and "| batch_size | 32 |" in text
    content = theirs.PluginTagToContent("hparams")["_hparams_/session_start_info"]
    session = HParamsPluginData.FromString(content).session_start_info
    assert session.hparams["lr"].number_value == 0.003 and "last/epoch/loss" not in session.hparams
    assert session.hparams["batch_size"].number_value == 32


def test_event_files_of_another_program_are_listed_and_read(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "old" / "a")) as writer:
        for step in range(5):
            writer.add_scalar("Loss/train", 1 / (step + 1), step, walltime=1000.0 + step)
            writer.add_scalar("F1", step / 8, step, walltime=1000.0 + step, new_style=True)
        writer.add_scalar("Loss/train", 0.125, 4, walltime=1010.0)  # told again
        writer.add_scalars("both", {"x": 1.0}, 3)
        writer.add_histogram("weights", torch.tensor([1.0, 2.0]), 3)
        writer.add_text("note", "no figure", 3)
    (listed,) = list_runs(Lab(lambda _: None), ListRunsCommand(runs=str(tmp_path), events=True))
    row = next(row for row in listed.runs if row.title == "old/a")
    assert (row.state, row.step, row.loss, row.began_s, row.ended_s) == (
        "event files", 4, 0.125, 1000.0, 1010.0,
    )  # fmt: skip
    (kept,) = read_run(Lab(lambda _: None), ReadRunCommand(folder=row.folder))
    assert kept.steps.step == (0, 1, 2, 3, 4)
    assert kept.steps.loss == tuple(map(single, (1, 1 / 2, 1 / 3, 1 / 4, 0.125)))
    assert kept.steps.figures == {"F1": (0, 1 / 8, 2 / 8, 3 / 8, 4 / 8)}
    (plain,) = list_runs(Lab(lambda _: None), ListRunsCommand(runs=str(tmp_path)))
    assert plain.runs == ()


def test_a_folder_that_has_something_is_not_written(run: RunWriter, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(LabError, match="has something already"):
        list(write_run(run.folder, tmp_path / "full"))


def test_a_machine_without_tensorboard_is_told_what_to_install(run, tmp_path, monkeypatch) -> None:
    with SummaryWriter(str(tmp_path / "old")) as writer:
        writer.add_scalar("loss", 1.0, 1)
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(LabError, match="TensorBoard is not installed") as told:
        list(write_run(run.folder, tmp_path / "out"))
    assert "pip install 'tensorlab[tensorboard]'" in told.value.hint
    assert not (tmp_path / "out").exists()
    command = ListRunsCommand(runs=str(tmp_path), events=True)
    (listed,) = list_runs(Lab(lambda _: None), command)
    assert "TensorBoard is not installed" in listed.problem and "pip install" in listed.problem


def test_damaged_event_files_are_told_or_read_as_far_as_they_go(run, tmp_path: Path) -> None:
    list(write_run(run.folder, tmp_path / "whole"))
    (whole,) = (tmp_path / "whole").iterdir()
    data, random_ = whole.read_bytes(), random.Random(3)
    outcomes = set()
    for number in range(150):
        folder = tmp_path / f"damaged-{number}"
        folder.mkdir()
        (folder / whole.name).write_bytes(broken_bytes(data, random_))
        (row,) = event_rows(folder)
        outcomes.add(row.state)
        assert row.state == "event files" or "event" in row.problem
    assert "event files" in outcomes
    (tmp_path / "none").mkdir()
    assert not has_events(tmp_path / "none")
    with pytest.raises(RunProblem, match="no event files"):
        read_events(tmp_path / "none")


def test_files_that_grow_are_read_on_and_not_from_their_beginning(tmp_path, monkeypatch) -> None:
    opened: list[str] = []
    whole = event_file_loader.RawEventFileLoader.__init__

    def seen(loader, path: str) -> None:
        opened.append(path)
        whole(loader, path)

    monkeypatch.setattr(event_file_loader.RawEventFileLoader, "__init__", seen)
    folder = tmp_path / "live"
    writer = SummaryWriter(str(folder))
    writer.add_scalar("loss", 1.0, 1)
    writer.flush()
    (first,) = event_rows(tmp_path)
    assert (first.step, first.loss) == (1, 1.0)
    assert event_rows(tmp_path) == [first]
    writer.add_scalar("loss", 0.5, 2)
    writer.add_scalar("loss", 0.25, 3)
    writer.flush()
    (second,) = event_rows(tmp_path)
    assert (second.step, second.loss) == (3, 0.25) and second.told_s >= first.told_s
    assert read_events(folder).scalars["loss"].keys() == {1, 2, 3} and len(opened) == 1
    writer.close()
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes()[:-20])  # begun anew: less than was read
    assert read_events(folder).scalars["loss"].keys() == {1, 2} and len(opened) == 2


def test_a_file_of_the_same_size_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    for name, value in ("a", 1.0), ("b", 2.0):
        with SummaryWriter(str(tmp_path / name)) as writer:
            writer.add_scalar("loss", value, 1)
    (path,), (other,) = (tmp_path / "a").iterdir(), (tmp_path / "b").iterdir()
    assert read_events(path.parent).scalars["loss"][1][1] == 1.0
    data = other.read_bytes()
    assert len(data) == path.stat().st_size
    path.write_bytes(data)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))
    assert read_events(path.parent).scalars["loss"][1][1] == 2.0


def test_as_many_tags_and_values_are_read_as_are_allowed(tmp_path: Path, monkeypatch) -> None:
    def left(name: str, tags: int, steps: int) -> str:
        with SummaryWriter(str(tmp_path / name)) as writer:
            for step in range(steps):
                for tag in range(tags):
                    writer.add_scalar(str(tag), 1.0, step)
        found = read_events(tmp_path / name)
        assert len(found.scalars) == min(tags, 3)
        assert sum(map(len, found.scalars.values())) == min(tags * steps, 6)
        return found.left_out

    monkeypatch.setattr(reading, "MAX_TAGS", 3)
    monkeypatch.setattr(reading, "MAX_VALUES", 6)
    assert left("all", 3, 2) == ""
    assert "first 3 tags" in left("tags", 4, 2)
    assert "first 6 values" in left("values", 3, 3)


def test_an_event_that_is_not_whole_yet_comes_later(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "a")) as writer:
        for step in (1, 2):
            writer.add_scalar("loss", 1 / step, step)
    (source,) = (tmp_path / "a").iterdir()
    data = source.read_bytes()
    live = tmp_path / "live" / source.name
    live.parent.mkdir()
    seen = []
    for end in range(len(data) - 100, len(data) + 1):
        live.write_bytes(data[:end])
        seen.append(len(read_events(live.parent).scalars.get("loss", {})))
    assert seen[-1] == 2 and seen == sorted(seen)
