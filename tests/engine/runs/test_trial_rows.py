"""The trials of a sweep in the list of runs: their figure, and which is the best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.project.document import Project
from engine.protocol import TrialRow
from engine.runs import record
from engine.runs.record import RunState, Trial
from engine.runs.summary import row_of, rows_in
from engine.runs.writer import RunWriter


def kept(runs: Path, state: RunState = "finished", began_s: float = 1.0, **trial: Any) -> Path:
    """The folder of a run that was a trial."""
    writer = RunWriter.new(runs, Project())
    writer.begin()
    writer.end("stopped")
    told = replace(writer.record, state=state, began_s=began_s, trial=Trial(**trial))
    record.save(writer.folder, told)
    return writer.folder


@pytest.mark.parametrize(
    ("state", "is_pruned", "value", "told"),
    [
        ("finished", False, 0.5, (0.5, "")),
        ("finished", False, None, (None, "")),
        ("stopped", False, 0.5, (None, "")),  # not that of its last epoch
        ("failed", False, 0.5, (None, "")),
        ("stopped", True, 0.5, (0.5, "pruned")),
    ],
)
def test_a_trial_has_its_figure_once_it_has_ended(tmp_path: Path, state, is_pruned, value, told):
    folder = kept(tmp_path, state, sweep="s", number=2, values={"lr": 0.1, "batch": 8},
                  figure="loss", value=value, is_pruned=is_pruned)  # fmt: skip
    row = row_of(folder).trial
    assert row == TrialRow(
        sweep="s", number=2, values=row.values, figure="loss", value=told[0], state=told[1]
    )
    assert "0.1" in str(row.values) and "8" in str(row.values)


@pytest.mark.parametrize(("maximise", "best"), [(False, [2, 1]), (True, [4, 1])])
def test_the_best_trial_of_each_sweep_is_marked(tmp_path: Path, maximise: bool, best) -> None:
    """The first of equal ones; none that was pruned or has no figure."""
    values = {1: 0.5, 2: 0.2, 3: 0.2, 4: 0.9, 5: 0.9, 6: 0.0 if not maximise else 2.0, 7: None}
    for number, value in values.items():
        kept(tmp_path, began_s=number, sweep="s", number=number, value=value,
             maximise=maximise, is_pruned=number == 6)  # fmt: skip
    kept(tmp_path, began_s=9.0, sweep="t", number=1, value=7.0, maximise=maximise)
    rows = rows_in(tmp_path)
    assert [row.began_s for row in rows] == [9, 7, 6, 5, 4, 3, 2, 1]
    marked = [(row.trial.sweep, row.trial.number) for row in rows if row.trial.state == "best"]
    assert sorted(marked) == [("s", best[0]), ("t", best[1])]
    assert [row.trial.state for row in rows if row.trial.number == 6] == ["pruned"]
