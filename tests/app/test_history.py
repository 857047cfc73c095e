"""Undo and redo over any sequence of edits; every state on the way can be saved and read."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from app.history import History
from app.store import Store
from engine.project import catalogue, edits, files
from engine.project.document import Cell, Project, TrainingSetup, ViewState, Wire, replace
from engine.project.edits import EditError

KINDS = ["Input", "nn.Linear", "nn.ReLU", "torch.cat", "nn.LSTM", "nn.CrossEntropyLoss", "Output"]
index = st.integers(0, 9)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(KINDS)),
        st.tuples(st.just("connect"), index, index, index, index),
        st.tuples(st.just("insert"), st.sampled_from(KINDS), index),
        st.tuples(st.just("remove"), st.lists(index, max_size=3)),
        st.tuples(st.just("cut"), index),
        st.tuples(st.just("paste"), st.lists(index, max_size=4)),
        st.tuples(st.just("move"), index, st.integers(-500, 500)),
        st.tuples(st.just("rename"), index, st.sampled_from(["head", "forward", "relu1", "1"])),
        st.tuples(st.just("param"), index, index, st.sampled_from(["3", "(3, 5)", "no", "x"])),
        st.tuples(st.just("loss"), st.sampled_from(["nn.MSELoss", "nn.CrossEntropyLoss"])),
        st.tuples(st.just("training"), st.integers(0, 256)),
    ),
    max_size=25,
)


def pick(items, i: int):
    if not items:
        raise EditError("nothing to choose from")
    return items[i % len(items)]


def apply(project: Project, step: tuple) -> Project:
    blocks, wires = project.model.blocks, project.model.wires
    match step:
        case ("add", kind):
            return edits.add_block(project, kind, 0, 0)[0]
        case ("connect", a, b, c, d):
            source, target = pick(blocks, a), pick(blocks, b)
            output = pick(catalogue.ports(source)[1], c)
            end = pick(catalogue.ports(target)[0], d)
            return edits.connect(project, Wire(source.id, output.name, target.id, end.name))
        case ("insert", kind, a):
            return edits.insert_on_wire(project, kind, pick(wires, a), 0, 0)[0]
        case ("remove", some):
            return edits.remove(project, {pick(blocks, a).id for a in some})
        case ("cut", a):
            return edits.disconnect(project, pick(wires, a))
        case ("paste", some):
            piece = edits.fragment(project, {pick(blocks, a).id for a in some})
            return edits.add_fragment(project, piece, 16, 16)[0]
        case ("move", a, x):
            return edits.move_blocks(project, {pick(blocks, a).id: (x, x)})
        case ("rename", a, name):
            return edits.rename(project, pick(blocks, a).id, name)
        case ("param", a, b, text):
            block = pick(blocks, a)
            param = pick(catalogue.kind(block.kind).params, b)
            return edits.set_param(project, block.id, param.name, text)
        case ("loss", loss):
            return edits.set_loss(project, loss)
        case ("training", size):
            return edits.set_training(project, TrainingSetup(batch_size=size))
    raise AssertionError(step)


@given(steps)
@settings(max_examples=60)
def test_undo_leads_back_and_redo_forth(steps):
    store = Store()
    history = History(store)
    states = [store.project]
    for step in steps:
        try:
            after = apply(store.project, step)
        except EditError:
            continue
        history.edit(after, step[0])
        if store.project != states[-1]:
            states.append(store.project)
    assert history.stack.count() == len(states) - 1
    for state in states:
        assert files.loads(files.dumps(state).encode()) == state
    for state in reversed(states[:-1]):
        history.stack.undo()
        assert store.project == state
    assert not history.stack.canUndo()
    for state in states[1:]:
        history.stack.redo()
        assert store.project == state
    assert not history.stack.canRedo()


def linear() -> tuple[Project, str]:
    return edits.add_block(Project(), "nn.Linear", 0, 0)


def typed(history: History, store: Store, block_id: str, value: int) -> None:
    after = edits.set_param(store.project, block_id, "out_features", value)
    history.edit(after, f"Set out_features to {value}", field=(block_id, "out_features"))


def test_typing_a_number_is_one_step_until_it_is_sealed():
    project, block_id = linear()
    store = Store(project)
    history = History(store)
    for value in (1, 12, 128):
        typed(history, store, block_id, value)
    assert history.stack.count() == 1
    assert history.stack.undoText() == "Set out_features to 128"
    history.seal()
    typed(history, store, block_id, 7)
    assert history.stack.count() == 2
    history.stack.undo()
    assert store.project.model.block(block_id).params["out_features"] == 128
    history.stack.undo()
    assert store.project == project


def test_typing_back_to_where_it_was_is_no_step():
    project, block_id = linear()
    store = Store(project)
    history = History(store)
    typed(history, store, block_id, 3)
    original = project.model.block(block_id).params["out_features"]
    history.edit(
        edits.set_param(store.project, block_id, "out_features", original),
        "Set out_features",
        field=(block_id, "out_features"),
    )
    assert store.project == project
    assert not history.stack.canUndo()


def test_a_saved_state_is_not_merged_away():
    project, block_id = linear()
    store = Store(project)
    history = History(store)
    typed(history, store, block_id, 3)
    history.stack.setClean()
    typed(history, store, block_id, 4)
    history.stack.undo()
    assert history.stack.isClean()
    assert store.project.model.block(block_id).params["out_features"] == 3


def test_undo_leaves_name_cells_and_view_alone():
    store = Store()
    history = History(store)
    history.edit(linear()[0], "Add Linear")
    kept = Project(name="Saved", cells=(Cell("c1", "x = 1"),), view=ViewState(workspace="train"))
    store.set_project(replace(kept, model=store.project.model))
    history.stack.undo()
    assert store.project == kept


def test_a_change_that_is_not_of_the_project_is_undone_and_leaves_it_saved():
    store = Store()
    history = History(store)
    done: list[str] = []
    history.change("Annotate", lambda: done.append("do"), lambda: done.append("undo"))
    assert done == ["do"] and history.stack.undoText() == "Annotate"
    assert history.is_saved and not history.stack.isClean()
    history.edit(replace(store.project, name="a", training=TrainingSetup(seed=9)), "Set seed")
    assert not history.is_saved
    history.stack.undo()
    assert history.is_saved
    history.stack.undo()
    assert done == ["do", "undo"] and history.is_saved
    history.stack.redo()
    history.stack.setClean()
    history.stack.undo()
    assert done == ["do", "undo", "do", "undo"] and history.is_saved
