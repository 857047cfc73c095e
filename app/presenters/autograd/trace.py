"""The tab Forward, op by op, of the Autograd workspace."""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import QObject, Signal

from app.presenters.autograd.workspace import require_forward
from app.presenters.cells import CellsPresenter
from app.presenters.questions import Questions
from app.selection.finding import calls_of
from app.selection.references import Call
from app.workbench import Workbench
from engine.protocol import (
    CompleteCommand,
    ErrorReport,
    ExampleSnapshot,
    GraphSnapshot,
    ModelSnapshot,
    MoveTraceCommand,
    OutputSnapshot,
    OutputTailSnapshot,
    Snapshot,
    StartTraceCommand,
    TraceMove,
    TraceRootCommand,
    TraceRootSnapshot,
    TraceSnapshot,
    TraceStepSnapshot,
    Variable,
    join_trace,
)
from widgets.trace.view import TraceView

TRACE = "trace"
_CHANGED = "The model or its data has changed: trace the batch again."


class TracePresenter(QObject):
    """Signals: `node_requested(node)`: show a node of the graph in the tab Step through;
    `graph_wanted(root)`: read the graph of an expression of the console, or "" for the model's
    loss; `example_graph_wanted(root, variables, tab)`: of an expression of the traced example."""

    node_requested = Signal(int)
    graph_wanted = Signal(str)
    example_graph_wanted = Signal(str, object, str)

    def __init__(
        self, bench: Workbench, cells: CellsPresenter, view: TraceView, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bench, self._cells, self._view = bench, cells, view
        self._questions = Questions(bench)
        self._parts: list[TraceSnapshot] = []
        self._step: TraceStepSnapshot | None = None
        self._variables: tuple[Variable, ...] | None = None  # of the example that was traced
        self._awaited_call = -1  # this call's node is shown when its graph arrives
        self._is_running = False
        self._goes_to = ""  # the move of the reader that is under way
        if bench.settings.trace_code:
            view.source.input.set_source(bench.settings.trace_code)
        view.started.connect(self._start)
        view.example_started.connect(self._start_example)
        view.moved.connect(self._go)
        bench.selection.views[view] = TRACE
        bench.selection.changed.connect(lambda _: self._follow())
        view.interrupt_requested.connect(self._questions.stop)
        view.graph_requested.connect(self._show_on_graph)
        view.source.input.completion_wanted.connect(self._complete)
        bench.store.on(GraphSnapshot, self._on_graph)
        bench.store.revision_changed.connect(self._on_revision)
        bench.files.opened.connect(self._on_opened)
        bench.link.state_changed.connect(lambda state: view.show_ready(state == "ready"))
        bench.link.ended.connect(self._on_engine_ended)
        view.show_ready(bench.link.state == "ready")

    # -- what the reader wants -------------------------------------------------------------------

    def _start(self, source: str) -> None:
        if source:
            self._bench.settings.trace_code = source
            self._cells.note_run()
        else:
            require_forward(self._bench, self._questions, self._fail)
        self._run(StartTraceCommand(source=source))

    def _start_example(self, source: str) -> None:
        self._run(StartTraceCommand(source=source, example=True))

    def trace_rule(self, node: int) -> None:
        """Step through the rule of a node of the current backward pass."""
        self._run(StartTraceCommand(node=node))

    def _run(self, command: StartTraceCommand) -> None:
        self._forget()
        self._is_running = True
        self._view.show_running()
        self._questions.ask(command, self._take, self._fail)

    def _go(self, move: str, call: int) -> None:
        self._goes_to = move
        self._move(move, call)

    def _move(self, move: str, call: int) -> None:
        command = MoveTraceCommand(move=cast(TraceMove, move), target=call)
        self._questions.ask(command, self._show_step, self._fail)

    def _complete(self, source: str, cursor: int) -> None:
        command = CompleteCommand(source=source, cursor=cursor)
        self._questions.ask(command, self._view.source.input.show_completions, self._fail)

    def _show_on_graph(self) -> None:
        node, trace, step = self._node(), self._view.trace, self._step
        if node is not None:
            self.node_requested.emit(node)
        elif trace is not None and step is not None and trace.source:
            self._questions.ask(
                TraceRootCommand(position=step.position), self._read_graph, self._fail
            )
        elif step is not None:
            self._read_graph(TraceRootSnapshot(position=step.position))

    def _read_graph(self, found: TraceRootSnapshot) -> None:
        """Read the graph with the call's nodes; when it arrives, the node is shown."""
        if found.note:
            self._view.show_problem(found.note)
            return
        self._awaited_call = found.position
        if self._variables is None:
            self.graph_wanted.emit(found.root)
        else:
            self.example_graph_wanted.emit(found.root, self._variables, "trace")

    def show_no_graph(self, why: str) -> None:
        """The graph of a call's node cannot be read."""
        if self._awaited_call >= 0:
            self._awaited_call = -1
            self._view.show_problem(why)

    # -- from the engine -------------------------------------------------------------------------

    def _take(self, snapshot: Snapshot) -> None:
        """Show what the running code sends: its output, the parts of the trace, the first step."""
        match snapshot:
            case OutputSnapshot() | OutputTailSnapshot():
                self._view.add_output(snapshot)
            case ExampleSnapshot(variables=variables):
                self._variables = variables
            case TraceSnapshot():
                self._parts.append(snapshot)
            case TraceStepSnapshot():
                trace, self._parts = join_trace(self._parts), []
                self._is_running = False
                self._keep(trace)
                model = self._bench.newest(ModelSnapshot)
                self._view.show_trace(trace, "" if model is None else model.code)
                self._show_step(snapshot)
                self._follow()

    def _show_step(self, step: TraceStepSnapshot) -> None:
        self._step = step
        self._view.show_step(step)
        node = self._node()
        self._view.call.show_node(node is not None)
        if self._awaited_call == step.position and node is not None:
            self.node_requested.emit(node)
        self._awaited_call = -1
        trace = self._view.trace
        if self._goes_to and step.position >= 0 and trace is not None:
            call = Call(step.position, trace.reply_to)
            self._bench.selection.choose(call, TRACE, step=self._goes_to != "to")
        self._goes_to = ""

    def show_chosen(self) -> None:
        """Go to the first call that made what is chosen."""
        calls = calls_of(self._bench.selection.current, self._bench.known)
        if calls:
            self._move("to", calls[0])

    def _follow(self) -> None:
        """Light the calls that made what was chosen."""
        if self._view.trace is not None:
            known = self._bench.known
            self._view.tree.show_chosen(calls_of(self._bench.selection.current, known))

    def _fail(self, error: ErrorReport) -> None:
        self._is_running = False
        self._view.show_error(error)

    def _keep(self, trace: TraceSnapshot) -> None:
        """Add the traced code to the project's cells, once, if it ran without an error and is no
        example."""
        source = trace.source.strip("\n")
        cells = self._cells.cells
        if (
            self._variables is None
            and source
            and trace.error is None
            and (not cells or cells[-1].source != source)
        ):
            self._cells.keep(source)

    def _node(self) -> int | None:
        """The last node that the call made, if it is in the current graph."""
        graph, step = self._bench.newest(GraphSnapshot), self._step
        if graph is None or step is None or step.first_node < 0:
            return None
        made = range(step.first_node, step.first_node + step.nodes)
        nodes = [node for node in graph.nodes if node.sequence in made]
        return max(nodes, key=lambda node: node.sequence).id if nodes else None

    def _on_graph(self, _: GraphSnapshot) -> None:
        if self._step is not None:
            # The graph may have the call's nodes: ask the engine for their numbers.
            self._move("to", self._step.position)

    # -- what ends a trace -----------------------------------------------------------------------

    def _on_revision(self) -> None:
        trace = self._view.trace
        if trace is not None and not trace.source and not trace.rule:
            self._end(_CHANGED)

    def _on_opened(self) -> None:
        if self._is_running:
            self._questions.stop()
        self._end("")

    def _on_engine_ended(self) -> None:
        if self._is_running or self._view.trace is not None:
            self._end("The engine has ended, and the trace with it. Press Start to trace again.")

    def _end(self, why: str) -> None:
        self._forget()
        self._view.clear()
        if why:
            self._view.show_problem(why)

    def _forget(self) -> None:
        self._questions.drop()
        self._parts, self._step, self._is_running = [], None, False
        self._variables = None
        self._awaited_call = -1
