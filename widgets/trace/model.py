"""The calls of a trace as rows of a tree."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QFont

from engine.protocol import TraceCall, TraceSnapshot
from widgets import theme
from widgets.columns import Column
from widgets.layout import without_collection
from widgets.tree_model import Index, TreeModel

MARK_WORDS = {
    "": "",
    "made_nan": "makes NaN",
    "made_inf": "makes inf",
    "passed_on": "passes it on",
    "error": "raises",
}
MARK_ROLES = {
    "made_nan": "error",
    "made_inf": "error",
    "passed_on": "warning",
    "error": "error",
}
"""The colours of marks, as roles of the theme."""
_KINDS = {
    "line": "A line of the code",
    "module": "A module",
    "function": "A function of torch",
    "op": "An operator of torch",
}


def _marks(model: TraceModel, call: TraceCall) -> str:
    return ", ".join(filter(None, ("in place" if call.writes else "", MARK_WORDS[call.mark])))


def name_of(trace: TraceSnapshot, call: TraceCall) -> str:
    """The text of a line, `net.0 · Linear` for a module, the name alone for others."""
    if call.kind == "line":
        return trace.lines[call.line].text
    if call.kind == "module" and call.module and call.module != call.name:
        return f"{call.module} · {call.name}"
    return call.name


COLUMNS = (
    Column(
        "Call",
        "What ran, in order: the lines of the code, the modules and functions of torch that they"
        " call, and the operators (aten) that compute.",
        lambda model, call: name_of(model.trace, call),
    ),
    Column(
        "Line",
        "The line of the code it ran under.",
        lambda model, call: str(model.trace.lines[call.line].line) if call.line >= 0 else "",
        right=True,
    ),
    Column(
        "Result",
        "Shape and dtype of the result. For a line: the names that it bound or changed.",
        lambda model, call: call.result,
    ),
    Column(
        "Nodes",
        "How many nodes it added to the autograd graph: none under no_grad, or where nothing"
        " requires grad.",
        lambda model, call: str(call.nodes) if call.nodes else "",
        right=True,
    ),
    Column(
        "Marks",
        "in place: it wrote into a tensor. makes NaN: only finite numbers went in, and NaN came"
        " out. passes it on: NaN or infinity went in and came out. raises: it ended with an"
        " error.",
        _marks,
    ),
)
CALL, LINE, RESULT, NODES, MARKS = range(len(COLUMNS))
EMPTY = TraceSnapshot(calls=())


class TraceModel(TreeModel):
    """`position` is the current call: calls before it
    have run, calls after it are dimmed."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, parent)
        self.trace = EMPTY
        self.position = -1
        self.chosen: frozenset[int] = frozenset()
        """Calls that another view has chosen."""

    def show_trace(self, trace: TraceSnapshot) -> None:
        self.beginResetModel()
        self.trace, self.position, self.chosen = trace, -1, frozenset()
        with without_collection():
            self.grow(call.parent for call in trace.calls)
        self.endResetModel()

    # -- Qt's interface --------------------------------------------------------------------------

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        number = index.internalId()
        call, column = self.trace.calls[number], COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(self, call)
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._color(number, call, index.column())
        if role == Qt.ItemDataRole.BackgroundRole and number in self.chosen:
            return theme.current().color("text", theme.CHOSEN_ALPHA)
        if role == Qt.ItemDataRole.FontRole and index.column() == CALL:
            return _font(call)
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tooltip(call)
        if role == Qt.ItemDataRole.TextAlignmentRole and column.right:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    def _color(self, number: int, call: TraceCall, column: int) -> object:
        colors = theme.current()
        alpha = 255 if number <= self.position else 190
        if column == MARKS:
            return colors.color(MARK_ROLES.get(call.mark, "gradient"), alpha)
        if number > self.position or column in (LINE, RESULT):
            return colors.color("muted", alpha)
        return colors.color("intermediate" if call.kind == "op" else "text")

    def _tooltip(self, call: TraceCall) -> str:
        parts = [f"{name_of(self.trace, call)}. {_KINDS[call.kind]}"]
        if call.kind != "module" and call.module:
            parts[0] += f", inside {call.module}"
        if call.result:
            parts.append(f"{'sets' if call.kind == 'line' else 'gives'} {call.result}")
        if call.line >= 0:
            line = self.trace.lines[call.line]
            text = "" if call.kind == "line" else f": {line.text}"
            parts.append(f"{line.file}, line {line.line}{text}")
        marks = _marks(self, call)
        return "\n".join([*parts, marks] if marks else parts)


def _font(call: TraceCall) -> QFont | None:
    if call.kind in ("line", "op"):
        return theme.mono_font(9)
    if call.kind == "module":
        font = QFont()
        font.setBold(True)
        return font
    return None
