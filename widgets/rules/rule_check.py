"""The check of a rule against finite differences, and the operators that it runs."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QWidget,
)

from engine.protocol import (
    CheckedRuleElement,
    RuleCheckSnapshot,
    RuleOp,
    RuleOpsSnapshot,
    RuleOpValue,
)
from widgets import make, theme
from widgets.table import ReadTable
from widgets.text import format_number, format_shape
from widgets.theme import GRID

CHECK_TEXT = (
    "Changes each element of the operation's inputs a little, in float64, and measures how the"
    " result changes. This derivative does not use the rule, so it can check it."
)
OPS_TEXT = "Runs the rule once more, on copies, and lists the operators that torch runs for it."
TRACE_TEXT = (
    "Runs the rule once more, on copies, and steps through it with all values: line by line where"
    " it is written in Python, op by op everywhere (Ctrl+F11)."
)
_MARGINS = (GRID // 2, GRID, GRID // 2, 0)
_VERDICTS = {"right": "success", "wrong": "error", "kink": "warning", "edge": "warning"}


class RuleCheck(QWidget):
    """Emits `check_requested()`; shows the verdict, and the elements, worst first. If no operation
    was recorded to check against, `code_requested(source)` asks for a trace of the code."""

    check_requested = Signal()
    code_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("rule_check_page")
        self.button = make.button(
            "rule_check", "Check by finite differences", "mdi6.check-decagram-outline", self._ask
        )
        self.button.setAccessibleName("Check the rule by finite differences")
        self.button.setToolTip(CHECK_TEXT)
        self._code = ""
        self.trace = make.button("rule_check_trace", "Trace its code", "mdi6.debug-step-over")
        self.trace.setAccessibleName("Trace the code that made the graph")
        self.trace.setToolTip(
            "Runs the cells that made this graph again, in the tab Forward, and records the"
            " inputs of each operation. Show on graph leads back to the graph."
        )
        self.trace.clicked.connect(lambda: self.code_requested.emit(self._code))
        self._verdict = make.paragraph("rule_verdict")
        self._notes = make.paragraph("rule_check_notes", "muted")
        self.table = ReadTable(
            "rule_check_table",
            "Elements checked",
            (
                ("element", "The element of an input whose gradient this is"),
                ("rule", "The gradient by the rule, from the engine"),
                ("difference", "The gradient by central differences in float64"),
                ("off by", "The absolute difference of the two"),
                ("", "Whether the difference is within the dtype's rounding"),
            ),
            mono=True,
        )
        theme.notifier.changed.connect(self._recolour)
        left = Qt.AlignmentFlag.AlignLeft
        parts = ((self.button, 0, left), self._verdict, self._notes, (self.trace, 0, left))
        make.column(*parts, (self.table, 1), make.Stretch(0), on=self, margins=_MARGINS)
        self.clear()

    def clear(self, *, ready: bool = False) -> None:
        self.button.setEnabled(ready)
        self.trace.hide()
        self._verdict.hide()
        self.table.setRowCount(0)
        self.table.hide()
        self._notes.setText(
            CHECK_TEXT if ready else "Step backward over a node: then its rule can be checked."
        )
        self._notes.show()

    def show_problem(self, text: str) -> None:
        self.clear(ready=True)
        self._notes.setText(text)

    def show_check(self, snapshot: RuleCheckSnapshot) -> None:
        self.clear(ready=True)
        if snapshot.refused:
            self._notes.setText(f"{snapshot.refused} {snapshot.hint}".strip())
            self._code = snapshot.code
            self.trace.setVisible(bool(snapshot.code))
            return
        self._verdict.setText(verdict_text(snapshot))
        role = ("success" if snapshot.passed else "error") if snapshot.elements else "muted"
        make.set_role(self._verdict, role)
        self._verdict.show()
        make.tell(self._notes, " ".join(snapshot.notes))
        for each in snapshot.elements:
            self.table.add_row(_row(each), ("", "", "", f"allowed: {each.tolerance:.2g}"))
        self._recolour()
        self.table.show()

    def _ask(self) -> None:
        self.button.setEnabled(False)
        make.tell(self._notes, "Checking …")
        self.check_requested.emit()

    def _recolour(self) -> None:
        for row in range(self.table.rowCount()):
            item = self.table.cell(row, 4)
            role = _VERDICTS.get(item.text())
            if role is not None:
                item.setForeground(QColor(getattr(theme.current(), role)))


class RuleOps(QWidget):
    """Emits `ops_requested()`; shows the operators under the lines of Python that ran them.
    `trace_requested()` asks to step through them, one by one."""

    ops_requested = Signal()
    trace_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("rule_ops_page")
        self.button = make.button(
            "rule_ops", "List operators", "mdi6.format-list-numbered", self._ask, tip=OPS_TEXT
        )
        self.button.setAccessibleName("List the operators inside the rule")
        self.trace = make.button(
            "rule_trace", "Step into", "mdi6.debug-step-into", self.trace_requested, tip=TRACE_TEXT
        )
        self.trace.setAccessibleName("Step into the rule, line by line and op by op")
        self._note = make.paragraph("rule_ops_note", "muted")
        self.table = ReadTable(
            "rule_ops_table",
            "Operators inside the rule",
            (
                ("", "The number of the operator; %3 is the result of number 3"),
                ("ran", "The operator, or the line of Python"),
                ("gave", "The shape of its result, with the numbers if they are few"),
                (
                    "on",
                    "Its arguments: g is the incoming gradient, saved tensors come from forward",
                ),
            ),
            mono=True,
        )
        buttons = make.row(self.button, self.trace, make.STRETCH)
        parts = (buttons, self._note, (self.table, 1), make.Stretch(0))
        make.column(*parts, on=self, margins=_MARGINS)
        self.clear()

    def clear(self, *, ready: bool = False) -> None:
        self.button.setEnabled(ready)
        self.trace.setEnabled(ready)
        self.table.setRowCount(0)
        self.table.hide()
        self._note.setText(
            OPS_TEXT if ready else "Step backward over a node: then its rule can be run again."
        )
        self._note.show()

    def show_problem(self, text: str) -> None:
        self.clear(ready=True)
        self._note.setText(text)

    def show_ops(self, snapshot: RuleOpsSnapshot) -> None:
        self.clear(ready=True)
        shown = set()
        ops = {op.number: op for op in snapshot.ops}
        for line in snapshot.lines:
            self.table.add_row(
                (str(line.line), line.text, "", ""), ("", f"{line.file}:{line.line}")
            )
            for number in line.ops:
                if number in ops:
                    self._add(ops[number], "    ")
                    shown.add(number)
        for op in snapshot.ops:
            if op.number not in shown:
                self._add(op)
        note = snapshot.note
        if snapshot.more:
            note = f"{note} {snapshot.more:,} more operators are not shown.".strip()
        make.tell(self._note, note)
        self.table.setVisible(bool(snapshot.ops or snapshot.lines))

    def _add(self, op: RuleOp, indent: str = "") -> None:
        self.table.add_row(
            (
                f"%{op.number}",
                indent + op.name.removeprefix("aten::"),
                ", ".join(map(_result, op.results)),
                ", ".join(map(_value, op.arguments)),
            )
        )

    def _ask(self) -> None:
        self.button.setEnabled(False)
        self.ops_requested.emit()


def verdict_text(snapshot: RuleCheckSnapshot) -> str:
    """`Right: 12 elements of (3, 4) agree with the finite differences of aten::mul.`"""
    checked, total = len(snapshot.elements), sum(snapshot.counts.values())
    if not checked:
        return "No element could be checked by finite differences."
    wrong = sum(each.verdict == "wrong" for each in snapshot.elements)
    kinks = sum(each.verdict == "kink" for each in snapshot.elements)
    of = f"{checked:,} elements"
    drawn = "" if checked == total else f" ({checked:,} of {total:,} checked, chosen at random)"
    words = (
        f"Wrong: {wrong:,} of {of} differ from the finite differences of {snapshot.op}{drawn}."
        if wrong
        else f"Right: {of} agree with the finite differences of {snapshot.op}{drawn}."
    )
    if kinks:
        words += f" {kinks:,} at a kink, where there is no derivative."
    if edges := sum(each.verdict == "edge" for each in snapshot.elements):
        words += (
            f" {edges:,} where the rule gives inf or NaN: finite differences cannot check these."
        )
    return words


def _row(each: CheckedRuleElement) -> tuple[str, ...]:
    index = ", ".join(map(str, each.element))
    return (
        f"{each.label}[{index}]" if each.element else each.label,
        format_number(each.analytic, 5),
        format_number(each.numeric, 5),
        format_number(each.difference, 2),
        each.verdict,
    )


def _value(value: RuleOpValue) -> str:
    return value.name if value.shape is None else f"{value.name} {format_shape(value.shape)}"


def _result(value: RuleOpValue) -> str:
    text = format_shape(value.shape or ())
    return f"{text}: {value.text}" if value.text else text
