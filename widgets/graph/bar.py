"""The line over the picture of a graph: search, filter, direction, paths, open and save."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QToolButton, QWidget

from widgets import make
from widgets.boxes.graph_words import WORDS, words_of
from widgets.graph.finder import FILTERS, SAVED_STEPS_BYTES
from widgets.graph.view import GraphView
from widgets.icons import set_icon
from widgets.layout.outline import Direction
from widgets.text import format_bytes
from widgets.theme import GRID

_WORDS = WORDS["autograd"]
_SEARCH_WIDTH = 22 * GRID
FILTER_TIP = "Filter: which nodes stand out, the rest is dimmed"


class GraphBar(QWidget):
    """Drives a `GraphView`; Ctrl+F inside `scope` leads to the search field.

    `export_requested(format)`: `dot`, `json` or `graphml`. `stop_requested()`: stop saving it.
    """

    export_requested = Signal(str)
    stop_requested = Signal()

    def __init__(self, view: GraphView, scope: QWidget) -> None:
        super().__init__()
        self.setObjectName("graph_bar")
        self._view = view
        self._filter, self._drawn = "all", False
        self._row = make.row(on=self, gap=2, margins=(GRID, GRID // 2, GRID, GRID // 2))
        self._make_search(scope)
        self._make_filter()
        self._row.addStretch(1)
        self._make_switches()
        self._make_openers()
        self._make_save()
        self._follow.setVisible(view.steps)
        view.hits_changed.connect(self._show_hits)
        view.changed.connect(self._follow_view)
        self._follow_view()

    # -- its parts -------------------------------------------------------------------------------

    def _button(self, name: str, icon: str, tip: str, slot: make.Slot | None = None) -> QToolButton:
        button = make.tool_button(f"graph_{name}", icon, tip, slot)
        button.setIconSize(QSize(18, 18))
        self._row.addWidget(button)
        return button

    def _switch(
        self, name: str, icon: str, tip: str, toggled: Callable[[bool], None]
    ) -> QToolButton:
        button = self._button(name, icon, tip)
        button.setCheckable(True)
        button.toggled.connect(toggled)
        return button

    def _make_search(self, scope: QWidget) -> None:
        self.field = make.field("graph_search", "Search the graph", placeholder="Search nodes")
        self.field.setClearButtonEnabled(True)
        clear = self.field.findChild(QToolButton)  # Qt makes it, without a name
        if clear is not None:
            make.named(clear, "graph_search_clear", "Clear the search", "Clear the search (Esc)")
        self.field.setMaximumWidth(_SEARCH_WIDTH)
        self.field.setToolTip(
            "Finds nodes by name, operation, shape, module or line of code: all words must be there"
            " (weight 768). Enter goes to the next, Shift+Enter to the one before; what hides it is"
            " opened. (Ctrl+F)"
        )
        self.field.textChanged.connect(lambda _: self._search())
        self.field.installEventFilter(self)
        self._row.addWidget(self.field, 2)
        self._count = make.label("", "muted", "graph_hits")
        self._count.setContentsMargins(GRID // 2, 0, GRID // 2, 0)
        self._row.addWidget(self._count)
        self._earlier = self._button("hit_before", "mdi6.chevron-up", "Hit before (Shift+Enter)")
        self._earlier.clicked.connect(lambda: self._view.next_hit(-1))
        self._later = self._button("hit_next", "mdi6.chevron-down", "Next hit (Enter)")
        self._later.clicked.connect(lambda: self._view.next_hit(1))
        make.shortcut(QKeySequence.StandardKey.Find, scope, self._focus_search, inside=True)

    def _make_filter(self) -> None:
        self._filter_button = self._button("filter", "mdi6.filter-variant", FILTER_TIP)
        menu = make.menu(self._filter_button, accessible="Filter")
        group = QActionGroup(menu)
        saved = {
            f"saved:{least}": f"Keep more than {format_bytes(least)}"
            if least
            else "Keep anything from forward"
            for least in SAVED_STEPS_BYTES
        }
        self.filters: dict[str, QAction] = {}
        for key, words in (FILTERS | saved).items():
            action = menu.addAction(words)
            action.setCheckable(True)
            action.setChecked(key == "all")
            action.triggered.connect(lambda _=False, key=key: self._choose_filter(key))
            group.addAction(action)
            self.filters[key] = action

    def _show_words(self) -> None:
        """Speak of what the graph is of."""
        hierarchy = self._view.hierarchy
        words = words_of(hierarchy.graph if hierarchy else None)
        self._forward.setToolTip(words.direction)
        self._paths.setToolTip(words.paths)
        for key, action in self.filters.items():
            action.setVisible(words.filters is None or key in words.filters)
            if key in FILTERS:
                action.setText((words.filters or FILTERS).get(key, FILTERS[key]))

    def _make_switches(self) -> None:
        self._forward = self._switch(
            "direction",
            "mdi6.arrow-up-down",
            _WORDS.direction,
            self._turn,
        )
        self._angles = self._switch(
            "style",
            "mdi6.vector-polyline",
            "Right angles: draw the links with corners, not curves",
            lambda on: self._view.set_style("orthogonal" if on else "smooth"),
        )
        self._paths = self._switch(
            "paths",
            "mdi6.source-branch",
            _WORDS.paths,
            self._view.show_paths,
        )
        self._follow = self._switch(
            "follow",
            "mdi6.target",
            "Follow: at each step, open the box that hides the node that ran",
            self._set_follow,
        )

    def _make_openers(self) -> None:
        self._open_all = self._button(
            "open_all",
            "mdi6.unfold-more-horizontal",
            "Open all: every box opens, the picture is then the graph itself",
            self._view.open_all,
        )
        self._close_all = self._button(
            "close_all",
            "mdi6.unfold-less-horizontal",
            "Close all: only the outermost boxes",
            self._view.close_all,
        )

    def _make_save(self) -> None:
        self._save = self._button(
            "save",
            "mdi6.tray-arrow-down",
            "Save: the picture as PNG or SVG, the graph as DOT, JSON or GraphML",
        )
        menu = make.menu(self._save, accessible="Save")
        self._view.add_picture_actions(menu)
        menu.addSeparator()
        for format_, words in (("dot", "DOT"), ("json", "JSON"), ("graphml", "GraphML")):
            menu.addAction(
                f"Save graph as {words}…",
                lambda format_=format_: self.export_requested.emit(format_),
            )
        self._stop = self._button(
            "stop_saving", "mdi6.close-circle-outline", "Stop: do not save the graph after all"
        )
        self._stop.setText("Saving…")
        self._stop.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._stop.clicked.connect(self.stop_requested)
        self.show_saving(False)

    # -- what it does ----------------------------------------------------------------------------

    def follow(self) -> None:
        """Switch on that each step opens the box that hides its node."""
        self._follow.setChecked(True)

    def turn_forward(self) -> None:
        """Switch on that arrows go the way of the data."""
        self._forward.setChecked(True)

    def show_saving(self, under_way: bool) -> None:
        """Set whether the graph is being saved, which the reader can stop."""
        self._save.setVisible(not under_way)
        self._stop.setVisible(under_way)

    def _focus_search(self) -> None:
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def _search(self) -> None:
        self._view.search(self.field.text(), self._filter)

    def _choose_filter(self, key: str) -> None:
        self._filter = key
        icon = "mdi6.filter-variant" if key == "all" else "mdi6.filter-check"
        set_icon(self._filter_button, icon, "text" if key == "all" else "accent")
        shown = "" if key == "all" else f" (now: {self.filters[key].text()})"
        self._filter_button.setToolTip(FILTER_TIP + shown)
        self._search()

    def _turn(self, forward: bool) -> None:
        direction: Direction = "forward" if forward else "backward"
        self._view.set_direction(direction)

    def _set_follow(self, on: bool) -> None:
        self._view.follow = on

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter, Shift+Enter and Esc in the search field."""
        if watched is not self.field or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        if event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._view.next_hit(-1 if back else 1)
            return True
        if event.key() == Qt.Key.Key_Escape:
            self.field.clear()
            self._view.setFocus(Qt.FocusReason.OtherFocusReason)
            return True
        return super().eventFilter(watched, event)

    # -- what it shows ---------------------------------------------------------------------------

    def _show_hits(self, place: int, count: int) -> None:
        if count < 0:
            self._count.clear()
        elif count == 0:
            self._count.setText("no node" if self._filter == "all" else "no such node")
        else:
            self._count.setText(f"{place:,} of {count:,}" if place else f"{count:,} found")
        for button in (self._earlier, self._later):
            button.setEnabled(count > 0)

    def _follow_view(self) -> None:
        """Enable searching, opening and saving while a graph is drawn."""
        drawn = self._view.facts is not None
        for widget in (self.field, self._filter_button, self._forward, self._angles, self._paths,
                       self._follow, self._open_all, self._close_all, self._save):  # fmt: skip
            widget.setEnabled(drawn)
        if not drawn:
            self._show_hits(0, -1)
        elif not self._drawn:
            self._search()  # the search applies to a new graph, too
        self._drawn = drawn
        if drawn:
            self._show_words()
