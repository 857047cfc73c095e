"""The Start page: new and open, first steps, templates, ways into workspaces, scripts to attach to,
recent files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QPushButton, QScrollArea, QWidget

from widgets import make
from widgets.flow_layout import FlowLayout
from widgets.icons import set_icon
from widgets.start.attach_view import AttachView
from widgets.start.cards import EntryGroup, FirstStepsCard, TemplateCard, WayCard, flat_button
from widgets.theme import GRID

TemplateRow = tuple[str, str, str] | tuple[str, str, str, "QPixmap | str"]
"""(key, title, summary), or these and a picture: a pixmap, or the name of an icon."""

_FIRST_STEPS = (
    ("Open", "A template: a model that reads digits."),
    ("Step", "One batch through its blocks, to the loss."),
    ("Train", "The loss falls, epoch by epoch."),
    ("Look", "The same batch once more: what has changed?"),
)


class StartPage(QScrollArea):
    """Signals say what the user chose. `way_chosen(way, entry)` has the keys of an `EntryGroup` and
    of its entry."""

    new_requested = Signal()
    open_requested = Signal()
    first_steps_requested = Signal()
    template_chosen = Signal(str)
    way_chosen = Signal(str, str)
    recent_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("start_page")

        title = make.label("Tensor Lab", "title")
        subtitle = make.label(
            "See what PyTorch does: look under tensors, build a model, step through it, train it.",
            "muted",
            wrap=True,
        )
        self.new_button = make.button("start_new", "New model", "mdi6.plus", self.new_requested)
        self.new_button.setToolTip("Open a project with an empty canvas.")
        self.open_button = make.button(
            "start_open", "Open…", "mdi6.folder-open-outline", self.open_requested
        )
        self.open_button.setToolTip(
            "Open a project (.tlab), or a Python file with a module of your own."
        )
        self.first_steps = FirstStepsCard(_FIRST_STEPS)
        self.first_steps.begun.connect(self.first_steps_requested)

        self._cards, self._ways = FlowLayout(2 * GRID), FlowLayout(2 * GRID)
        self.attach = AttachView()
        self._recent = make.column(gap=0)
        self._no_recent = make.label(
            "Projects you save or open are listed here.", "muted", "start_no_recent"
        )

        column = make.page(
            make.row((make.column(title, subtitle), 1), self.new_button, self.open_button),
            2 * GRID,
            make.label("First steps: one minute", "heading"),
            self.first_steps,
            2 * GRID,
            make.label("Start from a template", "heading"),
            self._cards,
            2 * GRID,
            make.label("Look inside", "heading"),
            self._ways,
            2 * GRID,
            make.label("Attach to a script that runs", "heading"),
            self.attach,
            2 * GRID,
            make.label("Recent", "heading"),
            self._recent,
            self._no_recent,
            make.STRETCH,
            margins=(5 * GRID, 4 * GRID, 5 * GRID, 4 * GRID),
        )
        column.setMaximumWidth(160 * GRID)
        body = QWidget()
        make.row(make.STRETCH, (column, 100), make.STRETCH, on=body, gap=-1)
        make.scroll(body, self)

    def show_templates(self, templates: Sequence[TemplateRow]) -> None:
        """Show a card for each (key, title, summary[, picture]), in this order."""
        make.clear(self._cards)
        for key, title, summary, *picture in templates:
            icon = picture[0] if picture else "mdi6.graph-outline"
            card = TemplateCard(key, title, summary, icon)
            card.chosen.connect(self.template_chosen)
            self._cards.addWidget(card)

    def show_ways(self, ways: Sequence[EntryGroup]) -> None:
        """Show a card for each way into a workspace."""
        make.clear(self._ways)
        for way in ways:
            card = WayCard(way)
            card.chosen.connect(lambda entry, key=way.key: self.way_chosen.emit(key, entry))
            self._ways.addWidget(card)

    def ask_for_process(self) -> None:
        """Let the user choose a process to attach to."""
        self.attach.ask()
        self.ensureWidgetVisible(self.attach)

    def show_recent(self, paths: Sequence[str]) -> None:
        """Show the files used last, newest first. A file that no longer exists is disabled."""
        make.clear(self._recent)
        for path in paths:
            row = _recent_row(path)
            row.clicked.connect(lambda _=False, path=path: self.recent_chosen.emit(path))
            self._recent.addWidget(row)
        self._no_recent.setVisible(not paths)


def _recent_row(path: str) -> QPushButton:
    file = Path(path)
    exists = file.exists()
    tip = path if exists else f"{path}\nThis file does not exist any more."
    made = flat_button("recent_file", f"{file.stem}    {file.parent}", tip)
    made.setAccessibleName(f"Open {file.name}")
    made.setEnabled(exists)
    set_icon(made, "mdi6.file-outline", "muted")
    return made
