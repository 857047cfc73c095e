"""The store: snapshots in parts, the subject's structure, and what a document or an engine takes
with it."""

from __future__ import annotations

from typing import Any

import pytest

from app.store import Store
from engine.project.document import Project, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    BackwardSnapshot,
    FileSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    HeldSnapshot,
    LoopSnapshot,
    ModelSnapshot,
    Snapshot,
    StepColumns,
    StructureSnapshot,
    StructureTotals,
    TraceSnapshot,
    TrainingSnapshot,
    ValueSnapshot,
    VariablesSnapshot,
)
from tests.model_snapshots import model_snapshot
from tests.widgets.backward.autograd_snapshots import ACTIVATIONS, value_of

TOTALS = StructureTotals(1, 0, 0, 0, 0, 0)


@pytest.fixture
def store() -> Store:
    return Store()


def structure(left: int = 0, to: int = 0) -> StructureSnapshot:
    return StructureSnapshot(title="net", totals=TOTALS, left=left, reply_to=to)


def graph(part: int = 0, parts: int = 1, to: int = 0, root: str = "") -> GraphSnapshot:
    return GraphSnapshot(
        revision=1, nodes=(), edges=(), plan=(part,), part=part, parts=parts, reply_to=to, root=root
    )


def told(store: Store) -> list[Snapshot]:
    heard: list[Snapshot] = []
    store.on(Snapshot, heard.append)
    return heard


def test_a_structure_is_whole_with_the_part_that_leaves_none(store: Store) -> None:
    heard = told(store)
    assert store.take(structure(left=2, to=1)) and store.take(structure(left=1, to=1))
    assert heard == [] and store.newest(StructureSnapshot) is None
    assert store.take(structure(to=1))
    assert [type(each) for each in heard] == [StructureSnapshot]
    assert store.take(structure(to=2)) and len(heard) == 2  # in one part


def test_the_parts_of_another_answer_begin_again(store: Store) -> None:
    heard: list[Any] = told(store)
    store.take(graph(0, 2, to=1))
    store.take(graph(0, 2, to=2))
    store.take(graph(1, 2, to=2))
    assert [each.plan for each in heard] == [(0, 1)]
    store.take(graph(0, 3, to=3))
    store.take(graph(1, 3, to=3))
    store.take(graph(2, 3, to=4))  # of another answer: two are missing
    assert len(heard) == 1
    store.take(structure(left=1, to=5))
    store.take(structure(to=6))
    assert len(heard) == 2


@pytest.mark.parametrize("end", ["begin_document", "end_engine"])
def test_parts_go_with_their_document_and_their_engine(store: Store, end: str) -> None:
    heard = told(store)
    store.take(graph(0, 2, to=1))
    getattr(store, end)()
    store.take(graph(1, 2, to=1))
    assert heard == []


def test_another_subject_has_another_structure(store: Store) -> None:
    store.take(structure())
    store.set_project(replace(store.project, objective=Objective("loader")))
    assert store.newest(StructureSnapshot) is not None
    store.set_project(replace(store.project, subject=ConsoleSubject("net")))
    assert store.newest(StructureSnapshot) is None


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"subject": ConsoleSubject("net")}, True),
        ({"objective": Objective("loader")}, True),
        ({"training": replace(Project().training, seed=7)}, True),
        ({"training": replace(Project().training)}, False),
        ({"name": "other"}, False),
    ],
)
def test_the_revision_counts_what_matters_to_the_engine(
    store: Store, change: dict, counts: bool
) -> None:
    store.set_project(replace(store.project, **change))
    assert store.revision == 1 + counts


def test_numbers_of_the_pass_are_about_the_model_as_it_is(store: Store) -> None:
    value = value_of("loss", ACTIVATIONS["loss"])
    numbers = (
        BackwardSnapshot(revision=0, position=0, step=None, gradients=()),
        ValueSnapshot(revision=0, of="activation", key="loss", values=(value,)),
    )
    assert [store.take(each) for each in numbers] == [False, False]
    assert [store.take(replace(each, revision=1)) for each in numbers] == [True, True]
    store.take(graph(root="y"))
    assert [store.take(each) for each in numbers] == [True, True]  # of a tensor of the console


def test_held_code_is_known_until_it_goes_on(store: Store) -> None:
    assert store.held is None
    store.take(HeldSnapshot(at="line", title="cell 1", line=3))
    assert store.held is not None and store.held.line == 3
    store.take(HeldSnapshot())
    assert store.held is None
    store.take(HeldSnapshot(at="line", title="cell 1", line=3))
    store.end_engine()
    assert store.held is None


def loop(to: int) -> LoopSnapshot:
    return LoopSnapshot(
        run="l", title="l", state="running", step=1, steps_per_second=0.0, steps=StepColumns(),
        device="cpu", reply_to=to,
    )  # fmt: skip


def test_another_document_drops_what_was_said_of_the_one_before(
    store: Store, training_snapshot
) -> None:
    file = FileSnapshot(path="/a.py", digest="", objects=())
    for snapshot in (
        training_snapshot(reply_to=4), loop(3), model_snapshot(revision=1), structure(), graph(),
        ForwardSnapshot(revision=1, order=(), position=0, activations=()),
        VariablesSnapshot(variables=()), TraceSnapshot(revision=1, calls=()), file,
    ):  # fmt: skip
        assert store.take(snapshot)
    store.begin_document()
    for kind in (
        TrainingSnapshot, LoopSnapshot, ModelSnapshot, StructureSnapshot, GraphSnapshot,
        ForwardSnapshot, TraceSnapshot,
    ):  # fmt: skip
        assert store.newest(kind) is None, kind


def test_a_run_of_the_document_before_is_not_kept_and_a_later_one_is(
    store: Store, training_snapshot
) -> None:
    store.take(training_snapshot(reply_to=4))
    store.take(loop(6))
    store.begin_document()
    store.take(loop(0))  # of a script
    assert store.newest(LoopSnapshot) == loop(0)
    assert not store.take(training_snapshot(reply_to=6)) and not store.take(loop(5))
    assert store.take(training_snapshot(reply_to=7))
    store.begin_document()
    assert not store.take(training_snapshot(reply_to=7))
    store.begin_document()  # it has no run of its own
    assert not store.take(training_snapshot(reply_to=7))
    store.end_engine()
    assert store.take(training_snapshot(reply_to=1))  # the next engine counts anew


def test_runs_and_reports_stay_when_their_engine_ends(store: Store, training_snapshot) -> None:
    kept = (training_snapshot(), loop(3), model_snapshot(revision=1))
    for snapshot in (*kept, structure()):
        store.take(snapshot)
    store.end_engine()
    assert [store.newest(type(each)) for each in kept] == list(kept)
    assert store.newest(StructureSnapshot) is None


def test_the_view_is_part_of_the_project_but_no_edit(store: Store) -> None:
    seen: list[Any] = []
    store.project_changed.connect(lambda old, new: seen.append((old.view, new.view)))
    view = replace(store.project.view, canvas_zoom=2.0)
    before = store.project.view
    store.set_view(view)
    assert seen == [(before, view)] and store.revision == 1
