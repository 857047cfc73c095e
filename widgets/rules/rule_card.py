"""A node's rule: its formula with the numbers of a step, its check, and its operators."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QTabWidget, QWidget

from engine.protocol import RuleCheckSnapshot, RuleOpsSnapshot, RuleSnapshot
from widgets import make
from widgets.rules.rule_check import CHECK_TEXT, OPS_TEXT, RuleCheck, RuleOps
from widgets.rules.rule_formula import EMPTY_TEXT, RuleFormula

_TABS = (
    ("Formula", "The rule in symbols, and with the numbers of one element"),
    ("Check", CHECK_TEXT),
    ("Inside", OPS_TEXT),
)


class RuleCard(QTabWidget):
    """Shows the engine's answers on one node's rule. It fits into 384 pixels.

    `show_rule` shows another node or element; for another node it clears the check and the
    operators.
    """

    rule_requested = Signal(int, int, object)
    """(node, input, element): the numbers of another element (a tuple; None for the first)."""
    check_requested = Signal(int)
    ops_requested = Signal(int)
    trace_requested = Signal(int)
    code_requested = Signal(str)
    """Trace this code: then the rule can be checked."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._node: int | None = None
        self._has_run = False
        self.formula, self.check, self.ops = RuleFormula(), RuleCheck(), RuleOps()
        pages = (self.formula, self.check, self.ops)
        rows = ((page, title, tip) for page, (title, tip) in zip(pages, _TABS, strict=True))
        make.tabs("rule_card", rows, "The node's rule", tabs=self)
        self.formula.rule_requested.connect(self.rule_requested)
        self.check.check_requested.connect(self._ask_check)
        self.check.code_requested.connect(self.code_requested)
        self.ops.ops_requested.connect(self._ask_ops)
        self.ops.trace_requested.connect(self.ask_trace)

    @property
    def node(self) -> int | None:
        """The node whose rule is shown."""
        return self._node

    @property
    def rule_in_front(self) -> bool:
        """Whether one of the card's own pages is visible, not a tab of another widget."""
        return self.currentWidget() in (self.formula, self.check, self.ops)

    def shows_step(self, node: int) -> bool:
        """Whether it shows this node's rule with the numbers of the current step."""
        return self._node == node and self._has_run

    def show_rule(self, snapshot: RuleSnapshot) -> None:
        """Show a rule. For the same node as before, check and operators stay."""
        has_run = snapshot.outgoing is not None
        if (snapshot.node, has_run) != (self._node, self._has_run) or not has_run:
            self._node, self._has_run = snapshot.node, has_run
            self.check.clear(ready=has_run)
            self.ops.clear(ready=has_run)
        self.formula.show_rule(snapshot)

    def show_check(self, snapshot: RuleCheckSnapshot) -> None:
        if snapshot.node == self._node:
            self.check.show_check(snapshot)

    def show_ops(self, snapshot: RuleOpsSnapshot) -> None:
        if snapshot.node == self._node:
            self.ops.show_ops(snapshot)

    def forget_step(self) -> None:
        """Note that the pass has moved: the numbers shown belong to an earlier step."""
        self._has_run = False

    def clear(self, text: str = EMPTY_TEXT) -> None:
        """Return to the empty state."""
        self._node, self._has_run = None, False
        self.formula.clear(text)
        self.check.clear()
        self.ops.clear()

    def _ask_check(self) -> None:
        if self._node is not None:
            self.check_requested.emit(self._node)

    def _ask_ops(self) -> None:
        if self._node is not None:
            self.ops_requested.emit(self._node)

    def ask_trace(self) -> None:
        """Step through the rule of the shown node, if that has run."""
        if self._node is not None and self._has_run:
            self.trace_requested.emit(self._node)
