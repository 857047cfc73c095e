"""The structure of a subject of code is read when it may have changed, and lines act on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from app.presenters.model.structure import StructurePresenter
from app.selection.references import Module, Parameter
from engine.project import edits
from engine.project.document import Model, replace
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    BackwardSnapshot,
    CompareSubjectsCommand,
    DifferenceSnapshot,
    ErrorReport,
    ExampleSnapshot,
    FileObject,
    FileSnapshot,
    FitSnapshot,
    ForwardGraphSnapshot,
    GraphSnapshot,
    InitialValues,
    InitPreviewSnapshot,
    KeepBeforeCommand,
    KeptSnapshot,
    NextNode,
    PreviewInitCommand,
    ReadForwardGraphCommand,
    ReadParametersCommand,
    ReadStructureCommand,
    Variable,
    VariableKind,
    VariablesSnapshot,
    WatchCommand,
    WatchedSnapshot,
    WeightsSnapshot,
)
from tests.widgets.structure.small_structure import BARE, GRAPH, MODULES, WEIGHTS, WHOLE
from widgets import theme
from widgets.structure.view import StructureView
from widgets.structure.weights_model import GRADIENT


class Desk:
    def __init__(self, bench, link, qtbot) -> None:
        self.bench, self.link, self.qtbot = bench, link, qtbot
        self.view = StructureView()
        qtbot.addWidget(self.view)
        self.work_on(ConsoleSubject("model"))
        self.presenter = StructurePresenter(bench, self.view, bench.window)
        self.cells: list[str] = []
        self.presenter.cell_requested.connect(self.cells.append)

    def work_on(self, subject) -> None:
        self.bench.store.set_project(edits.set_subject(self.bench.project, subject))

    def sent(self, kind: type) -> list:
        return [command for command in self.link.sent if isinstance(command, kind)]

    def wait_for(self, kind: type, count: int = 1):
        """The newest of `count` commands of a kind, as soon as it is sent."""
        self.qtbot.waitUntil(lambda: len(self.sent(kind)) >= count, timeout=30_000)
        assert len(self.sent(kind)) == count and self.link.sent[-1] is self.sent(kind)[-1]
        return self.link.sent[-1]

    def draw(self, graph: GraphSnapshot = GRAPH) -> None:
        """Answer with a structure, and with the graph of its forward."""
        self.link.answer(WHOLE)
        self.wait_for(ReadForwardGraphCommand)
        self.link.answer(ForwardGraphSnapshot(graph=graph))

    @property
    def waits(self) -> bool:
        return self.presenter._reading.isActive()


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    """A view in sight that waits for the engine's first answer on `model`."""
    desk = Desk(bench, link, qtbot)
    desk.view.show()
    assert desk.view.trouble.text() and not desk.waits
    link.get_ready()
    desk.wait_for(ReadStructureCommand)
    return desk


@pytest.fixture
def shown(desk) -> Desk:
    desk.link.answer(BARE)
    return desk


def test_a_structure_in_parts_is_shown_once_it_is_whole(desk, link):
    (command,) = desk.sent(ReadStructureCommand)
    assert command.subject == ConsoleSubject("model")
    link.answer(replace(WHOLE, modules=MODULES[:3], weights=(), left=10))
    assert not desk.view.shows_structure
    link.answer(replace(WHOLE, modules=MODULES[3:], weights=WEIGHTS))
    assert desk.view.shows_structure
    assert desk.view.tree.model.rows == MODULES and desk.view.weights.model.rows == WEIGHTS


@pytest.mark.parametrize("state", ["finished", "stopped", "failed"])
def test_it_is_read_again_after_a_run(shown, bench, training_snapshot, state):
    bench.store.take(training_snapshot(state="running"))
    assert not shown.waits
    bench.store.take(training_snapshot(state=state))
    shown.wait_for(ReadStructureCommand, 2)


