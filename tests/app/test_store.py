"""The store: what counts as a change, and which snapshots are stale."""

from __future__ import annotations

from app.store import Store
from engine.project import edits
from engine.project.document import Project, ViewState, replace
from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    ExportSnapshot,
    ForwardSnapshot,
    GraphEdge,
    GraphNode,
    GraphSnapshot,
    LoopSnapshot,
    ModelSnapshot,
    ReadySnapshot,
    RunSnapshot,
    Snapshot,
    StepColumns,
    TrainingSnapshot,
    VariablesSnapshot,
)
from tests.model_snapshots import model_snapshot


def with_linear() -> tuple[Project, str]:
    return edits.add_block(Project(), "nn.Linear", 0, 0)


def test_an_edit_raises_the_revision_and_is_announced_once(qtbot):
    store = Store()
    project, _ = with_linear()
    seen = []
    store.project_changed.connect(lambda old, new: seen.append((old, new)))
    store.set_project(project)
    store.set_project(project)
    assert seen == [(Project(), project)]
    assert store.revision == 2


def test_moving_a_block_is_nothing_to_the_engine(qtbot):
    project, block_id = with_linear()
    store = Store(project)
    store.set_project(edits.move_blocks(project, {block_id: (8, 8)}))
    store.set_view(ViewState(workspace="train"))
    store.set_project(replace(store.project, name="Other"))
    assert store.revision == 1


def test_an_answer_about_an_older_model_is_dropped(qtbot):
    store = Store()
    store.set_project(with_linear()[0])
    assert not store.take(model_snapshot(revision=1))
    assert store.newest(ModelSnapshot) is None
    assert store.take(model_snapshot(revision=2))
    assert store.newest(ModelSnapshot) == model_snapshot(revision=2)


def test_a_run_goes_on_being_shown_while_the_model_is_edited(training_snapshot):
    store = Store()
    store.set_project(with_linear()[0])
    assert store.take(training_snapshot(revision=1))
    export = ExportSnapshot(
        revision=1, path="a", format="pt", size_bytes=1, sha256="", max_abs_error=0.0, keys=()
    )
    assert store.take(export)


def test_an_edit_ends_the_pass_but_leaves_the_model_report_to_be_replaced(qtbot):
    store = Store()
    store.take(model_snapshot(revision=1))
    store.take(ForwardSnapshot(revision=1, order=(), position=0, activations=()))
    store.set_project(with_linear()[0])
    assert store.newest(ForwardSnapshot) is None
    assert store.newest(ModelSnapshot) is not None


def test_a_graph_in_parts_is_announced_when_it_is_whole(qtbot) -> None:
    nodes = tuple(GraphNode(i, "MulBackward0", "", "operation", None, 9 - i, ()) for i in range(4))
    edges = tuple(GraphEdge(i, i + 1, 0, 0) for i in range(3))

    def part(number: int, first: int, end: int) -> GraphSnapshot:
        return GraphSnapshot(
            revision=1,
            nodes=nodes[first:end],
            edges=edges[first:end],
            plan=tuple(range(first, end)),
            part=number,
            parts=2,
        )

    store = Store()
    announced: list[GraphSnapshot] = []
    store.on(GraphSnapshot, announced.append)
    assert store.take(part(0, 0, 3)) and store.take(part(0, 0, 2))  # read again: the first is moot
    assert not announced and store.newest(GraphSnapshot) is None
    assert store.take(part(1, 2, 4))
    (whole,) = announced
    assert whole.nodes == nodes and whole.edges == edges and whole.plan == (0, 1, 2, 3)
    assert whole.parts == 1 and store.newest(GraphSnapshot) is whole


def forward(revision: int = 1) -> ForwardSnapshot:
    return ForwardSnapshot(revision=revision, order=(), position=0, activations=())


def graph(revision: int = 1, root: str = "") -> GraphSnapshot:
    return GraphSnapshot(revision=revision, nodes=(), edges=(), plan=(), root=root)


def comparison(revision: int = 1) -> ComparisonSnapshot:
    return ComparisonSnapshot(revision=revision, max_difference=0.0, differences={})


