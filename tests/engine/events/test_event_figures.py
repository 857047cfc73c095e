"""The scalars of event files as figures of a run, and which folders have some."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from torch.utils.tensorboard import SummaryWriter

from engine.events import reading
from engine.events.reading import EventRun, event_folders, figures_of, files_in, read_events
from engine.events.rows import event_rows
from engine.events.tags import column_of
from engine.runs.record import RunProblem


def told(**tags: dict[int, float]) -> EventRun:
    """The scalars at their steps; a `__` in a name stands for `/`, a `_s_` for a space."""
    named = {name.replace("__", "/").replace("_s_", " "): values for name, values in tags.items()}
    return EventRun({
        tag: {step: (1000.0, value) for step, value in values.items()}
        for tag, values in named.items()
    })  # fmt: skip


def test_figures_of_other_programs_go_to_the_columns_that_they_stand_for() -> None:
    steps, epochs = figures_of(
        told(
            Train__Loss={1: 0.5, 3: 0.25},
            acc={3: 0.75},
            lr={1: 0.1},
            epoch_loss={3: 0.4},
            val_loss={3: 0.6, 9: 0.5},
            Accuracy__Val={9: 0.8},
            epoch__train_s_R2={3: 0.1},
            epoch__validation_s_R2={9: 0.2},
            step__f1={1: 0.3},
            last__step__loss={0: 7.0},
            bleu={7: 30.0},
        ),
        100,
    )
    assert steps.step == (1, 3, 7)
    assert repr(steps.loss) == "(0.5, 0.25, nan)"
    assert repr(steps.accuracy) == "(nan, 0.75, nan)"
    assert repr(steps.learning_rate) == "(0.1, nan, nan)"
    assert repr(steps.gradient_norm) == "(nan, nan, nan)"
    assert repr(steps.figures) == "{'f1': (0.3, nan, nan), 'bleu': (nan, nan, 30.0)}"
    assert (steps.rss_bytes, steps.cuda_allocated_bytes) == ((0, 0, 0), ())
    assert (steps.samples_per_second, steps.gpu_percent) == ((), ())
    first, second = epochs
    assert (first.epoch, first.step, first.train_loss, first.validation_loss) == (1, 3, 0.4, 0.6)
    assert (second.epoch, second.step, second.validation_loss) == (2, 9, 0.5)
    assert math.isnan(first.validation_accuracy) and second.validation_accuracy == 0.8
    assert math.isnan(second.train_loss) and math.isnan(second.train_accuracy)
    assert (first.train_figures, first.validation_figures) == ({"R2": 0.1}, {})
    assert (second.train_figures, second.validation_figures) == ({}, {"R2": 0.2})


def test_the_accuracy_of_training_is_not_that_of_validation() -> None:
    run = told(epoch__train_accuracy={5: 0.9}, epoch__validation_accuracy={5: 0.7})
    (row,) = figures_of(run, 1)[1]
    assert (row.train_accuracy, row.validation_accuracy) == (0.9, 0.7)


def test_memory_is_told_in_whole_bytes_or_not_at_all() -> None:
    steps, _ = figures_of(
        told(
            step__rss_bytes={1: 5.0, 2: 6.0},
            step__cuda_allocated_bytes={1: 5.0},
            step__cuda_reserved_bytes={1: 5.0, 2: math.inf},
        ),
        9,
    )
    assert (steps.rss_bytes, steps.cuda_allocated_bytes, steps.cuda_reserved_bytes) == (
        (5, 6), (), (),
    )  # fmt: skip


def test_of_many_steps_and_epochs_some_are_told_with_the_last() -> None:
    run = told(
        loss={step: float(step) for step in range(1, 11)},
        val_loss={10 * epoch: 1.0 for epoch in range(1, 11)},
    )

    def found(limit: int) -> tuple[list[int], list[int]]:
        steps, epochs = figures_of(run, limit)
        assert steps.loss == tuple(map(float, steps.step))
        assert [row.step for row in epochs] == [10 * row.epoch for row in epochs]
        return list(steps.step), [row.epoch for row in epochs]

    for limit, kept in (
        (10, [*range(1, 11)]), (9, [2, 4, 6, 8, 10]), (5, [2, 4, 6, 8, 10]), (4, [1, 4, 7, 10]),
        (1, [10]),
    ):  # fmt: skip
        assert found(limit) == (kept, kept)


def test_nothing_told_is_no_step() -> None:
    steps, epochs = figures_of(EventRun({}), 10)
    assert (steps.step, epochs) == ((), ())


def test_tags_are_known_in_small_letters_and_our_own_as_they_are() -> None:
    assert [column_of(tag) for tag in ("LOSS", "Val_Loss", "step/loss", "epoch/train_loss")] == [
        "loss", "validation_loss", "loss", "train_loss",
    ]  # fmt: skip
    assert column_of("perplexity") == ""


# -- folders -------------------------------------------------------------------------------------


def made(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "events.out.tfevents.1").write_bytes(b"")


def test_folders_are_found_by_name_but_hidden_ones(tmp_path: Path) -> None:
    made(tmp_path / "b", tmp_path / "a" / "inner", tmp_path / ".hidden", tmp_path / "b" / ".git")
    (tmp_path / "empty").mkdir()
    assert event_folders(tmp_path) == [tmp_path / "a" / "inner", tmp_path / "b"]
    made(tmp_path)
    assert event_folders(tmp_path)[0] == tmp_path


def test_as_many_folders_are_looked_into_as_are_allowed(tmp_path: Path, monkeypatch) -> None:
    made(*(tmp_path / f"{number}" for number in range(6)))
    monkeypatch.setattr(reading, "MAX_RUNS", 4)
    assert [folder.name for folder in event_folders(tmp_path)] == ["0", "1", "2", "3"]
    monkeypatch.setattr(reading, "MAX_FOLDERS", 2)  # after the first one, which is around them
    assert [folder.name for folder in event_folders(tmp_path)] == ["0", "1"]


def test_files_that_are_too_large_together_are_told(tmp_path: Path, monkeypatch) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.tfevents").write_bytes(bytes(8))
    monkeypatch.setattr(reading, "MAX_BYTES", 16)
    assert [size for _, size, _ in files_in(tmp_path)] == [8, 8]
    monkeypatch.setattr(reading, "MAX_BYTES", 15)
    with pytest.raises(RunProblem, match="has more than"):
        files_in(tmp_path)


def test_the_newest_folders_are_read_on_and_older_ones_anew(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(reading, "MAX_READERS", 2)
    monkeypatch.setattr(reading, "_readers", {})
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        with SummaryWriter(str(folder)) as writer:
            writer.add_scalar("loss", 1.0, 1)
    for folder in (*folders[:2], folders[0], folders[2]):
        assert read_events(folder).scalars["loss"] == read_events(folder).scalars["loss"]
    assert list(reading._readers) == [folders[0], folders[2]]


def test_a_row_has_the_times_that_a_date_can_have(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as writer:
        for step, wall_s in enumerate((-1.0, 0.0, 20.0, 30.0, 1e12)):
            writer.add_scalar("loss", 1.0, step, walltime=wall_s)
    (row,) = event_rows(tmp_path)
    assert (row.began_s, row.ended_s, row.title, row.id) == (20.0, 30.0, *2 * (tmp_path.name,))
    assert (row.step, row.loss, row.epoch) == (4, 1.0, None)


def test_a_row_without_a_loss_has_none(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "a")) as writer:
        writer.add_scalar("f1", 0.5, 3, walltime=20.0)
    with SummaryWriter(str(tmp_path / "b")) as writer:
        writer.add_scalar("val_loss", 0.5, 3, walltime=20.0)
    first, second = event_rows(tmp_path)
    assert (first.loss, first.step, first.epoch) == (None, 3, None)
    assert (second.loss, second.step, second.epoch.validation_loss) == (None, 3, 0.5)