@pytest.mark.parametrize("state", ["running", "paused"])
def test_the_numbers_follow_a_run_and_no_step_of_the_user_runs_for_it(
    desk, bench, link, training_snapshot, state
):
    link.answer(WHOLE)
    now = tuple(replace(row, mean=row.elements / 8) for row in WEIGHTS)
    for step in (1, 2):
        bench.store.take(training_snapshot(state=state, step=step))
        desk.wait_for(ReadParametersCommand, step)
        link.answer(replace(BARE, weights=now))
        assert desk.view.weights.model.rows == now
    assert len(desk.sent(ReadStructureCommand)) == 1


def test_the_numbers_are_read_when_weights_are_loaded(desk, bench, link):
    link.answer(WHOLE)
    bench.store.take(FitSnapshot(path="/w.pt", title="model", loaded=True, matched=1))
    desk.wait_for(ReadParametersCommand)


def test_a_comparison_says_that_the_weights_have_changed_since(desk, bench, link):
    link.answer(WHOLE)
    desk.view.compare.compare_requested.emit(None)
    desk.wait_for(CompareSubjectsCommand)
    link.answer(DIFFERENCE)
    bench.store.take(WeightsSnapshot(origin="", parameters=1))
    desk.wait_for(ReadParametersCommand)
    link.answer(replace(BARE, weights=WEIGHTS))
    words = desk.view.difference.words
    assert "changed since" not in words.text()
    bench.store.take(WeightsSnapshot(origin="", parameters=1))
    desk.wait_for(ReadParametersCommand, 2)
    link.answer(replace(BARE, weights=(replace(WEIGHTS[0], mean=9.0), *WEIGHTS[1:])))
    assert words.text().startswith("The weights have changed since: compare again.")


def test_numbers_of_a_pass_are_read_alone(desk, bench, link):
    link.answer(WHOLE)
    revision = bench.store.revision
    bench.store.take(BackwardSnapshot(position=1, step=None, gradients=(), revision=revision))
    command = desk.wait_for(ReadParametersCommand)
    assert command.subject == ConsoleSubject("model")
    changed = replace(WEIGHTS[0], gradient=123.0, mean=9.0)
    link.answer(replace(BARE, weights=WEIGHTS[1:2], left=1))
    link.answer(replace(BARE, weights=(changed,)))
    rows = desk.view.weights.model.rows
    assert rows == (changed, *WEIGHTS[1:])
    assert desk.view.tree.model.rows == MODULES  # with their calls
    assert len(desk.sent(ReadStructureCommand)) == 1


def test_a_gradient_that_a_pass_has_yet_to_give_is_no_fault(desk, bench, link):
    link.answer(WHOLE)
    model = desk.view.weights.model
    none = model.index(3, GRADIENT)

    def color() -> object:
        return model.data(none, Qt.ItemDataRole.ForegroundRole)

    assert WEIGHTS[3].trainable and WEIGHTS[3].gradient is None
    error, text = (theme.current().color(role) for role in ("error", "text"))
    assert color() == error
    revision = bench.store.revision
    passes = ((NextNode(3, ()), text), (None, error))
    for count, (following, expected) in enumerate(passes, start=1):
        bench.store.take(
            BackwardSnapshot(position=1, step=None, gradients=(), next=following, revision=revision)
        )
        desk.wait_for(ReadParametersCommand, count)
        link.answer(replace(BARE, weights=WEIGHTS))
        assert color() == expected


def test_it_is_read_again_once_its_python_is_agreed_to(desk, bench, link):
    bench.store.unagreed = frozenset({"model"})
    link.fail("“model” stands in the file that was opened.")
    bench.store.agree()
    assert not desk.wait_for(ReadStructureCommand, 2).unagreed


def test_it_is_read_again_once_for_several_changes(shown, bench):
    bench.store.take(VariablesSnapshot(variables=()))
    bench.store.take(FileSnapshot(path="/x/net.py", digest="0", objects=()))
    objective = Objective(data="loader")
    bench.edit("d", lambda project: edits.set_objective(project, objective))
    assert shown.wait_for(ReadStructureCommand, 2).objective == objective
    bench.store.take(ExampleSnapshot(variables=()))
    assert not shown.waits