def test_the_revision_is_told_after_the_project():
    store = Store()
    told: list = []
    store.project_changed.connect(lambda old, new: told.append((store.revision, new)))
    store.revision_changed.connect(told.append)
    project, block_id = with_linear()
    store.set_project(project)
    store.set_project(edits.move_blocks(project, {block_id: (8, 8)}))
    store.set_project(replace(store.project, training=replace(project.training, epochs=7)))
    assert [t if isinstance(t, int) else t[0] for t in told] == [2, 2, 2, 3, 3]
    assert told[3][1] is store.project


def test_a_dropped_snapshot_is_not_announced_and_the_newest_stays():
    store = Store()
    told: list = []
    store.on(Snapshot, told.append)
    newest = model_snapshot(revision=1)
    assert store.take(newest) and not store.take(model_snapshot(revision=2))
    assert not store.take(forward(0))
    assert told == [newest] and store.newest(ModelSnapshot) is newest


def test_the_pass_of_a_tensor_of_the_console_outlives_an_edit_of_the_model():
    store = Store()
    assert store.take(forward()) and store.take(graph(root="y"))
    assert store.steps_console
    store.set_project(with_linear()[0])
    assert store.newest(ForwardSnapshot) is None and store.newest(GraphSnapshot) is not None
    assert store.take(comparison(revision=1))  # it tells of y, at whatever revision
    assert store.take(graph(revision=2))  # that of the model takes its place
    assert not store.steps_console and not store.take(comparison(revision=1))
    assert store.take(graph(revision=1, root="z")) and not store.take(graph(revision=1))


def test_an_edit_ends_the_pass_of_the_model():
    store = Store()
    for snapshot in (forward(), graph(), comparison()):
        assert store.take(snapshot)
    store.set_project(with_linear()[0])
    assert [store.newest(k) for k in (ForwardSnapshot, GraphSnapshot, ComparisonSnapshot)] == [
        None, None, None
    ]  # fmt: skip


def test_another_document_leaves_the_loop_of_the_one_before_behind():
    store = Store()
    loop = LoopSnapshot(
        run="Loop in cell 1",
        title="Loop in cell 1",
        state="running",
        step=1,
        steps_per_second=0.0,
        steps=StepColumns(),
        device="cpu",
        reply_to=4,
    )
    assert store.take(loop) and store.newest(LoopSnapshot) is loop
    store.begin_document()
    assert not store.take(loop) and store.newest(LoopSnapshot) is None
    assert store.take(replace(loop, reply_to=5))


def test_the_end_of_the_engine_takes_what_only_it_knew(training_snapshot):
    store = Store()
    ready = ReadySnapshot(torch_version="2", python_version="3", pid=1, devices=(), torch_threads=1)
    run, report = training_snapshot(revision=1), model_snapshot(revision=1)
    variables = VariablesSnapshot(variables=())
    for snapshot in (ready, run, report, variables, forward(), graph(root="y"), comparison()):
        assert store.take(snapshot)
    store.end_engine()
    gone = (
        ReadySnapshot, ForwardSnapshot, GraphSnapshot, BackwardSnapshot, ComparisonSnapshot,
        VariablesSnapshot,
    )  # fmt: skip
    assert [store.newest(kind) for kind in gone] == [None] * 6
    assert store.newest(TrainingSnapshot) is run and store.newest(ModelSnapshot) is report
    assert not store.steps_console


def test_what_is_forgotten_is_no_more():
    store = Store()
    store.take(model_snapshot(revision=1))
    store.forget(ModelSnapshot, ForwardSnapshot)
    assert store.newest(ModelSnapshot) is None


def test_a_listener_that_comes_while_a_snapshot_is_given_does_not_get_it(training_snapshot):
    """As a page does that is made for it, and reads the newest one itself."""
    store = Store()
    got: list[Snapshot] = []

    def come(_: TrainingSnapshot) -> None:
        store.on((RunSnapshot, TrainingSnapshot), got.append)

    store.on(RunSnapshot, lambda _: None)
    store.on(TrainingSnapshot, come)
    assert store.take(training_snapshot())
    assert not got


def test_a_kind_stands_for_those_that_derive_from_it(training_snapshot):
    store = Store()
    got: list[Snapshot] = []
    store.on(RunSnapshot, got.append)
    store.on((GraphSnapshot, ModelSnapshot), got.append)
    run = training_snapshot()
    assert store.take(run) and got == [run]
