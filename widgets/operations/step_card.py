"""One operation of a line, explained on a card."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QWidget

from engine.protocol import ExplainedStep
from widgets import make
from widgets.operations.kind_mark import KindMark
from widgets.operations.prediction_table import PredictionTable
from widgets.shapes.failure_view import FailureView
from widgets.theme import GRID, mono_font

NOT_CHECKED = "Press Check to read PyTorch's own message."


class StepCard(QFrame):
    """Shows the kind of outcome and its reason, torch's rule with these numbers, and the result's
    layout. If torch refuses: why, the usual fix and, after the run, torch's own message."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("step_card")
        self.setProperty("role", "card")
        self.mark = KindMark()
        self.table = PredictionTable()
        self.code = make.text("step_code", mono=11)
        self.why = _wrapped("step_why")
        self.shares = _wrapped("step_shares", "heading")
        self.reasoning = _wrapped("step_reasoning", "muted")
        self.reasoning.setToolTip("PyTorch's rule, step by step, on these numbers.")
        self.refusal = _wrapped("step_refusal", "error")
        self.words = _wrapped("step_words", "error")
        self.words.setFont(mono_font(9))
        self.words.setToolTip("PyTorch's own message in full.")
        self.hint = _wrapped("step_hint")
        self.operands = FailureView()
        self.verdict = make.text("step_verdict")
        margins = (2 * GRID, GRID + GRID // 2, 2 * GRID, GRID + GRID // 2)
        grid = self._grid = make.grid(self, across=2 * GRID, margins=margins, stretch=1)
        grid.addWidget(self.mark, 0, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self.code, 0, 1)
        told = (self.why, self.shares, self.refusal, self.hint)
        shown = (self.operands, self.words, self.verdict, self.table, self.reasoning)
        for row, part in enumerate((*told, *shown), start=1):
            grid.addWidget(part, row, 1)

    def show_step(self, step: ExplainedStep) -> None:
        refused = step.kind == "refused"
        self.mark.show_kind(step.kind)
        make.tell(self.code, step.code)
        make.tell(self.why, f"Why: {step.why}" if step.why else "")
        make.tell(self.shares, _shares(step))
        make.tell(self.reasoning, "\n".join(f"· {line}" for line in step.reasoning))
        make.tell(self.refusal, step.refusal)
        make.tell(self.hint, f"Try: {step.hint}" if step.hint else "")
        self.operands.show_failed(step.failed)
        self.operands.setVisible(step.failed is not None)
        words = step.error or (NOT_CHECKED if refused and not step.facts else "")
        make.set_role(self.words, "error" if step.error else "muted")
        make.tell(self.words, words)
        self._show_verdict(step)
        self.table.setVisible(not refused)
        if not refused:
            self.table.show_step(step)
        # Widgets shown first make the layout compute its size before others are hidden.
        self._grid.invalidate()
        self.updateGeometry()

    def _show_verdict(self, step: ExplainedStep) -> None:
        """Say whether torch refused as predicted. Only steps with a fact "torch" have this line."""
        fact = next((fact for fact in step.facts if fact.name == "torch"), None)
        if fact is None:
            make.tell(self.verdict, "")
            return
        make.set_role(self.verdict, "success" if fact.agrees else "error")
        agreed = "✓ PyTorch refuses, as predicted."
        make.tell(
            self.verdict,
            agreed if fact.agrees else f"✗ Predicted: {fact.predicted}. PyTorch: {fact.actual}.",
        )


def _shares(step: ExplainedStep) -> str:
    """In words, the tensors of the line with which the result of a view or copy shares memory."""
    if step.kind not in ("view", "copy"):
        return ""
    if not step.shares_with:
        return "Shares memory with no tensor of this line."
    return f"Shares memory with {', '.join(step.shares_with)}."


def _wrapped(name: str, role: str = "") -> QLabel:
    label = make.text(name, role, wrap=True)
    label.setMinimumHeight(1)  # Qt's own minimum is the height in a very narrow column
    return label