def test_nothing_is_read_while_it_is_not_seen(shown, bench, link):
    shown.view.hide()
    bench.store.take(VariablesSnapshot(variables=()))
    assert not shown.waits
    shown.view.show()
    shown.wait_for(ReadStructureCommand, 2)
    shown.link.answer(BARE)
    shown.view.hide()
    shown.view.show()
    assert not shown.waits


def test_an_answer_about_another_subject_is_dropped(desk, link):
    desk.work_on(ConsoleSubject("other"))
    link.answer(WHOLE, to=1)
    assert not desk.view.shows_structure
    assert desk.wait_for(ReadStructureCommand, 2).subject == ConsoleSubject("other")
    link.answer(BARE)
    assert desk.view.shows_structure
    desk.work_on(CanvasSubject())
    desk.presenter._reading.timeout.emit()
    assert len(desk.sent(ReadStructureCommand)) == 2


def test_a_module_that_is_not_there_offers_the_cells(desk, bench, link, qtbot):
    link.fail("There is no variable named `model`.", "Make it.")
    assert desk.view.trouble.text() == "There is no variable named `model`. Make it."
    assert not desk.view.remedy.isVisibleTo(desk.view)
    bench.store.set_project(edits.record_cell(bench.project, "model = nn.Linear(1, 1)"))
    bench.store.take(VariablesSnapshot(variables=()))
    desk.wait_for(ReadStructureCommand, 2)
    link.fail("There is no variable named `model`.")
    assert desk.view.remedy.text() == "Run its cells"
    with qtbot.waitSignal(desk.presenter.cells_requested):
        desk.view.remedy.click()


def test_a_file_that_has_not_run_offers_to_run(desk, bench, link, qtbot):
    desk.work_on(FileSubject("/x/net.py", "Net()"))
    desk.wait_for(ReadStructureCommand, 2)
    link.fail("net.py has not run in this engine.")
    assert desk.view.remedy.text() == "Run net.py"
    with qtbot.waitSignal(desk.presenter.file_requested) as asked:
        desk.view.remedy.click()
    assert asked.args == [str(Path("/x/net.py").absolute())]
    bench.store.take(FileSnapshot(path="/x/net.py", digest="0", objects=()))
    desk.wait_for(ReadStructureCommand, 3)


def test_the_engine_s_end_is_told(shown, link):
    link.close()
    assert not shown.view.shows_structure
    assert shown.view.trouble.text() == link.unsent
    link.get_ready()
    shown.wait_for(ReadStructureCommand, 2)


# -- acting ----------------------------------------------------------------------------------------


def test_a_line_runs_as_a_cell_and_its_error_is_told_beside_it(shown):
    view = shown.view
    assert view.bar.source == "model.requires_grad_(False)"
    assert "console" in view.bar.run_button.toolTip()
    view.bar.run_button.click()
    assert shown.cells == ["model.requires_grad_(False)"]
    error = ErrorReport(type="RuntimeError", message="no", hint="Try.")
    shown.presenter.take_cell_end("x = 1", error)
    assert view.bar.told.text() == ""
    shown.presenter.take_cell_end("model.requires_grad_(False)", error)
    assert view.bar.told.text() == "RuntimeError: no Try."
    shown.presenter.take_cell_end("model.requires_grad_(False)", None)


@pytest.mark.parametrize(
    "subject, made",
    [
        (FileSubject("/x/net.py", "Net()"), True),
        (FileSubject("/x/net.py", "model"), False),
        (ConsoleSubject("Net(3)"), True),
    ],
)
def test_a_line_on_a_module_without_a_name_in_the_console_says_lab_subject(
    desk, link, subject, made
):
    desk.work_on(subject)
    desk.wait_for(ReadStructureCommand, 2)
    link.answer(replace(WHOLE, made=made))
    assert "lab.subject is the module" in desk.view.bar.run_button.toolTip()
    desk.view.bar.run_button.click()
    assert desk.cells == ["lab.subject.requires_grad_(False)"]


