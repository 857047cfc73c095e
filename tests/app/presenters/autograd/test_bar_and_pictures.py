"""The bar of a pass, the tab Derivatives, the numbers on the graph, and its files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtCore import QObject, Signal

from app.presenters.autograd import graph_picture
from app.presenters.autograd.derivatives import DerivativesPresenter
from app.presenters.autograd.graph_numbers import GraphNumbersPresenter
from app.presenters.autograd.graph_picture import GraphPicturePresenter
from app.presenters.autograd.pass_bar import PassBarPresenter
from engine.project import edits
from engine.project.document import Project, replace
from engine.project.examples import derivative_examples
from engine.protocol import (
    CellSnapshot,
    DerivativeCommand,
    GradcheckCommand,
    GraphNumbersCommand,
    InterruptSignal,
    ReadEntryCommand,
    RunExampleCommand,
    StartForwardCommand,
    StopSignal,
    Variable,
    VariablesSnapshot,
)
from tests.widgets.backward.autograd_snapshots import GRAPH, backward, forward
from widgets.autograd.autograd_view import AutogradView
from widgets.derivatives.view import DerivativeView

ANSWER = CellSnapshot(ok=True, error=None)  # of any kind: what is asked for it is shown


def derivative(**fields: Any) -> DerivativeCommand:
    return DerivativeCommand(kind="jacobian", **fields)


# -- the bar ---------------------------------------------------------------------------------------


class Passes:
    """Notes what it is told to do. `forward_first`: the next pass begins with a forward pass."""

    def __init__(self, view: AutogradView) -> None:
        self.page = SimpleNamespace(steps=view)
        self.done: list[Any] = []
        self.forward_first = True

    def has_forward(self) -> bool:
        return self.forward_first

    def start_forward(self, batch: int) -> None:
        self.done.append(("start_forward", batch))

    def __getattr__(self, name: str) -> Any:
        return lambda: self.done.append(name)


@pytest.fixture
def passes(bench, link, qtbot) -> Passes:
    link.get_ready()
    view = AutogradView()
    qtbot.addWidget(view)
    made = Passes(view)
    PassBarPresenter(bench, cast(Any, made), bench.window)
    return made


def took(bench, *snapshots: Any) -> None:
    for snapshot in snapshots:
        bench.store.take(replace(snapshot, revision=bench.store.revision))


@pytest.mark.parametrize("forward_first", [True, False])
def test_start_begins_the_pass_that_comes_first(passes, forward_first: bool) -> None:
    passes.forward_first = forward_first
    passes.page.steps.bar.start_requested.emit()
    batch = passes.page.steps.forward.batch
    assert passes.done == [("start_forward", batch) if forward_first else "start_backward"]


@pytest.mark.parametrize(
    ("snapshots", "forward_first", "step", "run"),
    [
        ((), True, ["start"], ["start", "finish_forward"]),
        ((forward(1),), True, ["step_forward"], ["finish_forward"]),
        ((forward(4),), True, ["step_backward"], ["run_backward"]),
        ((forward(1), GRAPH, backward(0)), True, ["step_backward"], ["run_backward"]),
        ((), False, ["step_backward"], ["run_backward"]),
        ((forward(1),), False, ["step_backward"], ["run_backward"]),
    ],
)
def test_a_move_is_one_of_the_pass_under_way(
    passes, bench, snapshots: tuple, forward_first: bool, step: list, run: list
) -> None:
    passes.forward_first = forward_first
    took(bench, *snapshots)
    bar = passes.page.steps.bar
    for signal, expected in ((bar.step_requested, step), (bar.run_requested, run)):
        passes.done.clear()
        signal.emit()
        assert [each[0] if isinstance(each, tuple) else each for each in passes.done] == [
            {"start": "start_forward"}.get(each, each) for each in expected
        ]


@pytest.mark.parametrize(
    ("snapshots", "expected"),
    [
        ((), "undo_forward"),
        ((forward(4),), "undo_forward"),
        ((forward(4), GRAPH, backward(0)), "undo_forward"),
        ((forward(4), GRAPH, backward(1)), "step_back"),
        ((replace(GRAPH, root="y"), backward(0)), "step_back"),
        ((replace(GRAPH, root="y"),), "undo_forward"),
    ],
)
def test_back_undoes_backward_before_forward(
    passes, bench, snapshots: tuple, expected: str
) -> None:
    took(bench, *snapshots)
    passes.page.steps.bar.back_requested.emit()
    assert passes.done == [expected]
    passes.page.steps.bar.compare_requested.emit()
    assert passes.done[1:] == ["compare"]


# -- derivatives -----------------------------------------------------------------------------------


@pytest.fixture
def derivatives(bench, link, qtbot) -> DerivativeView:
    link.get_ready()
    bench.store.take(VariablesSnapshot(variables=(Variable("x", "tensor", "Tensor"),)))
    view = DerivativeView()
    qtbot.addWidget(view)
    view.told = []
    view.show_variables = lambda variables: view.told.append([each.name for each in variables])
    view.show_answer = lambda answer: view.told.append("answer")
    view.show_entry = lambda answer: view.told.append("entry")
    view.show_error = lambda error: view.told.append(error.message)
    view.clear = lambda: view.told.append("clear")
    view.presenter = DerivativesPresenter(bench, view, bench.window)
    return view


def kinds(link) -> list[type]:
    return [type(command) for command in link.sent]


def test_the_variables_of_the_console_are_offered(derivatives, bench) -> None:
    assert derivatives.told == [["x"]]
    bench.store.take(VariablesSnapshot(variables=()))
    assert derivatives.told == [["x"], []]


@pytest.mark.parametrize("kind", [derivative, GradcheckCommand])
def test_the_model_needs_a_forward_pass_and_a_function_none(derivatives, link, kind: Any) -> None:
    derivatives.asked.emit(kind(function="f", inputs=("x",)))
    asked = type(link.sent[0])
    assert len(link.sent) == 1 and link.sent[0].example == ""
    derivatives.asked.emit(kind(function="", inputs=()))
    assert kinds(link)[1:] == [StartForwardCommand, asked]
    link.answer(ANSWER)
    link.fail("It broke.")
    assert derivatives.told[1:] == ["answer", "It broke."]


def test_a_pass_that_is_there_is_not_begun_again(derivatives, bench, link) -> None:
    took(bench, forward(4))
    derivatives.asked.emit(derivative(function="", inputs=()))
    assert kinds(link) == [DerivativeCommand]


@pytest.mark.parametrize("kind", [derivative, GradcheckCommand])
def test_the_code_of_an_example_runs_first_in_its_own_variables(
    derivatives, link, kind: Any
) -> None:
    example = next(iter(derivative_examples().values()))
    derivatives.example = example
    derivatives.asked.emit(kind(function="f", inputs=("x",)))
    run, asked = link.sent
    assert (type(run), run.source, run.tab) == (RunExampleCommand, example.code, "derivatives")
    assert asked == replace(
        kind(function="f", inputs=("x",)), id=2, revision=1, example="derivatives"
    )
    link.fail("The example broke.", to=1)
    assert derivatives.told[1:] == ["The example broke."]


def test_an_entry_is_shown_as_one(derivatives, link) -> None:
    derivatives.example = next(iter(derivative_examples().values()))
    derivatives.asked.emit(ReadEntryCommand(row=1, column=2))
    assert kinds(link) == [ReadEntryCommand]
    link.answer(ANSWER)
    assert derivatives.told[1:] == ["entry"]


@pytest.mark.parametrize("end", ["edit of the model", "edit", "project", "engine"])
def test_derivatives_go_with_what_they_are_of(
    derivatives, bench, link, end: str, monkeypatch
) -> None:
    is_of_model = end == "edit of the model"
    monkeypatch.setattr(DerivativeView, "is_of_model", property(lambda view: is_of_model))
    derivatives.asked.emit(derivative(function="f", inputs=("x",)))
    asked = len(link.sent)
    del derivatives.told[:]
    if end.startswith("edit"):
        bench.store.set_project(edits.add_block(bench.project, "nn.Linear", 0, 0)[0])
    elif end == "project":
        bench.files.new(Project(name="Other"))
    else:
        link.ended.emit()
    stays = end == "edit"
    assert ("clear" in derivatives.told) is not stays
    link.answer(ANSWER, to=asked)
    assert ("answer" in derivatives.told) is stays


def test_a_line_runs_in_the_console_and_long_work_is_interrupted(derivatives, link) -> None:
    ran: list[str] = []
    derivatives.presenter.run_requested.connect(ran.append)
    derivatives.run_requested.emit("f(x)")
    assert ran == ["f(x)"]
    derivatives.asked.emit(derivative(function="f", inputs=("x",)))
    derivatives.interrupt_requested.emit()
    assert link.signals == [StopSignal(command=1), InterruptSignal(command=1)]


# -- numbers and files of the graph ----------------------------------------------------------------


def test_numbers_are_asked_for_the_nodes_in_view(bench, link, qtbot) -> None:
    link.get_ready()
    view = AutogradView()
    qtbot.addWidget(view)
    GraphNumbersPresenter(bench, view, bench.window)
    shown: list[Any] = []
    view.graph.show_numbers = shown.append
    view.show_problem = shown.append
    view.graph.numbers_wanted.emit((4, 2))
    assert (kinds(link), link.sent[0].nodes) == ([GraphNumbersCommand], (4, 2))
    link.fail("It is gone.", "Start again.")
    assert shown == ["It is gone. Start again."]
    GraphNumbersPresenter(bench, view, bench.window)


class Bar(QObject):
    export_requested = Signal(str)
    stop_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.saving: list[bool] = []

    def show_saving(self, on: bool) -> None:
        self.saving.append(on)


class Slot:
    """A layout worker that waits."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.cancelled: list[str] = []

    def submit(self, slot: str, *arguments: Any, then: Any, otherwise: Any) -> None:
        self.asked.append((slot, arguments, then, otherwise))

    def cancel(self, slot: str) -> None:
        self.cancelled.append(slot)


