"""The store: what counts as a change, and which snapshots are of yesterday."""

from __future__ import annotations

from app.store import Store
from engine.project import edits
from engine.project.document import Project, ViewState, replace
from engine.protocol import (
    ExportSnapshot,
    ForwardSnapshot,
    GraphEdge,
    GraphNode,
    GraphSnapshot,
    ModelSnapshot,
    StepColumns,
    TrainingSnapshot,
)


def model_snapshot(revision: int) -> ModelSnapshot:
    return ModelSnapshot(
        revision=revision,
        blocks=(),
        parameters=0,
        parameter_bytes=0,
        activation_bytes=0,
        problems=(),
        runnable=True,
        code="",
        lines={},
    )


def training_snapshot(revision: int) -> TrainingSnapshot:
    return TrainingSnapshot(
        revision=revision,
        run="r",
        state="running",
        step=1,
        total_steps=2,
        epoch=1,
        epochs=1,
        steps_per_second=1.0,
        remaining_s=None,
        steps=StepColumns(),
        epoch_rows=(),
        device="cpu",
    )


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
    assert not store.take(model_snapshot(1))
    assert store.newest(ModelSnapshot) is None
    assert store.take(model_snapshot(2))
    assert store.newest(ModelSnapshot) == model_snapshot(2)


def test_a_run_goes_on_being_shown_while_the_model_is_edited(qtbot):
    store = Store()
    store.set_project(with_linear()[0])
    assert store.take(training_snapshot(1))
    export = ExportSnapshot(
        revision=1, path="a", format="pt", size_bytes=1, sha256="", max_error=0.0, keys=()
    )
    assert store.take(export)


def test_an_edit_ends_the_pass_but_leaves_the_model_report_to_be_replaced(qtbot):
    store = Store()
    store.take(model_snapshot(1))
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
    store.snapshot.connect(announced.append)
    assert store.take(part(0, 0, 3)) and store.take(part(0, 0, 2))  # read anew: the first is moot
    assert not announced and store.newest(GraphSnapshot) is None
    assert store.take(part(1, 2, 4))
    (whole,) = announced
    assert whole.nodes == nodes and whole.edges == edges and whole.plan == (0, 1, 2, 3)
    assert whole.parts == 1 and store.newest(GraphSnapshot) is whole