def test_initial_values_are_tried_and_stale_ones_dropped(shown, link):
    view = shown.view
    view.weights.table.selectRow(6)
    view.bar.action.setCurrentIndex(view.bar.action.findText("Initialise"))
    view.bar.function.setCurrentIndex(view.bar.function.findText("normal_"))
    command = shown.wait_for(PreviewInitCommand)
    assert (command.names, command.function) == (("head.weight",), "normal_")
    old = len(link.sent)
    view.bar.arguments.setText("std=0.02")
    tried = InitPreviewSnapshot(rows=(InitialValues("head.weight", 0.0, 1.0),))
    link.answer(tried, to=old)
    assert view.bar.told.text() == ""
    assert shown.wait_for(PreviewInitCommand, 2).arguments == "std=0.02"
    link.answer(tried)
    assert view.bar.told.text() == "This gives mean 0 and std 1."
    view.bar.arguments.setText("std=f()")
    shown.wait_for(PreviewInitCommand, 3)
    link.fail("`std=f()` is not a list of constants.")
    assert "not a list of constants" in view.bar.told.text()
    assert not view.bar.run_button.isEnabled()


# -- watching --------------------------------------------------------------------------------------


def test_modules_are_watched_and_a_refusal_is_told(shown, link):
    tree = shown.view.tree
    tree.watch_wanted.emit(("head",))
    command = shown.wait_for(WatchCommand)
    assert command.subject == ConsoleSubject("model") and command.paths == ("head",)
    link.answer(WatchedSnapshot(paths=("head",)))
    assert tree.model.watched == {"head"}
    tree.watch_wanted.emit(("head", "body"))
    shown.wait_for(WatchCommand, 2)
    link.fail("At most 4 modules are watched at a time.")
    assert shown.view.bar.told.text() == "At most 4 modules are watched at a time."
    assert tree.model.watched == {"head"}


# -- the picture of a forward ----------------------------------------------------------------------


def test_the_forward_is_drawn_after_the_structure(desk, link):
    link.answer(WHOLE)
    command = desk.wait_for(ReadForwardGraphCommand)
    assert command.subject == ConsoleSubject("model")
    whole = replace(GRAPH, parts=2)
    link.answer(ForwardGraphSnapshot(graph=replace(whole, nodes=GRAPH.nodes[:3], edges=())))
    assert desk.view.calls.view.facts is None
    rest = replace(whole, part=1, nodes=GRAPH.nodes[3:])
    link.answer(ForwardGraphSnapshot(graph=rest))
    shown = desk.view.calls.view.hierarchy.graph
    assert [node.label for node in shown.nodes] == [node.label for node in GRAPH.nodes]
    assert [node.name for node in shown.nodes if node.kind == "operation"] == ["mean", "mul"]


def test_an_equal_forward_is_not_drawn_again(desk, link, bench):
    desk.draw()
    before = desk.view.calls.view.hierarchy
    bench.store.take(VariablesSnapshot(variables=()))
    desk.wait_for(ReadStructureCommand, 2)
    link.answer(WHOLE)
    desk.wait_for(ReadForwardGraphCommand, 2)
    later = tuple(
        replace(node, sequence=node.sequence + 7) if node.sequence >= 0 else node
        for node in GRAPH.nodes
    )
    link.answer(ForwardGraphSnapshot(graph=replace(GRAPH, nodes=later)))
    assert desk.view.calls.view.hierarchy is before


