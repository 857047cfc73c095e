"""The trace's presenter: how a trace begins and ends, and what stays between."""

from __future__ import annotations

import pytest

from app.presenters.autograd.trace import TracePresenter
from app.presenters.cells import CellsPresenter
from app.selection.references import Call, Line
from engine.project import edits
from engine.project.document import Project, replace
from engine.protocol import (
    CompleteCommand,
    ErrorReport,
    ErrorSnapshot,
    ExampleSnapshot,
    GraphNode,
    GraphSnapshot,
    HeldSnapshot,
    InterruptSignal,
    OutputSnapshot,
    RunCellCommand,
    SourceLine,
    StartForwardCommand,
    StartTraceCommand,
    StopSignal,
    TraceCall,
    TraceRootCommand,
    TraceRootSnapshot,
    TraceSnapshot,
    TraceStepSnapshot,
    Variable,
)
from widgets.trace.view import TraceView


@pytest.fixture
def trace(bench, link, qtbot) -> TracePresenter:
    link.get_ready()
    view = TraceView()
    qtbot.addWidget(view)
    presenter = TracePresenter(bench, CellsPresenter(bench, bench.window), view, bench.window)
    presenter.view = view
    presenter.told = []
    view.show_problem = presenter.told.append
    return presenter


def sent(link) -> list[type]:
    return [type(command) for command in link.sent]


def test_a_trace_of_the_model_begins_a_forward_pass_and_one_of_code_does_not(trace, bench, link):
    trace.view.started.emit("x = 1")
    assert sent(link) == [StartTraceCommand] and bench.settings.trace_code == "x = 1"
    trace.view.started.emit("")
    assert sent(link)[1:] == [StartForwardCommand, StartTraceCommand]
    assert bench.settings.trace_code == "x = 1"


def test_a_rule_is_traced_by_its_node(trace, link):
    trace.trace_rule(4)
    assert (link.sent[-1].node, link.sent[-1].source) == (4, "")


def test_an_error_ends_the_run_and_is_told(trace, link):
    errors: list[str] = []
    trace.view.show_error = lambda error: errors.append(error.message)
    trace.view.started.emit("x = 1")
    link.fail("It broke.")
    assert errors == ["It broke."]
    link.close()  # nothing ran any more, and nothing was shown
    assert trace.told == []


def test_a_graph_that_cannot_be_read_is_told_to_a_trace_that_waits_for_it(trace, link):
    trace.show_no_graph("No graph.")
    assert trace.told == []
    trace._read_graph(TraceRootSnapshot(position=0, root="y"))
    trace.show_no_graph("No graph.")
    assert trace.told == ["No graph."]


def test_a_trace_ends_with_its_engine(trace, link):
    trace.view.started.emit("x = 1")
    link.close()
    assert trace.told == [
        "The engine has ended, and the trace with it. Press Start to trace again."
    ]


def test_another_project_interrupts_the_code_that_runs(trace, bench, link):
    bench.files.new(Project(name="Other"))
    assert link.signals == []
    trace.view.started.emit("x = 1")
    bench.files.new(Project(name="Third"))
    assert link.signals == [StopSignal(command=1), InterruptSignal(command=1)]
    assert trace.told == []


def test_an_edit_of_the_model_leaves_code_that_runs_alone(trace, bench, link):
    trace.view.started.emit("x = 1")
    bench.store.set_project(edits.add_block(bench.project, "nn.Linear", 0, 0)[0])
    assert trace.told == [] and link.signals == []


# -- a trace that is shown -------------------------------------------------------------------------


def traced(trace, bench, link, source: str = "y = x * 2", **fields) -> None:
    """A trace of two calls, the second of which made nodes 5 and 6."""
    if fields.get("is_example"):
        trace.view.example_started.emit(source)
    else:
        trace.view.started.emit(source)
    if fields.get("is_example"):
        link.answer(ExampleSnapshot(variables=(VARIABLE,)))
    calls = (TraceCall(-1, "line", "", "", 0), TraceCall(0, "op", "aten::mul", "", 0, nodes=2))
    for part, call in enumerate(calls):
        snapshot = TraceSnapshot(
            calls=(call,), lines=(LINE,) if not part else (), source=source, part=part, parts=2,
            error=fields.get("error"), revision=bench.store.revision,
        )  # fmt: skip
        link.answer(snapshot)
    link.answer(TraceStepSnapshot(position=-1))


def go_to(trace, link, step: TraceStepSnapshot) -> None:
    trace.view.moved.emit("to", step.position)
    link.answer(step)


LINE = SourceLine("cell 1", 1)
VARIABLE = Variable("x", "tensor", "Tensor", shape=(2,))
STEP = TraceStepSnapshot(position=1, first_node=5, nodes=2)


