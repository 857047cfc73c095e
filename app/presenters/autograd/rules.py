"""The rule of a node of the backward pass: asked for when it is shown, checked on request."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.protocol import (
    BackwardSnapshot,
    CheckRuleCommand,
    Command,
    ErrorReport,
    ForwardSnapshot,
    GraphSnapshot,
    RuleCommand,
    RuleOpsCommand,
)
from widgets.autograd.autograd_view import AutogradView
from widgets.rules.rule_card import RuleCard


class RulesPresenter(QObject):
    """Puts a RuleCard beside the step's values. The card shows the node that ran last, or the one
    chosen in the graph. Its rule is asked for only while a tab of the card is in front: on large
    tensors a rule takes longer than the step.

    Signals: `trace_requested(node)`: step through the rule of a node that has run;
    `code_requested(source)`: trace code of the console."""

    trace_requested = Signal(int)
    code_requested = Signal(str)

    def __init__(self, bench: Workbench, view: AutogradView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._questions = Questions(bench)
        self._where: tuple[int, int] | None = None
        self._looked_at: int | None = None
        self.card = RuleCard()
        view.backward.set_rule_card(self.card)
        self.card.rule_requested.connect(self.ask)
        self.card.check_requested.connect(lambda node: self._ask(CheckRuleCommand(node=node)))
        self.card.ops_requested.connect(lambda node: self._ask(RuleOpsCommand(node=node)))
        self.card.trace_requested.connect(self.trace_requested)
        self.card.code_requested.connect(self.code_requested)
        into = QShortcut(QKeySequence("Ctrl+F11"), view)
        into.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        into.activated.connect(self._step_into)
        self.card.currentChanged.connect(self._show)
        view.node_selected.connect(self._look_at)
        bench.store.on(BackwardSnapshot, self._follow)
        bench.store.on((GraphSnapshot, ForwardSnapshot), lambda _: self._clear())
        bench.store.revision_changed.connect(self._clear)
        bench.link.ended.connect(self._clear)

    def ask(self, node: int, input_nr: int = -1, element: tuple[int, ...] | None = None) -> None:
        """Show the rule of a node for one of its inputs, with the numbers for one element."""
        if self._bench.newest(BackwardSnapshot) is not None:
            self._ask(RuleCommand(node=node, input=input_nr, element=element))

    def _step_into(self) -> None:
        """Step through the rule that the card shows, if its node has run."""
        backward, node = self._bench.newest(BackwardSnapshot), self._looked_at
        graph = self._bench.newest(GraphSnapshot)
        if backward is None or graph is None or node is None:
            return
        if node in graph.plan[: backward.position]:
            self.trace_requested.emit(node)

    def _ask(self, command: Command) -> None:
        card = self.card
        page, shown = {
            RuleCommand: (card.formula, card.show_rule),
            CheckRuleCommand: (card.check, card.show_check),
            RuleOpsCommand: (card.ops, card.show_ops),
        }[type(command)]

        def failed(error: ErrorReport) -> None:
            page.show_problem(in_words(error))

        self._questions.ask(command, shown, failed)

    def _follow(self, snapshot: BackwardSnapshot) -> None:
        """Show the node of the step that the pass has come to, if it has moved."""
        where = snapshot.pass_number, snapshot.position
        if where == self._where:
            return
        self._where = where
        self.card.forget_step()
        node = self._first_node if snapshot.step is None else snapshot.step.node
        if node is not None:
            self._look_at(node)

    def _look_at(self, node: int) -> None:
        self._looked_at = node
        self._show()

    def _show(self) -> None:
        card, node = self.card, self._looked_at
        if node is not None and card.rule_in_front and not card.shows_step(node):
            self.ask(node)

    @property
    def _first_node(self) -> int | None:
        graph = self._bench.newest(GraphSnapshot)
        return graph.plan[0] if graph is not None and graph.plan else None

    def _clear(self) -> None:
        self._where = self._looked_at = None
        self._questions.drop()
        self.card.clear()
