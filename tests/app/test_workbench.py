"""The two ways that data flows: edits, which may be refused, and commands, which may wait."""

from __future__ import annotations

from typing import Any

import pytest

from app.selection.references import Blocks
from app.workbench import WAITS
from engine.project import edits
from engine.project.edits import EditError
from engine.protocol import (
    CellSnapshot,
    GraphSnapshot,
    ReadVariablesCommand,
    RecordCommand,
    RunCellCommand,
    StructureSnapshot,
    StructureTotals,
    TraceSnapshot,
)
from tests.model_snapshots import model_snapshot


def refuse(project: Any) -> Any:
    raise EditError("It cannot be so.")


def test_an_edit_is_a_step_of_undo_and_one_that_is_refused_says_why(bench) -> None:
    before = bench.project
    assert bench.edit("Add", lambda project: edits.add_block(project, "nn.ReLU", 0, 0)[0])
    after = bench.project
    assert after != before and bench.history.stack.undoText() == "Add"
    assert not bench.edit("Refuse", refuse) and bench.edit_with("Refuse", refuse) is None
    assert bench.window.said == ["It cannot be so."] * 2
    assert bench.project is after and bench.history.stack.undoText() == "Add"


def test_an_edit_with_a_value_returns_it(bench) -> None:
    added = bench.edit_with("Add", lambda project: edits.add_block(project, "nn.ReLU", 0, 0))
    assert added == bench.project.model.blocks[0].id


def test_edits_of_one_field_are_one_step(bench) -> None:
    for name in ("a", "b"):
        bench.edit("Name", lambda p, name=name: edits.add_block(p, "nn.ReLU", 0, 0)[0], field="n")
    assert bench.history.stack.count() == 1
    bench.edit("Name", lambda p: edits.add_block(p, "nn.ReLU", 0, 0)[0], field="m")
    assert bench.history.stack.count() == 2


def test_a_command_is_about_the_document_as_it_is(bench, link) -> None:
    assert bench.send(ReadVariablesCommand()) == 0  # there is no engine
    link.get_ready()
    bench.edit("Add", lambda project: edits.add_block(project, "nn.ReLU", 0, 0)[0])
    assert bench.send(ReadVariablesCommand()) == 1
    assert link.sent[0].revision == bench.store.revision == 2


def test_a_command_that_does_more_than_read_says_that_it_waits_for_a_cell(bench, link) -> None:
    link.get_ready()
    bench.send(RecordCommand(on=True))
    cell = bench.send(RunCellCommand(source="loop()"))
    bench.send(ReadVariablesCommand())
    assert bench.window.said == []
    bench.send(RecordCommand(on=True))
    assert bench.window.said == [WAITS]
    link.answer(CellSnapshot(ok=True, error=None), cell)
    link.close()
    bench.send(RecordCommand(on=True))
    assert bench.window.said == [WAITS]


@pytest.mark.parametrize("agrees", [True, False])
def test_what_cannot_be_undone_is_asked(bench, agrees: bool) -> None:
    bench.dialogs.agrees = agrees
    asked: list[tuple] = []
    confirm = bench.dialogs.confirm
    bench.dialogs.confirm = lambda *words: (asked.append(words), confirm(*words))[1]
    assert bench.confirm("Really?", "Yes") is agrees
    assert asked == [(bench.window, "Really?", "Yes")]


def test_references_are_looked_up_in_the_newest_of_each_kind(bench) -> None:
    project = edits.add_block(bench.project, "nn.ReLU", 0, 0)[0]
    bench.store.set_project(project)
    revision = bench.store.revision
    totals = StructureTotals(1, 0, 0, 0, 0, 0)
    snapshots = (
        GraphSnapshot(revision=revision, nodes=(), edges=(), plan=()),
        model_snapshot(revision=revision),
        StructureSnapshot(revision=revision, title="", totals=totals),
        TraceSnapshot(revision=revision, calls=()),
    )
    assert (bench.known.graph, bench.known.trace) == (None, None)
    for snapshot in snapshots:
        bench.store.take(snapshot)
    known = bench.known
    assert (known.graph, known.model, known.structure, known.trace) == snapshots
    assert known.project is project and bench.newest(GraphSnapshot) is snapshots[0]
    bench.selection.choose(Blocks((project.model.blocks[0].id, "gone")))
    assert bench.selected_blocks == (project.model.blocks[0].id,)
