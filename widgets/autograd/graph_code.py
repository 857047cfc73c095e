"""The code that made a graph, beside its picture. Lit are the line of the current node, and the
lines of what another view has chosen."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QMouseEvent, QTextCursor, QTextFormat
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from engine.project.cells import source_title
from engine.protocol import BackwardSnapshot, GraphNode, GraphSnapshot
from widgets import make, theme
from widgets.model.python_highlighter import PythonHighlighter
from widgets.theme import GRID, mono_font

Line = tuple[str, int]
"""A cell's name, and a line in it, from 1."""

MOST_LINES = 9
"""Lines that the pane asks room for when it stands above the graph."""


def line_of(node: GraphNode, sources: Mapping[str, str]) -> Line | None:
    """The line that made a node: where its operation ran, or where a leaf got its name."""
    if node.source is not None:
        return (node.source.file, node.source.line) if node.source.file in sources else None
    if node.kind == "leaf" and node.label.isidentifier():
        for file, text in reversed(list(sources.items())):
            line = _assigned(node.label, text)
            if line:
                return file, line
    return None


def _assigned(name: str, source: str) -> int:
    """The first line of a cell that sets a name, 0 if none does."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a notebook's magic line ran through another parser
        return 0
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
    ]
    return min(lines, default=0)


class _Text(QPlainTextEdit):
    """Code that can be read and copied. `clicked(line)`: a click that selects no text, on a line
    counted from 1."""

    clicked = Signal(int)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self.textCursor().hasSelection():
            self.clicked.emit(self.line_at(event.position().toPoint()))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.clicked.emit(self.line_at(event.pos()))
        menu = self.createStandardContextMenu()
        menu.setParent(self, menu.windowFlags())
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        make.pop_up(menu, event.globalPos())

    def line_at(self, point: QPoint) -> int:
        """The line at a point of the viewport."""
        return self.cursorForPosition(point).blockNumber() + 1


class GraphCode(QWidget):
    """Shows the code of the node that ran last, with its line lit, and the line of the next node
    marked; hidden where no code is known that made the graph. `line_chosen(file, line)`: the reader
    has clicked on a line."""

    line_chosen = Signal(str, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("graph_code_pane")
        self._graph: GraphSnapshot | None = None
        self._file = ""
        self._lit: tuple[int, int] = 0, 0
        self._chosen: tuple[Line, ...] = ()
        self._title = make.label("Code", "heading", "graph_code_title")
        self.text = make.named(
            _Text(readOnly=True),
            "graph_code",
            "Code that made this graph",
            "The code that made this graph. Lit: the line of the node that ran last. Marked at its"
            " left: the line of the next node. Click a line to light the nodes that it made.",
        )
        self.text.setFont(mono_font())
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.clicked.connect(lambda line: self.line_chosen.emit(self._file, line))
        self._highlighter = PythonHighlighter(self.text.document())
        make.column(self._title, (self.text, 1), on=self, gap=GRID // 2, margins=GRID)
        theme.notifier.changed.connect(self._light)
        self.hide()

    @property
    def lit(self) -> tuple[int, int]:
        """The lines of the node that ran last and of the next one, from 1; 0 for none."""
        return self._lit

    def sizeHint(self) -> QSize:
        """As high as its code, up to MOST_LINES."""
        lines = min(self.text.document().blockCount(), MOST_LINES)
        height = lines * self.text.fontMetrics().lineSpacing() + 8 * GRID
        return QSize(super().sizeHint().width(), height)

    def show_graph(self, graph: GraphSnapshot | None) -> None:
        """Show the code of a new graph; nothing is lit."""
        self._graph, self._file, self._lit, self._chosen = graph, "", (0, 0), ()
        sources = {} if graph is None else graph.sources
        self.setVisible(bool(sources))
        if graph is not None and sources:
            first = next((line for node in graph.nodes if (line := line_of(node, sources))), None)
            self._show_file(next(iter(sources)) if first is None else first[0])
        self._light()

    def show_backward(self, snapshot: BackwardSnapshot) -> None:
        """Light the lines of the node that ran last, and of the next one."""
        if self._graph is None or not self._graph.sources:
            return
        last = self._line(None if snapshot.step is None else snapshot.step.node)
        following = self._line(None if snapshot.next is None else snapshot.next.node)
        file = (last or following or (self._file, 0))[0]
        self._show_file(file)
        lines = [each[1] if each and each[0] == file else 0 for each in (last, following)]
        self._lit = lines[0], lines[1]
        self._light()
        self._reveal(lines[0] or lines[1])

    @property
    def chosen(self) -> tuple[int, ...]:
        """The lines of the code shown that another view has chosen."""
        return tuple(line for file, line in self._chosen if file == self._file)

    def show_chosen(self, lines: Sequence[Line]) -> None:
        """Light the lines that another view has chosen, in their own code; the view stays where it
        is while it has the focus."""
        sources = {} if self._graph is None else self._graph.sources
        self._chosen = tuple(line for line in lines if line[0] in sources)
        self._light()
        if not self.text.hasFocus():
            self.reveal_chosen()

    def reveal_chosen(self) -> None:
        """Bring the first of the lines that were chosen into view."""
        if self._chosen and not self.chosen:
            self._lit = 0, 0  # they are of the code shown before
            self._show_file(self._chosen[0][0])
            self._light()
        self._reveal(min(self.chosen, default=0))

    def _line(self, node: int | None) -> Line | None:
        assert self._graph is not None
        if node is None or node >= len(self._graph.nodes):
            return None
        return line_of(self._graph.nodes[node], self._graph.sources)

    def _show_file(self, file: str) -> None:
        if file == self._file or self._graph is None:
            return
        self._file = file
        self._title.setText(f"Code · {source_title(file)}")
        self.text.setPlainText(self._graph.sources[file].rstrip("\n"))
        self.updateGeometry()

    def _light(self) -> None:
        colors = theme.current()
        last, following = self._lit
        marks = [self._mark(line, colors.color("text", theme.CHOSEN_ALPHA)) for line in self.chosen]
        if last:
            marks.append(self._mark(last, colors.color("gradient", 60)))
        if following and following != last:
            marks.append(self._mark(following, colors.color("accent", 36)))
        self.text.setExtraSelections(marks)

    def _mark(self, line: int, color: QColor) -> QTextEdit.ExtraSelection:
        mark = QTextEdit.ExtraSelection()
        mark.format.setBackground(color)  # type: ignore[attr-defined]
        mark.format.setProperty(QTextFormat.Property.FullWidthSelection, True)  # type: ignore[attr-defined]
        mark.cursor = self._cursor(line)  # type: ignore[attr-defined]
        return mark

    def _cursor(self, line: int) -> QTextCursor:
        return QTextCursor(self.text.document().findBlockByNumber(line - 1))

    def _reveal(self, line: int) -> None:
        if line:
            self.text.setTextCursor(self._cursor(line))
            self.text.ensureCursorVisible()