def graph_of(bench, *sequences: int) -> GraphSnapshot:
    nodes = tuple(
        GraphNode(10 + n, "MulBackward0", "*", "operation", None, sequence, ())
        for n, sequence in enumerate(sequences)
    )
    return GraphSnapshot(nodes=nodes, edges=(), plan=(), revision=bench.store.revision)


def test_a_trace_comes_in_parts_and_its_code_is_kept_once(trace, bench, link):
    traced(trace, bench, link)
    found = trace.view.trace
    assert found is not None and [call.kind for call in found.calls] == ["line", "op"]
    assert [cell.source for cell in bench.project.cells] == ["y = x * 2"]
    traced(trace, bench, link, "\ny = x * 2\n")
    assert len(bench.project.cells) == 1
    traced(trace, bench, link, "z = 1")
    traced(trace, bench, link)
    assert [cell.source for cell in bench.project.cells] == ["y = x * 2", "z = 1", "y = x * 2"]


def test_code_that_failed_and_examples_are_not_kept(trace, bench, link):
    traced(trace, bench, link, error=ErrorReport("ValueError", "No."))
    traced(trace, bench, link, is_example=True)
    assert bench.project.cells == ()
    start = next(each for each in link.sent if isinstance(each, StartTraceCommand) and each.example)
    assert start.source == "y = x * 2"


def test_the_reader_s_moves_are_sent_and_select_the_call(trace, bench, link):
    traced(trace, bench, link)
    number = trace.view.trace.reply_to
    for move, target in (("to", 1), ("step", -1)):
        trace.view.moved.emit(move, target)
        assert (link.sent[-1].move, link.sent[-1].target) == (move, target)
        link.answer(replace(STEP, position=1 if move == "to" else 0))
    assert bench.selection.current == Call(0, number)


def test_steps_are_remembered_as_one_choice_and_jumps_each(trace, bench, link):
    traced(trace, bench, link)
    chosen: list[object] = []
    bench.selection.choose = lambda reference, view, step: chosen.append((reference, view, step))
    number = trace.view.trace.reply_to
    for move in ("step", "to"):
        trace.view.moved.emit(move, 1)
        link.answer(STEP)
    assert chosen == [
        (Call(1, number), "trace", True), (Call(1, number), "trace", False),
    ]  # fmt: skip
    trace._move("to", 1)  # not of the reader
    link.answer(STEP)
    trace.view.moved.emit("reset", -1)
    link.answer(TraceStepSnapshot(position=-1))
    trace._move("to", 1)
    link.answer(STEP)
    assert len(chosen) == 2


def test_what_is_chosen_elsewhere_is_lit_and_gone_to(trace, bench, link):
    lit: list[tuple[int, ...]] = []
    trace.view.tree.show_chosen = lit.append
    bench.selection.choose(Line("cell 1", 1), "code")
    assert lit == []
    traced(trace, bench, link)
    assert lit[-1] == (0,)
    bench.selection.choose(None)
    assert lit[-1] == ()
    sent = len(link.sent)
    trace.show_chosen()
    assert len(link.sent) == sent
    bench.selection.choose(Line("cell 1", 1), "code")
    trace.show_chosen()
    assert (link.sent[-1].move, link.sent[-1].target) == ("to", 0)


@pytest.mark.parametrize(
    ("sequences", "node"), [((4, 5, 6, 7), 12), ((6, 5), 10), ((4, 7), None), ((), None)]
)
def test_the_last_node_of_a_call_is_shown_on_the_graph(trace, bench, link, sequences, node):
    shown: list[int] = []
    offered: list[bool] = []
    trace.node_requested.connect(shown.append)
    trace.view.call.show_node = offered.append
    traced(trace, bench, link)
    bench.store.take(graph_of(bench, *sequences))
    assert (link.sent[-1].move, link.sent[-1].target) == ("to", -1)  # for the call's numbers
    link.answer(STEP)
    assert offered[-1] is (node is not None)
    trace.view.graph_requested.emit()
    if node is None:
        assert shown == [] and isinstance(link.sent[-1], TraceRootCommand)
        assert link.sent[-1].position == 1
    else:
        assert shown == [node]


def test_a_call_without_nodes_has_none_on_the_graph(trace, bench, link):
    traced(trace, bench, link)
    bench.store.take(graph_of(bench, -1, 0))
    assert trace._node() is None
    go_to(trace, link, TraceStepSnapshot(position=0, first_node=-1, nodes=3))
    assert trace._node() is None
    go_to(trace, link, TraceStepSnapshot(position=0, first_node=0, nodes=1))
    assert trace._node() == 11


