"""The usual mistakes with autograd: each with its code, its graph, and the correction."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QListWidget,
    QWidget,
)

from engine.project.examples import Mistake, mistakes
from engine.protocol import ErrorReport, WhyNoGradientSnapshot
from widgets import make
from widgets.autograd.code_pane import CodePane
from widgets.shapes.operand_fields import ExpressionField
from widgets.theme import GRID
from widgets.vertical_scroll import VerticalScroll

_OWN_VARIABLES = "It has variables of its own; those of the console stay as they are."


class MistakesView(QWidget):
    """Signals: `run_requested(source)` for Python to run, `graph_requested(root,
    node, words)` to see a node (its id, or its name) of the graph under an expression, with what
    is the matter there, `where_requested(root, node, words)` to see where a gradient ends, and
    `why_requested(name, root)` to hear why a tensor has no gradient."""

    run_requested = Signal(str)
    graph_requested = Signal(str, object, str)
    where_requested = Signal(str, int, str)
    why_requested = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("mistakes_view")
        self._mistakes = tuple(mistakes().values())
        self._mistake = self._mistakes[0]
        self.list = make.named(
            QListWidget(),
            "mistakes",
            "Usual mistakes",
            "Choose a mistake: what it does, why, and what to write instead.",
        )
        for mistake in self._mistakes:
            self.list.addItem(mistake.title)
        self.list.setSpacing(GRID // 2)
        self.list.currentRowChanged.connect(lambda row: self.show_mistake(self._mistakes[row]))
        self.code = CodePane("mistake_code", "The mistake", f"Run this. {_OWN_VARIABLES}")
        self.code.run_requested.connect(self._make)
        self.instead = CodePane(
            "mistake_instead", "What to write instead", f"Run this instead. {_OWN_VARIABLES}"
        )
        self.instead.run_requested.connect(self.run_requested)
        self._ran = make.text("mistake_instead_ran", "muted", wrap=True)
        self._printed = make.text("mistake_printed", "muted", wrap=True, mono=9)
        self._printed.setToolTip("What the code printed.")
        self._happens = make.text("mistake_happens", wrap=True)
        self._error = make.text("mistake_error", "error", wrap=True, mono=9)
        self._error.setToolTip("PyTorch's own message, whole.")
        self._why = make.text("mistake_why", wrap=True)
        self._look = make.text("mistake_look", "muted", wrap=True)
        self._graph = make.button(
            "mistake_graph", "Show on the graph", "mdi6.sitemap-outline", self._show_graph
        )
        self.name = ExpressionField(
            "why_name", "Tensor without a gradient", "A tensor whose .grad is None."
        )
        self.root = ExpressionField(
            "why_root", "What backward was called on", "The loss: what backward was called on."
        )
        self.ask = make.button(
            "why_ask", "Why is its .grad None?", "mdi6.help-circle-outline", self._ask
        )
        self.ask.setAccessibleName("Why is its gradient None?")
        self.ask.setToolTip("Look in the recorded graph for the way from the loss to this tensor.")
        self.name.returnPressed.connect(self._ask)
        self.root.returnPressed.connect(self._ask)
        self._answer = make.text("why_answer", wrap=True)
        self._hint = make.text("why_hint", "muted", wrap=True)
        self._told: WhyNoGradientSnapshot | None = None
        self._told_root = ""
        self.where = make.button("why_where", "Show where", "mdi6.sitemap-outline")
        self.where.clicked.connect(self._show_where)
        self.where.setAccessibleName("Show where on the graph")
        self.where.setToolTip("Go to this place of the graph, in the tab Step through.")
        self._lay_out()
        self.list.setCurrentRow(0)
        self.setFocusProxy(self.list)

    def _lay_out(self) -> None:
        question = make.row(
            make.label("tensor", "muted", of=self.name),
            (self.name, 1),
            make.label("after backward of", "muted", of=self.root),
            (self.root, 1),
            self.ask,
        )
        page = make.page(
            self.code,
            self._happens,
            self._printed,
            self._error,
            self._why,
            make.row(self._graph, (self._look, 1)),
            GRID,
            self.instead,
            self._ran,
            GRID,
            make.label("A gradient that is missing", "heading"),
            question,
            make.row((self._answer, 1), self.where),
            self._hint,
            make.STRETCH,
            margins=(2 * GRID, GRID, 2 * GRID, 2 * GRID),
        )
        parts = (self.list, VerticalScroll(page))
        make.column(make.splitter(*parts, shares=(0, 1), sizes=(368, 1000)), on=self)

    # -- showing ---------------------------------------------------------------------------------

    @property
    def mistake(self) -> Mistake:
        return self._mistake

    def choose(self, key: str) -> None:
        """Choose a mistake in the list."""
        keys = [mistake.key for mistake in self._mistakes]
        self.list.setCurrentRow(keys.index(key))

    def show_mistake(self, mistake: Mistake) -> None:
        """Show a mistake; nothing runs."""
        self._mistake = mistake
        self.code.show_code(mistake.wrong)
        self._happens.setText(mistake.happens)
        self._why.setText(mistake.why)
        self._look.setText(mistake.look)
        self.instead.show_code(mistake.right)
        self._graph.setEnabled(False)
        self._graph.setToolTip("Run the mistake first: then its graph can be read.")
        self.name.show_text(mistake.missing)
        self.root.show_text(mistake.root)
        make.tell(self._ran, "")
        make.tell(self._printed, "")
        self.show_error(None)
        self._show_answer("", "")

    def show_ran(self, source: str, error: ErrorReport | None, printed: str = "") -> None:
        """Show that code of this page has run, the `error` that it raised, and what it printed."""
        if source == self.instead.code():
            ending = "It ran without an error." if error is None else _words(error)
            make.tell(self._ran, f"{ending}\n{printed}".rstrip())
        elif source == self.code.code():
            make.tell(self._printed, printed.rstrip())
            self._show_made(error)

    def _show_made(self, error: ErrorReport | None) -> None:
        self._graph.setEnabled(True)
        self._graph.setToolTip(
            f"Draw the graph of {self._mistake.root} in the tab Step through, and choose the node"
            " where it shows."
        )
        self.show_error(error)

    def show_error(self, error: ErrorReport | None) -> None:
        """Show torch's message under the code; None for none."""
        make.tell(self._error, "" if error is None else _words(error))

    def show_why(self, snapshot: WhyNoGradientSnapshot, root: str = "") -> None:
        """Show why a tensor has no gradient; `root` is the expression that was asked about."""
        self._show_answer(snapshot.text, snapshot.hint)
        self._told, self._told_root = snapshot, root
        self.where.setVisible(bool(root) and snapshot.node is not None)

    def show_problem(self, error: ErrorReport) -> None:
        """Show that the question could not be answered."""
        self._show_answer(error.message, error.hint)

    def _show_answer(self, text: str, hint: str) -> None:
        self._answer.setText(text)
        self._hint.setText(hint)
        self.where.hide()

    # -- requests --------------------------------------------------------------------------------

    def _make(self, source: str) -> None:
        self.show_error(None)
        self.run_requested.emit(source)

    def _show_graph(self) -> None:
        mistake = self._mistake
        words = f"The mistake: {mistake.title}. {mistake.look}"
        self.graph_requested.emit(mistake.root, mistake.node, words)

    def _show_where(self) -> None:
        assert self._told is not None
        self.where_requested.emit(self._told_root, self._told.node, self._told.text)

    def _ask(self) -> None:
        name = self.name.text().strip()
        if not name:
            self._show_answer(
                "Name the tensor whose gradient is missing.",
                "A variable: w, net.weight, x.",
            )
            return
        self.why_requested.emit(name, self.root.text().strip())


def _words(error: ErrorReport) -> str:
    return f"{error.type}: {error.message}"
