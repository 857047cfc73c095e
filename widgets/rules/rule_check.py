"""A rule held against finite differences, and the operators that run inside it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.protocol import (
    CheckedRuleElement,
    RuleCheckSnapshot,
    RuleOp,
    RuleOpsSnapshot,
    RuleOpValue,
)
from widgets import theme
from widgets.icons import set_icon
from widgets.rules.rule_formula import wrapped
from widgets.text import format_number, format_shape
from widgets.theme import GRID, mono_font

CHECK_TEXT = (
    "Moves each element of the operation's inputs a little, in float64, and sees how much the"
    " result changes: the derivative without any rule."
)
OPS_TEXT = "Runs the rule once more, on copies, and lists the operators that torch runs for it."
TRACE_TEXT = (
    "Runs the rule once more, on copies, and steps through it with all values: line by line where"
    " it is Python, op by op everywhere (Ctrl+F11)."
)
_VERDICTS = {"right": "success", "wrong": "error", "kink": "warning", "edge": "warning"}


class CopyTable(QTableWidget):
    """A read-only table; Ctrl+C copies its rows, tab-separated."""

    def __init__(self, name: str, columns: tuple[tuple[str, str], ...]) -> None:
        super().__init__(0, len(columns))
        self.setObjectName(name)
        for column, (title, tip) in enumerate(columns):
            item = QTableWidgetItem(title)
            item.setToolTip(tip)
            self.setHorizontalHeaderItem(column, item)
        self.setFont(mono_font(9))
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(3 * GRID)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setWordWrap(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        copy = QShortcut(QKeySequence.StandardKey.Copy, self, self.copy)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)

    def add_row(self, texts: tuple[str, ...], tips: tuple[str, ...] = ()) -> None:
        row = self.rowCount()
        self.insertRow(row)
        for column, text in enumerate(texts):
            item = QTableWidgetItem(text)
            item.setToolTip(tips[column] if column < len(tips) and tips[column] else text)
            self.setItem(row, column, item)

    def cell(self, row: int, column: int) -> QTableWidgetItem:
        """A cell that is there. Raises IndexError for another."""
        item = self.item(row, column)
        if item is None:
            raise IndexError(f"no cell {row}, {column}")
        return item

    def rows(self) -> list[list[str]]:
        return [
            [self.cell(row, column).text() for column in range(self.columnCount())]
            for row in range(self.rowCount())
        ]

    def copy(self) -> None:
        """The selected rows, all without a selection."""
        chosen = sorted({index.row() for index in self.selectedIndexes()})
        rows = self.rows()
        lines = [rows[row] for row in chosen] if chosen else rows
        QApplication.clipboard().setText("\n".join("\t".join(line) for line in lines))


class RuleCheck(QWidget):
    """Emits `check_requested()`; shows the verdict, and the elements with the worst first. Where
    nothing was recorded to check against, `code_requested(source)` asks for a trace of the code."""

    check_requested = Signal()
    code_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("rule_check_page")
        self.button = QPushButton("Check by finite differences")
        self.button.setObjectName("rule_check")
        self.button.setAccessibleName("Check the rule by finite differences")
        self.button.setToolTip(CHECK_TEXT)
        set_icon(self.button, "mdi6.check-decagram-outline")
        self.button.clicked.connect(self._ask)
        self._code = ""
        self.trace = QPushButton("Trace its code")
        self.trace.setObjectName("rule_check_trace")
        self.trace.setAccessibleName("Trace the code that made the graph")
        self.trace.setToolTip(
            "Runs the cells that made this graph once more, in the tab Forward, op by op, which"
            " records what each operation was given. Show on graph leads back to the graph."
        )
        set_icon(self.trace, "mdi6.debug-step-over")
        self.trace.clicked.connect(lambda: self.code_requested.emit(self._code))
        self._verdict = wrapped("rule_verdict")
        self._notes = wrapped("rule_check_notes", "muted")
        self.table = CopyTable(
            "rule_check_table",
            (
                ("element", "The element of an input whose gradient this is"),
                ("rule", "The gradient by the rule, from the engine"),
                ("difference", "The same by central differences in float64"),
                ("off by", "How far the two are apart"),
                ("", "Whether that is within the rounding of the dtype"),
            ),
        )
        self.table.setAccessibleName("Elements checked")
        theme.notifier.changed.connect(self._recolour)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(GRID // 2, GRID, GRID // 2, 0)
        layout.setSpacing(GRID)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self._verdict)
        layout.addWidget(self._notes)
        layout.addWidget(self.trace, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self.table, 1)
        layout.addStretch(0)
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
        self._verdict.setProperty("role", role)
        self._verdict.style().unpolish(self._verdict)
        self._verdict.style().polish(self._verdict)
        self._verdict.show()
        self._notes.setText(" ".join(snapshot.notes))
        self._notes.setVisible(bool(snapshot.notes))
        for each in snapshot.elements:
            self.table.add_row(_row(each), ("", "", "", f"allowed: {each.tolerance:.2g}"))
        self._recolour()
        self.table.show()

    def _ask(self) -> None:
        self.button.setEnabled(False)
        self._notes.setText("Checking …")
        self._notes.show()
        self.check_requested.emit()

    def _recolour(self) -> None:
        for row in range(self.table.rowCount()):
            item = self.table.cell(row, 4)
            role = _VERDICTS.get(item.text())
            if role is not None:
                item.setForeground(QColor(getattr(theme.current(), role)))


class RuleOps(QWidget):
    """Emits `ops_requested()`; shows the operators, under the lines of Python that ran them.
    `trace_requested()`: step through them, one by one."""

    ops_requested = Signal()
    trace_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("rule_ops_page")
        self.button = QPushButton("List operators")
        self.button.setObjectName("rule_ops")
        self.button.setAccessibleName("List the operators inside the rule")
        self.button.setToolTip(OPS_TEXT)
        set_icon(self.button, "mdi6.format-list-numbered")
        self.button.clicked.connect(self._ask)
        self.trace = QPushButton("Step into")
        self.trace.setObjectName("rule_trace")
        self.trace.setAccessibleName("Step into the rule, line by line and op by op")
        self.trace.setToolTip(TRACE_TEXT)
        set_icon(self.trace, "mdi6.debug-step-into")
        self.trace.clicked.connect(self.trace_requested)
        self._note = wrapped("rule_ops_note", "muted")
        self.table = CopyTable(
            "rule_ops_table",
            (
                ("", "The number of the operator; %3 is the result of number 3"),
                ("ran", "The operator, or the line of Python"),
                ("gave", "The shape of its result, with the numbers if they are few"),
                ("on", "Its arguments: g comes in, saved tensors were kept in forward"),
            ),
        )
        self.table.setAccessibleName("Operators inside the rule")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(GRID // 2, GRID, GRID // 2, 0)
        layout.setSpacing(GRID)
        buttons = QHBoxLayout()
        buttons.setSpacing(GRID)
        buttons.addWidget(self.button)
        buttons.addWidget(self.trace)
        buttons.addStretch(1)
        layout.addLayout(buttons)
        layout.addWidget(self._note)
        layout.addWidget(self.table, 1)
        layout.addStretch(0)
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
        self._note.setText(note)
        self._note.setVisible(bool(note))
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
    """`Right: 12 elements of 3 × 4 agree with the differences of aten::mul.`"""
    checked, total = len(snapshot.elements), sum(snapshot.counts.values())
    if not checked:
        return "Nothing here can be held against differences."
    wrong = sum(each.verdict == "wrong" for each in snapshot.elements)
    kinks = sum(each.verdict == "kink" for each in snapshot.elements)
    of = (
        f"{checked:,} elements" if checked == total else f"{checked:,} of {total:,} elements, drawn"
    )
    if checked != total:
        of += " at random,"
    words = (
        f"Wrong: {wrong:,} of {of} differ from those of {snapshot.op}."
        if wrong
        else f"Right: {of} agree with the differences of {snapshot.op}."
    )
    if kinks:
        words += f" {kinks:,} at a kink, where there is no derivative."
    if edges := sum(each.verdict == "edge" for each in snapshot.elements):
        words += f" {edges:,} where the rule gives inf or NaN: no difference can tell."
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
    return value.name if value.shape is None else f"{value.name} ({format_shape(value.shape)})"


def _result(value: RuleOpValue) -> str:
    text = f"{format_shape(value.shape or ())}"
    return f"{text}: {value.text}" if value.text else text
