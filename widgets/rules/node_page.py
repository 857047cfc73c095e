"""The details of one node: its saved tensors, its edges, and the calls that made it."""

from __future__ import annotations

from PySide6.QtWidgets import QScrollArea, QWidget

from engine.protocol import NodeDetailSnapshot, NodeEnd, SavedValue
from widgets import make
from widgets.table import ROW_HEIGHT, ReadTable
from widgets.text import format_bytes, format_shape
from widgets.theme import GRID
from widgets.values.value_card import ValueCard

NODE_TEXT = "The tensors that the node saved in forward, its edges, and the calls that made it"
EMPTY_TEXT = "Choose a node in the graph, or step: its saved tensors, edges and calls appear here."
CARD_HEIGHT = 264
MAX_ROWS = 24
"""The most rows of a table without a scroll bar of its own."""


class NodePage(QScrollArea):
    """Shows a NodeDetailSnapshot. The saved tensor that is selected is drawn below the table."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "node_page", "Details of the node")
        self.node: int | None = None
        self._saved: tuple[SavedValue, ...] = ()
        self._made_by = make.paragraph("node_made_by")
        self._note = make.paragraph("node_note", "muted")
        self.saved = ReadTable(
            "node_saved",
            "Tensors saved for backward",
            (
                ("saved", "The name that the rule gives this tensor"),
                ("shape", "Its shape and dtype"),
                ("storage", "The bytes of the storage that it keeps alive"),
                ("also held by", "Variables, parameters and nodes that hold the same storage"),
            ),
            mono=True,
        )
        self.saved.currentCellChanged.connect(self._show_value)
        self.card = ValueCard()
        self.card.setFixedHeight(CARD_HEIGHT)
        self.facts = ReadTable(
            "node_facts",
            "Edges, settings and hooks of the node",
            (("", "Edge, setting or hook"), ("", "Its value: hover for the whole text")),
            mono=True,
        )
        self.facts.horizontalHeader().hide()
        body = QWidget()
        parts = (self._made_by, self._note, self.saved, self.card, self.facts, make.STRETCH)
        make.column(*parts, on=body, margins=(GRID // 2, GRID, GRID // 2, 0))
        make.scroll(body, self, sideways=True)
        self.clear()

    def clear(self, text: str = EMPTY_TEXT) -> None:
        self.node, self._saved = None, ()
        for widget in (self._made_by, self.saved, self.card, self.facts):
            widget.hide()
        make.tell(self._note, text)

    def show_problem(self, text: str) -> None:
        self.clear(text)

    def show_detail(self, snapshot: NodeDetailSnapshot) -> None:
        self.clear(snapshot.note)
        self.node, self._saved = snapshot.node, snapshot.saved
        make.tell(self._made_by, f"{_title(snapshot)}\n{made_by(snapshot)}".strip())
        self._fill(self.saved, [_saved_row(each) for each in snapshot.saved])
        for row, each in enumerate(snapshot.saved):
            if each.note:
                for column in range(self.saved.columnCount()):
                    self.saved.cell(row, column).setToolTip(each.note)
        self._fill(self.facts, list(_facts(snapshot)))
        if snapshot.saved:
            self.saved.setCurrentCell(0, 0)
            self._show_value(0)

    def _fill(self, table: ReadTable, rows: list[tuple[str, ...]]) -> None:
        table.show_rows(rows)
        head = 0 if table.horizontalHeader().isHidden() else ROW_HEIGHT
        bar = table.horizontalScrollBar().sizeHint().height()
        table.setFixedHeight(min(len(rows), MAX_ROWS) * ROW_HEIGHT + head + bar)
        table.setVisible(bool(rows))

    def _show_value(self, row: int, *_: int) -> None:
        if not 0 <= row < len(self._saved):
            self.card.hide()
            return
        saved = self._saved[row]
        self.card.show_value(saved.value, saved.note or "This tensor cannot be read")
        pictured = saved.value is not None and saved.value.picture is not None
        self.card.setFixedHeight(CARD_HEIGHT if pictured else max(6 * GRID, ROW_HEIGHT))
        self.card.show()


def made_by(snapshot: NodeDetailSnapshot) -> str:
    """The calls in which the node was made, outermost first, and the line of the user's code."""
    if not snapshot.callers:
        return ""
    chain = " → ".join(caller.name for caller in snapshot.callers)
    source = snapshot.callers[-1].source
    where = "" if source is None else f"\n{source.file}, line {source.line}: {source.text}"
    return f"{chain}{where}"


def _title(snapshot: NodeDetailSnapshot) -> str:
    number = f" · sequence number {snapshot.sequence:,}" if snapshot.sequence >= 0 else ""
    return f"#{snapshot.node} {snapshot.name}{number}"


def _saved_row(saved: SavedValue) -> tuple[str, ...]:
    if saved.value is None:
        return saved.name, saved.note, "–", ", ".join(saved.shared_with)
    summary = saved.value.summary
    stale = "" if saved.version is None else f" · stale: version {saved.version}"
    stale += "" if saved.saved_version is None else f", saved at {saved.saved_version}"
    return (
        saved.name,
        f"{format_shape(summary.shape)} {summary.dtype}{stale}",
        format_bytes(saved.storage_bytes),
        ", ".join(saved.shared_with) or "only this node",
    )


def _facts(snapshot: NodeDetailSnapshot) -> list[tuple[str, str]]:
    facts = [(f"in, output {i}", _end(end, "from")) for i, end in enumerate(snapshot.outputs)]
    facts += [(f"out, input {i}", _end(end, "to")) for i, end in enumerate(snapshot.inputs)]
    if snapshot.also_called:
        facts.append(("also called", ", ".join(snapshot.also_called)))
    facts += list(snapshot.settings)
    if snapshot.hooks:
        facts.append(("hooks", snapshot.hooks))
    facts += [(f"metadata {key}", value) for key, value in snapshot.metadata]
    return facts


def _end(end: NodeEnd, word: str) -> str:
    spec = ""
    if end.spec is not None:
        spec = f"{format_shape(end.spec.shape)} {end.spec.dtype} {end.device}".strip()
    nodes = ", ".join(f"#{node}" for node in end.nodes)
    nodes += "" if end.output is None else f" output {end.output}"
    return " · ".join(filter(None, (spec, f"{word} {nodes}" if nodes else "", end.text)))