def test_a_module_is_lit_in_the_tree_and_in_the_picture(desk, qtbot):
    desk.draw()
    view, tree = desk.view, desk.view.tree
    tree.tree.setCurrentIndex(tree._filter.mapFromSource(tree.model.index_at("head")))
    box = view.calls.view.facts.visible.boxes[view.calls.view.selected_box]
    assert view.calls.view.hierarchy.module_of(box.key) == "Net.head"
    view.calls.view.open_all()
    view.calls.view.select_box(view.calls.view.facts.index_of["#3"])
    assert view.tree.chosen.path == "body.0" and view.calls.view.selected == 3
    assert view.bar.target.text() == "body.0"
    assert table_names(view) == ["body.0.weight", "body.0.bias"]
    view.calls.view.select_box(view.calls.view.facts.index_of["#0"])
    assert view.tree.chosen.path == "body.0"


def table_names(view) -> list[str]:
    rows = range(view.weights.filter.rowCount())
    return [view.weights.filter.index(row, 0).data() for row in rows]


def test_without_a_batch_the_picture_says_where_to_give_one(desk, link):
    link.answer(BARE)
    assert not desk.sent(ReadForwardGraphCommand)
    assert "Name data under Train" in desk.view.calls.view._empty_text
    desk.bench.store.take(VariablesSnapshot(variables=()))
    desk.wait_for(ReadStructureCommand, 2)
    link.answer(replace(WHOLE, unrun=ErrorReport("RuntimeError", "no")))
    assert desk.view.calls.view._empty_text == "RuntimeError: no"


def test_a_forward_without_a_graph_is_told_and_another_subject_shows_none(desk, link):
    desk.draw()
    desk.work_on(ConsoleSubject("other"))
    assert desk.view.calls.view.hierarchy is None
    desk.wait_for(ReadStructureCommand, 2)
    link.answer(WHOLE)
    desk.wait_for(ReadForwardGraphCommand, 2)
    link.fail("The loss has no graph to step through.")
    assert desk.view.calls.view._empty_text == "The loss has no graph to step through."


# -- comparing -------------------------------------------------------------------------------------


DIFFERENCE = DifferenceSnapshot(before="model, before", after="model", equal_weights=8)


def test_a_copy_is_kept_and_compared_again_when_the_structure_was_read(shown, link, bench):
    compare = shown.view.compare
    compare.keep_requested.emit()
    assert shown.wait_for(KeepBeforeCommand).subject == ConsoleSubject("model")
    link.answer(KeptSnapshot(title="model"))
    assert compare._kept == "model"
    compare.compare_requested.emit(None)
    assert shown.wait_for(CompareSubjectsCommand).other is None
    link.answer(DIFFERENCE)
    assert shown.view.shows_difference
    bench.store.take(VariablesSnapshot(variables=()))
    shown.wait_for(ReadStructureCommand, 2)
    link.answer(BARE)
    shown.wait_for(CompareSubjectsCommand, 2)
    link.fail("No copy is kept.", "Keep one first.")
    assert shown.view.difference.words.text() == "No copy is kept. Keep one first."
    shown.view.difference.closed.emit()
    bench.store.take(VariablesSnapshot(variables=()))
    shown.wait_for(ReadStructureCommand, 3)
    link.answer(BARE)
    assert len(shown.sent(CompareSubjectsCommand)) == 2
    link.close()
    assert compare._kept == ""


