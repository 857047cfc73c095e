"""The trace's presenter: how a trace begins and ends, and what stays between."""

from __future__ import annotations

import pytest

from app.presenters.autograd.trace import TracePresenter
from app.presenters.cells import CellsPresenter
from engine.project import edits
from engine.project.document import Project
from engine.protocol import (
    InterruptSignal,
    StartForwardCommand,
    StartTraceCommand,
    StopSignal,
    TraceRootSnapshot,
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
    assert link.signals == [StopSignal(), InterruptSignal()] and trace.told == []


def test_an_edit_of_the_model_leaves_code_that_runs_alone(trace, bench, link):
    trace.view.started.emit("x = 1")
    bench.store.set_project(edits.add_block(bench.project, "nn.Linear", 0, 0)[0])
    assert trace.told == [] and link.signals == []