@pytest.fixture
def saving(bench, monkeypatch) -> Any:
    """A presenter of a picture of `GRAPH`, and what it has for saving."""
    bar, layout = Bar(), Slot()
    desk = SimpleNamespace(**{name: getattr(bench, name) for name in
                              ("files", "project", "say", "window")}, layout=layout)  # fmt: skip
    hierarchy = SimpleNamespace(graph=GRAPH)
    view = SimpleNamespace(hierarchy=hierarchy, open_keys=("a",))
    pane = cast(Any, SimpleNamespace(view=view, bar=bar))
    saved: list[Any] = []
    monkeypatch.setattr(graph_picture, "save_graph", lambda *all_: saved.append(all_))
    presenter = GraphPicturePresenter(cast(Any, desk), pane, bench.window)
    return SimpleNamespace(presenter=presenter, bar=bar, view=view, layout=layout, saved=saved)


@pytest.mark.parametrize("form", ["dot", "json", "graphml"])
def test_a_small_graph_is_saved_at_once_with_what_is_open(saving, bench, tmp_path, form) -> None:
    bench.dialogs.path = str(tmp_path / f"g.{form}")
    saving.bar.export_requested.emit(form)
    assert saving.saved == [(bench.dialogs.path, saving.view.hierarchy, ("a",))]
    assert bench.window.said == [f"The graph was saved to {bench.dialogs.path}"]
    assert bench.dialogs.asked[-1].startswith("Save graph")
    assert bench.dialogs.asked[-1].endswith(f"{bench.project.name} graph.{form}")
    assert saving.bar.saving == [False] and saving.layout.asked == []