def test_other_modules_of_console_and_files_are_offered(shown, bench, link):
    variable = variable_of("other", "module"), variable_of("model", "module"), variable_of("x")
    bench.store.take(VariablesSnapshot(variables=variable))
    found = (
        FileObject("Net", "class", "Net"),
        FileObject("Wide", "class", "Wide", ("width",)),
        FileObject("made", "module", "Net"),
    )
    bench.store.take(FileSnapshot(path="/x/net.py", digest="0", objects=found))
    compare = shown.view.compare
    assert compare._others == (
        ConsoleSubject("other"),
        FileSubject("/x/net.py", "Net()"),
        FileSubject("/x/net.py", "made"),
    )
    shown.work_on(ConsoleSubject("other"))
    bench.edit("Add", lambda project: edits.add_block(project, "nn.ReLU", 0, 0)[0])
    assert compare._others[:2] == (CanvasSubject(), ConsoleSubject("model"))
    compare.compare_requested.emit(CanvasSubject())
    command = shown.wait_for(CompareSubjectsCommand)
    assert (command.other, command.model) == (CanvasSubject(), bench.project.model)
    bench.edit("Clear", lambda project: replace(project, model=Model()))
    assert compare._others[0] == ConsoleSubject("model") and not shown.view.shows_difference
    compare.compare_requested.emit(ConsoleSubject("model"))
    command = shown.wait_for(CompareSubjectsCommand, 2)
    assert (command.subject, command.other) == (ConsoleSubject("other"), ConsoleSubject("model"))
    link.fail("There is no variable named `model`.")
    assert shown.view.bar.told.text() == "There is no variable named `model`."


def variable_of(name: str, kind: VariableKind = "other") -> Variable:
    return Variable(name=name, kind=kind, type="Net")


def test_what_was_known_before_is_offered_and_an_example_is_not(bench, link, qtbot):
    bench.store.take(VariablesSnapshot(variables=(variable_of("early", "module"),)))
    desk = Desk(bench, link, qtbot)
    assert desk.view.compare._others == (ConsoleSubject("early"),)
    same = replace(variable_of("again", "module"), same_as="early")
    bench.store.take(VariablesSnapshot(variables=(variable_of("early", "module"), same)))
    assert desk.view.compare._others == (ConsoleSubject("early"),)
    bench.store.take(ExampleSnapshot(variables=(variable_of("other", "module"),)))
    assert desk.view.compare._others == (ConsoleSubject("early"),)
    link.get_ready()
    link.close()
    assert desk.view.compare._others == ()


def test_the_canvas_is_compared_with_nothing(shown, link):
    shown.work_on(CanvasSubject())
    sent = len(link.sent)
    shown.view.compare.keep_requested.emit()
    shown.view.compare.compare_requested.emit(None)
    kinds = [type(command) for command in link.sent[sent:]]
    assert KeepBeforeCommand not in kinds and CompareSubjectsCommand not in kinds


def test_a_comparison_has_the_set_up_of_the_project(shown, bench):
    shown.view.compare.keep_requested.emit()
    kept = shown.wait_for(KeepBeforeCommand)
    assert kept.training == bench.project.training
    shown.view.compare.compare_requested.emit(ConsoleSubject("other"))
    command = shown.wait_for(CompareSubjectsCommand)
    project = bench.project
    assert (command.subject, command.objective, command.training) == (
        project.subject, project.objective, project.training,
    )  # fmt: skip


def test_a_copy_that_is_kept_is_said_and_without_an_engine_why_not(shown, bench, link):
    shown.view.compare.keep_requested.emit()
    link.answer(KeptSnapshot(title="model"))
    assert bench.window.said[-1] == (
        "A copy of model is kept: Compare tells what has changed since."
    )
    link.close()
    shown.view.compare.keep_requested.emit()
    assert shown.view.bar.told.text() == link.unsent


def test_an_answer_about_the_subject_of_before_is_dropped(shown, bench, link):
    shown.view.compare.compare_requested.emit(None)
    asked = len(link.sent)
    shown.work_on(ConsoleSubject("other"))
    link.answer(DIFFERENCE, to=asked)
    assert not shown.view.shows_difference


def test_what_is_chosen_here_is_not_shown_here_once_more(shown, bench):
    shown_again: list[tuple[str, str]] = []
    shown.view.show_chosen = lambda module, parameter: shown_again.append((module, parameter))
    path = next(row.path for row in MODULES if row.path)
    shown.presenter._choose(Module(path))
    assert bench.selection.current == Module(path) and shown_again == []
    bench.selection.choose(Parameter(f"{path}.weight"), "elsewhere")
    assert shown_again == [(path, f"{path}.weight")]