@pytest.mark.parametrize("is_example", [True, False])
def test_the_graph_of_a_call_is_read_and_then_shows_it(trace, bench, link, is_example):
    wanted: list[tuple] = []
    shown: list[int] = []
    trace.graph_wanted.connect(lambda root: wanted.append((root,)))
    trace.example_graph_wanted.connect(lambda *all_: wanted.append(all_))
    trace.node_requested.connect(shown.append)
    traced(trace, bench, link, is_example=is_example)
    go_to(trace, link, STEP)
    trace.view.graph_requested.emit()
    link.answer(TraceRootSnapshot(position=1, root="y"))
    assert wanted == ([("y", (VARIABLE,), "trace")] if is_example else [("y",)])
    bench.store.take(graph_of(bench, 5))
    link.answer(STEP)
    assert shown == [10]
    bench.store.take(graph_of(bench, 5))
    link.answer(STEP)
    assert shown == [10]  # it was awaited once


def test_a_call_whose_graph_no_variable_leads_to_says_so(trace, bench, link):
    wanted: list[str] = []
    trace.graph_wanted.connect(wanted.append)
    traced(trace, bench, link)
    go_to(trace, link, STEP)
    trace.view.graph_requested.emit()
    link.answer(TraceRootSnapshot(position=1, note="No variable leads there."))
    assert trace.told == ["No variable leads there."] and wanted == []


def test_the_graph_of_the_model_needs_no_root(trace, bench, link):
    wanted: list[str] = []
    trace.graph_wanted.connect(wanted.append)
    trace.view.graph_requested.emit()
    assert wanted == []  # nothing is traced
    traced(trace, bench, link, "")
    go_to(trace, link, STEP)
    trace.view.graph_requested.emit()
    assert wanted == [""]
    trace.show_no_graph("No graph.")
    trace.show_no_graph("No graph.")
    assert trace.told == ["No graph."]


def test_an_edit_ends_a_trace_of_the_model_only(trace, bench, link):
    for source, told in (("x = 1", []), ("", ["The model or its data has changed"])):
        traced(trace, bench, link, source)
        bench.store.set_project(edits.add_block(bench.project, "nn.Linear", 0, 0)[0])
        assert [words.partition(":")[0] for words in trace.told] == told
        assert (trace.view.trace is None) is bool(told)
    traced(trace, bench, link)
    bench.files.new(Project(name="Other"))
    assert trace.view.trace is None and len(trace.told) == 1
    traced(trace, bench, link)
    link.close()
    assert trace.told[1:] == [
        "The engine has ended, and the trace with it. Press Start to trace again."
    ]


def test_the_code_of_the_last_time_is_there_and_completed(trace, bench, link, qtbot):
    bench.settings.trace_code = "a = 1"
    view = TraceView()
    qtbot.addWidget(view)
    link.sent.clear()
    TracePresenter(bench, CellsPresenter(bench, bench.window), view, bench.window)
    assert view.source.input.toPlainText() == "a = 1"
    shown: list[object] = []
    view.source.input.show_completions = shown.append
    view.source.input.completion_wanted.emit("torch.re", 8)
    command = link.sent[-1]
    assert (type(command), command.source, command.cursor) == (CompleteCommand, "torch.re", 8)


def test_the_output_of_traced_code_is_shown_and_it_can_be_interrupted(trace, bench, link):
    shown: list[object] = []
    trace.view.add_output = shown.append
    trace.view.started.emit("print(1)")
    link.answer(OutputSnapshot(stream="stdout", text="1\n"))
    assert [each.text for each in shown] == ["1\n"]
    trace.view.interrupt_requested.emit()
    assert link.signals == [StopSignal(command=1), InterruptSignal(command=1)]


def test_an_interrupt_of_a_trace_that_waits_leaves_held_code(trace, bench, link):
    bench.send(RunCellCommand(source="breakpoint()"))
    link.answer(HeldSnapshot(at="line", file="<cell 1>", line=1))
    trace.view.started.emit("x = 1")
    trace.view.interrupt_requested.emit()
    assert link.signals == [StopSignal(command=2), InterruptSignal(command=2)]
    assert not link._kill_timer.isActive()
    error = ErrorReport(type="KeyboardInterrupt", message="It was stopped before it began.")
    link.answer(ErrorSnapshot(command="StartTraceCommand", error=error))
    link.finish(2)
    assert link.runs_code


def test_a_trace_can_begin_while_an_engine_is_there(trace, bench, link, qtbot):
    ready: list[bool] = []
    trace.view.show_ready = ready.append
    link.close()
    link.get_ready()
    assert (ready[0], ready[-1]) == (False, True)


@pytest.mark.parametrize("ready", [True, False])
def test_a_page_that_is_made_late_knows_whether_there_is_an_engine(bench, link, qtbot, ready):
    if ready:
        link.get_ready()
    view, told = TraceView(), list[bool]()
    qtbot.addWidget(view)
    view.show_ready = told.append
    TracePresenter(bench, CellsPresenter(bench, bench.window), view, bench.window)
    assert told == [ready]