def test_without_a_graph_or_a_file_nothing_is_saved(saving, bench) -> None:
    saving.bar.export_requested.emit("dot")
    assert saving.saved == [] and bench.window.said == []
    saving.view.hierarchy = None
    asked = len(bench.dialogs.asked)
    saving.bar.export_requested.emit("dot")
    assert len(bench.dialogs.asked) == asked


def test_a_large_graph_is_saved_by_the_worker(saving, bench, tmp_path, monkeypatch, qtbot) -> None:
    monkeypatch.setattr(graph_picture, "AT_ONCE_NODES", len(GRAPH.nodes) - 1)
    bench.dialogs.path = path = str(tmp_path / "g.json")
    saving.bar.export_requested.emit("json")
    assert saving.saved == [] and saving.bar.saving == [True]
    count = len(GRAPH.nodes)
    assert bench.window.said == [f"Saving the graph of {count} nodes to {path}…"]
    ((slot, (_, suffix, _, keys), then, otherwise),) = saving.layout.asked
    assert (slot, suffix, keys) == (graph_picture.SLOT, ".json", ("a",))
    then(b"data")
    assert saving.bar.saving[1] is False
    qtbot.waitUntil(lambda: len(bench.window.said) == 2)
    assert (tmp_path / "g.json").read_bytes() == b"data"
    assert bench.window.said[1] == f"The graph was saved to {path}"
    otherwise(OSError("The disk is full."))
    assert bench.window.said[2] == "The graph was not saved: The disk is full."
    saving.bar.stop_requested.emit()
    assert saving.layout.cancelled == [graph_picture.SLOT] and saving.bar.saving[-1] is False
    assert bench.window.said[3] == "The graph was not saved"


def test_a_graph_of_the_limit_is_saved_at_once(saving, bench, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(graph_picture, "AT_ONCE_NODES", len(GRAPH.nodes))
    bench.dialogs.path = str(tmp_path / "g.json")
    saving.bar.export_requested.emit("json")
    assert len(saving.saved) == 1 and saving.layout.asked == []


@pytest.mark.parametrize("is_large", [True, False])
def test_a_file_that_cannot_be_written_is_told(
    saving, bench, tmp_path, monkeypatch, qtbot, is_large: bool
) -> None:
    bench.dialogs.path = str(tmp_path / "no folder" / "g.json")
    if is_large:
        monkeypatch.setattr(graph_picture, "AT_ONCE_NODES", 0)
        saving.bar.export_requested.emit("json")
        saving.layout.asked[0][2](b"data")
        qtbot.waitUntil(lambda: len(bench.window.said) == 2)
    else:

        def fail(*_: Any) -> None:
            raise OSError("No such folder.")

        monkeypatch.setattr(graph_picture, "save_graph", fail)
        saving.bar.export_requested.emit("json")
    told = bench.window.said[-1].removeprefix("The graph was not saved: ")
    assert told != bench.window.said[-1] and "No such f" in told
