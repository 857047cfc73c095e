"""Words at steps of the plots through the window: written, changed, undone, kept with the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.protocol import Annotation, TrainingSnapshot
from engine.runs import annotations
from widgets.training.plots.plots import LivePlot

pytestmark = pytest.mark.one_program


def noted(program, plot: str = "loss") -> list[tuple[int, str]]:
    return list(program.window.page("train").board.plots[plot]._notes)


def test_words_are_kept_with_the_run_and_undone(mlp, answers, monkeypatch) -> None:
    view, bench, actions = mlp.window.page("train"), mlp.bench, mlp.bench.actions
    monkeypatch.setattr(LivePlot, "underMouse", lambda _: False)  # wherever a test has left it
    asked: list[tuple[str, str]] = []
    words: list[str | None] = ["a  first \n word", "another", None, ""]

    def ask_line(_parent, _title: str, label: str, text: str) -> str | None:
        asked.append((label, text))
        return words.pop(0)

    monkeypatch.setattr(answers, "ask_line", ask_line, raising=False)
    for _ in range(2):
        view.bar.step_requested.emit()
        bench.link.drain()
    run = bench.newest(TrainingSnapshot)
    folder = Path(run.folder)
    was_modified = bench.files.document_modified
    actions["train.annotate"].trigger()
    bench.link.drain()
    assert noted(mlp) == [(2, "a first word")] and noted(mlp, "accuracy") == [(2, "")]
    assert annotations.load(folder) == (Annotation(2, "a first word"),)
    assert actions["edit.undo"].text().endswith("Annotate step 2")
    assert bench.files.document_modified == was_modified  # it is not of the project
    actions["train.annotate"].trigger()
    assert noted(mlp) == [(2, "another")]
    actions["edit.undo"].trigger()
    assert noted(mlp) == [(2, "a first word")]
    actions["train.annotate"].trigger()  # cancelled
    assert noted(mlp) == [(2, "a first word")]
    actions["train.annotate"].trigger()
    bench.link.drain()
    assert noted(mlp) == [] and annotations.load(folder) == ()
    actions["edit.undo"].trigger()
    bench.link.drain()
    assert annotations.load(folder) == (Annotation(2, "a first word"),)
    assert [text for _, text in asked] == ["", "a first word", "a first word", "a first word"]
    assert "leave them out to delete" in asked[1][0] and "leave" not in asked[0][0]

    view.bar.step_requested.emit()
    bench.link.drain()
    mlp.workspaces.train.back()  # the past of this run goes on as another run
    bench.link.drain()
    fork = bench.newest(TrainingSnapshot)
    assert fork.run != run.run and noted(mlp) == [(2, "a first word")]
    bench.link.stop_job()
    bench.link.drain()
