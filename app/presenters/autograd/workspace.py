"""The Autograd workspace: one batch forward through the blocks, and back through the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, cast

from PySide6.QtCore import QObject, Signal

from app.presenters.autograd.console_reading import ConsoleReading, read_of
from app.presenters.questions import Questions, in_words
from app.window.autograd_page import AutogradPage
from app.workbench import Workbench
from engine.project.document import replace
from engine.protocol import (
    BackwardMove,
    BackwardSnapshot,
    Command,
    CompareGradientsCommand,
    ComparisonSnapshot,
    ContinueTrainingCommand,
    ErrorReport,
    ExampleTab,
    ForwardSnapshot,
    GraphSnapshot,
    HeldSnapshot,
    InspectCommand,
    MoveBackwardCommand,
    MoveForwardCommand,
    Snapshot,
    StartBackwardCommand,
    StartForwardCommand,
    ValueSnapshot,
    Variable,
    VariablesSnapshot,
)
from widgets.boxes.boxes import VisibleGraph
from widgets.derivatives.form import split_inputs
from widgets.layout.nested_layout import layout_nested
from widgets.layout.outline import Direction, EdgeStyle, NestedLayout

Move = Literal["step", "back", "to", "end", "reset"]
_INTERRUPTED = "Interrupted. The step that was running is not done: step again."
_CHANGED = "The model or its data has changed, so this pass has ended: start a new one."
_ONE_PIECE = (
    "A step of your code runs in one piece: F7 starts its backward pass. The tab Trace steps"
    " through its lines."
)


class AutogradPresenter(QObject):
    """Signal `graph_failed(why)`: a graph that was asked for cannot be read."""

    graph_failed = Signal(str)

    def __init__(self, bench: Workbench, page: AutogradPage, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self.page = bench, page
        self._view = view = page.steps
        self._under_way = False
        self._suggested = self._default_root = ""
        self._example: tuple[str, ExampleTab] = "", ""  # the root of an example, and its tab
        self._questions = Questions(bench)
        self._failed = 0
        self.drawn: GraphSnapshot | None = None
        self._read: ConsoleReading | None = None  # of the graph; None for none of the console
        view.forward.start_requested.connect(self.start_forward)
        view.forward.move_requested.connect(self._move_forward)
        view.backward.start_requested.connect(self.start_backward)
        view.backward.move_requested.connect(self._move_backward)
        view.backward.compare_requested.connect(self.compare)
        view.inspect_requested.connect(self._inspect)
        view.graph.layout_requested.connect(self._lay_out)
        view.graph.changed.connect(self._on_graph_changed)
        view.roots.root_chosen.connect(self._on_root)
        view.roots.again_wanted.connect(self._read_again)
        view.came_in_sight.connect(self._read_if_old)
        view.own_call.continue_requested.connect(lambda: self._send(ContinueTrainingCommand()))
        view.own_call.stop_requested.connect(bench.link.stop_held)
        bench.store.on(ForwardSnapshot, self._show_forward)
        bench.store.on(VariablesSnapshot, self._show_variables)
        bench.store.on(GraphSnapshot, self._show_graph)
        bench.store.on(BackwardSnapshot, view.show_backward)
        bench.store.on(ComparisonSnapshot, view.show_comparison)
        bench.store.on(ValueSnapshot, view.show_value)
        bench.store.revision_changed.connect(self._on_revision)
        bench.link.state_changed.connect(view.show_engine_state)
        bench.link.ended.connect(self._on_engine_ended)
        bench.files.opened.connect(self._on_opened)
        view.show_engine_state(bench.link.state)
        newest = bench.newest(VariablesSnapshot)
        if newest is not None:
            view.roots.show_variables(newest.variables)

    # -- what the reader wants -------------------------------------------------------------------

    def start_forward(self, batch: int = 0) -> int:
        return self._send(forward_command(self._bench, batch))

    def step_forward(self) -> None:
        """Run the next block, or begin a pass when there is none. At the end of the pass nothing
        moves, so that a backward pass stays."""
        if self._is_code:
            self._bench.say(_ONE_PIECE)
            return
        forward = self._bench.newest(ForwardSnapshot)
        if forward is None:
            self.start_forward()
        elif forward.position == len(forward.order):
            self._bench.say("The forward pass is at its end. F11 steps backward.")
        else:
            self._move_forward("step")

    def start_backward(self) -> int:
        """Read the graph of the chosen root. The loss of the canvas's model needs a forward pass:
        begin one first when there is none. That of code is the loss of one step."""
        self._choose_default_root()
        root, forward = self._view.roots.root, 0
        command = self._view.backward.options.command(root)
        if not root and self._is_code:
            command = self._of_step(command)
        elif not root and self._bench.newest(ForwardSnapshot) is None:
            forward = self.start_forward()
        of, tab = self._example
        return self._send(replace(command, example=tab if root == of else ""), follows=forward)

    @property
    def _is_code(self) -> bool:
        return self._bench.project.subject.is_code

    def has_forward(self) -> bool:
        """Whether the next pass begins with a forward pass that can be stepped: that of the
        canvas's model. A tensor of the console has its graph already, and a step of code runs in
        one piece."""
        return not self.choose_root() and not self._is_code

    def _of_step(self, command: StartBackwardCommand) -> StartBackwardCommand:
        """The command for the loss of one step of the subject."""
        project = self._bench.project
        return replace(
            command,
            subject=project.subject,
            objective=project.objective,
            training=project.training,
            batch=self._view.forward.batch,
        )

    def show_graph_of(self, root: str) -> None:
        """Read and draw the graph of an expression of the console."""
        self._view.roots.choose(root)

    def show_own_call(self, held: HeldSnapshot | None) -> None:
        """The pass is a backward() of the user's code, which is held there; None: it goes on."""
        self._view.own_call.show_held(held)
        # A script of the user's is never stopped from here.
        self._view.own_call.stop.setVisible(self._bench.link.script is None)

    def show_held_pass(self, held: HeldSnapshot) -> None:
        """Show the pass in which a step of Train is held, of which all came before this page."""
        self.show_own_call(held)
        graph, backward = self._bench.newest(GraphSnapshot), self._bench.newest(BackwardSnapshot)
        if graph is not None:
            self._show_graph(graph)
        if backward is not None:
            self._view.show_backward(backward)

    def show_graph_beside(self, root: str) -> None:
        """Read and draw the graph of an expression from where the graph on screen came."""
        _, tab = self._example
        if tab:
            self.show_example(root, (), tab)
        else:
            self.show_graph_of(root)

    def step_backward(self) -> None:
        """Run the next node, or begin the backward pass when there is none."""
        if self._bench.newest(BackwardSnapshot) is None:
            self.start_backward()
        else:
            self._move_backward("step")

    def step_back(self) -> None:
        """Undo the last step of the backward pass, or of the forward pass if there is none."""
        if self._bench.newest(BackwardSnapshot) is not None:
            self._move_backward("back")
        else:
            self._move_forward("back")

    def run_backward(self, move: Literal["run", "out"] = "run") -> None:
        """Run to the next breakpoint; with `out`, to the last node of the next node's module. If
        there is no backward pass, it is started first."""
        start = 0
        if self._bench.newest(BackwardSnapshot) is None:
            start = self.start_backward()
        self._move_backward(move, follows=start)

    def run_back(self) -> None:
        """Undo nodes down to the breakpoint before, or the start of the backward pass."""
        if self._bench.newest(BackwardSnapshot) is not None:
            self._move_backward("back_run")

    def choose_root(self) -> str:
        """The root of the next pass, the default one if none is chosen; empty for the model."""
        self._choose_default_root()
        return self._view.roots.root

    def undo_forward(self) -> None:
        """Undo the last block; a backward pass ends with it."""
        self._move_forward("back")

    def finish_forward(self) -> None:
        """Run all blocks to the loss."""
        self._move_forward("end")

    def _choose_default_root(self) -> None:
        """Choose the console's newest tensor while the canvas is empty and no root is chosen; take
        that choice back once there are blocks, or a subject of code."""
        roots = self._view.roots
        is_empty = not self._bench.project.model.blocks and not self._is_code
        if is_empty and not roots.root:
            self._default_root = roots.newest
        elif not is_empty and roots.root == self._default_root:
            self._default_root = ""
        else:
            return
        roots.show_root(self._default_root)
        self._suggest_gradient(self._default_root)

    def show_example(self, root: str, variables: Sequence[Variable], tab: ExampleTab) -> None:
        """Read and draw the graph of a tensor of the tab's example, which has run."""
        self._default_root = ""
        self._example = root, tab
        self._view.roots.show_root(root, is_example=True)
        self._suggest_gradient(root, variables)
        self.start_backward()

    def _on_root(self, root: str) -> None:
        self._default_root = ""
        self._example = "", ""
        self._suggest_gradient(root)
        self.start_backward()

    def _read_again(self) -> None:
        """Read the graph of the same root again, of the same namespace."""
        root = self._view.roots.root
        if root != self._example[0]:
            self._suggest_gradient(root)
        self.start_backward()

    def _read_if_old(self) -> None:
        """Read the graph again if its root is bound anew, unless that would run code of the user's
        or end a pass that has begun: then say that it is old."""
        held = self._bench.store.held  # the variables are those of a frame
        if self._read is None or held is not None or not self._view.isVisible():
            return
        if not self._read.is_old(self._variables):
            return
        backward = self._bench.newest(BackwardSnapshot)
        has_begun = backward is not None and (backward.position > 0 or bool(backward.edits))
        if has_begun or not all(map(str.isidentifier, self._read.expressions)):
            self._view.show_old(self._view.roots.root)
        else:
            self._read_again()

    @property
    def _variables(self) -> Sequence[Variable]:
        known = self._bench.newest(VariablesSnapshot)
        return () if known is None else known.variables

    def _reading_of(self, graph: GraphSnapshot) -> ConsoleReading | None:
        """What a new graph was read of, if that is the console."""
        is_example = bool(self._example[1]) and graph.root == self._example[0]
        is_chosen = graph.root == self._view.roots.root and graph.subject_path is None
        if not graph.root or is_example or not is_chosen or self._bench.store.held is not None:
            return None
        return read_of(split_inputs(graph.root), self._variables)

    def _suggest_gradient(self, root: str, variables: Sequence[Variable] | None = None) -> None:
        """Offer a gradient of ones for a root of more than one number, which needs one. What the
        reader has written stays."""
        field = self._view.backward.options.gradient
        if field.text().strip() not in ("", self._suggested):
            return
        if variables is None:
            variables = self._variables
        shapes = {v.name: v.shape for v in variables}
        parts = [
            "None" if math.prod(shapes.get(name) or ()) == 1 else f"torch.ones_like({name})"
            for name in split_inputs(root)
        ]
        self._suggested = "" if set(parts) <= {"None"} else ", ".join(parts)
        field.setText(self._suggested)

    def compare(self) -> None:
        self._send(CompareGradientsCommand())

    def _move_forward(self, move: str, block: str = "") -> None:
        self._send(MoveForwardCommand(move=cast(Move, move), target=block))

    def _move_backward(self, move: str, node: int = -1, *, follows: int = 0) -> None:
        if move in ("step", "run") and self._view.own_call.at_end:
            self._send(ContinueTrainingCommand())
            return
        command = MoveBackwardCommand(move=cast(BackwardMove, move), target=node)
        self._send(command, follows=follows)

    def _inspect(self, of: str, key: str) -> None:
        setup = self._bench.project.training
        self._send(
            InspectCommand(
                of=cast(Literal["activation", "parameter", "gradient"], of),
                key=key,
                optimizer=setup.optimizer,
                optimizer_params=setup.optimizer_params,
            )
        )

    def _send(self, command: Command, *, follows: int = 0) -> int:
        """`follows` is the id of the command that this one needs, 0 for none: when that fails, its
        error alone is shown."""

        def failed(error: ErrorReport) -> None:
            if not follows or follows != self._failed:
                interrupted = error.type == "KeyboardInterrupt"
                self._view.show_problem(_INTERRUPTED if interrupted else in_words(error))
            if isinstance(command, StartBackwardCommand):
                self.graph_failed.emit(in_words(error))
            self._failed = command_id

        command_id = 0
        command_id = self._questions.ask(command, _shown_by_the_store, failed)
        if not command_id:
            self._view.show_problem(self._bench.link.unsent)
        return command_id

    # -- what is to be shown ---------------------------------------------------------------------

    def _names(self) -> dict[str, str]:
        """The blocks' names by id."""
        return {block.id: block.name for block in self._bench.project.model.blocks}

    def _show_forward(self, forward: ForwardSnapshot) -> None:
        self._under_way = True
        # A forward step ends the backward pass: torch will record another graph.
        self._bench.store.forget(GraphSnapshot, BackwardSnapshot, ComparisonSnapshot)
        self._view.clear_backward()
        self._read = None
        self._view.show_forward(forward, self._names())

    def _show_variables(self, snapshot: VariablesSnapshot) -> None:
        self._view.roots.show_variables(snapshot.variables)
        self._read_if_old()

    def _show_graph(self, graph: GraphSnapshot) -> None:
        self._under_way = True  # a pass of code has no forward pass to step
        held = self._bench.store.held
        if held is not None and held.at == "backward":
            self._default_root = ""
            self._view.roots.show_root(graph.root)
        self._view.show_graph(graph, self._names())
        self._read = self._reading_of(graph)

    def _lay_out(self, visible: VisibleGraph, direction: Direction, style: EdgeStyle) -> None:
        self._bench.layout.submit(
            "graph",
            layout_nested,
            visible.outline,
            direction,
            style,
            then=lambda layout: self._view.graph.show_layout(visible, cast(NestedLayout, layout)),
        )

    def _on_graph_changed(self) -> None:
        if self._view.graph.laid_out:
            self.drawn = self._bench.newest(GraphSnapshot)

    def _on_engine_ended(self) -> None:
        self._under_way, self._read = False, None

    def _on_opened(self) -> None:
        """Clear the page: its passes were of another model, or of variables that are gone."""
        self._under_way = False
        self._questions.drop()
        self.drawn = self._read = None
        self._default_root = ""
        self._example = "", ""
        self._view.roots.show_root("")
        self._suggest_gradient("")
        self._view.clear()
        self._view.show_problem("")

    def _on_revision(self) -> None:
        if not self._under_way:
            return
        self._under_way = False
        if self._bench.store.steps_console:
            self._view.forward.clear()
            return
        self._view.clear()
        self._view.show_problem(_CHANGED)


def _shown_by_the_store(_: Snapshot) -> None:
    """Answers are shown when the store emits them: other presenters ask for some, too."""


def forward_command(bench: Workbench, batch: int = 0) -> StartForwardCommand:
    project = bench.project
    return StartForwardCommand(model=project.model, training=project.training, batch=batch)


def require_forward(
    bench: Workbench, questions: Questions, failed: Callable[[ErrorReport], object]
) -> None:
    """Start a forward pass if there is none; the next command uses its model and batch."""
    if bench.newest(ForwardSnapshot) is None:
        questions.ask(forward_command(bench), _shown_by_the_store, failed)
