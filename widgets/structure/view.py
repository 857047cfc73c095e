"""The structure of a subject of code: tree, table, picture of one forward, and a bar that acts."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from engine.protocol import DifferenceSnapshot, InitPreviewSnapshot, ModuleRow, StructureSnapshot
from widgets import make
from widgets.structure.action_bar import ActionBar
from widgets.structure.calls_picture import CallsPane
from widgets.structure.compare_button import CompareButton
from widgets.structure.difference_view import DifferenceView
from widgets.structure.module_tree import ModuleTree
from widgets.structure.weight_table import WeightTable
from widgets.structure.words import batch_words, totals_words, unfed_words, unregistered_words
from widgets.theme import GRID


class StructureView(QWidget):
    """Shows a structure, or what keeps it from being shown.

    `module_chosen(path)` and `weight_chosen(name)`: the reader has selected one. `came_in_sight()`:
    the view is shown again. `remedy_requested()`: the button beside a trouble. `data_requested()`:
    the reader wants to name data under Train. The signals of `bar` ask to run lines and to try
    initial values, those of `compare` to compare. `calls` is the picture of one forward; the owner
    fills it.
    """

    module_chosen = Signal(str)
    weight_chosen = Signal(str)
    came_in_sight = Signal()
    remedy_requested = Signal()
    data_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("structure_view")
        self.tree, self.weights, self.bar = ModuleTree(), WeightTable(), ActionBar()
        self.calls, self.difference, self.compare = CallsPane(), DifferenceView(), CompareButton()
        self._beside = QStackedWidget()
        self._beside.addWidget(self.calls)
        self._beside.addWidget(self.difference)
        self.difference.closed.connect(self.show_picture)
        self.difference.module_chosen.connect(self._choose_differing)
        self._title = make.text("structure_title", "heading", width="own")
        self._totals = make.text("structure_totals", "muted")
        self._batch = make.text("structure_batch", "muted", wrap=True)
        self._unfed = make.text("structure_unfed", "error", wrap=True)
        self._unregistered = make.text("structure_unregistered", "error", wrap=True)
        self.data_button = make.tool_button(
            "structure_data",
            "mdi6.chart-line",
            "Go to Train, where data is named: a Dataset, a DataLoader, tensors or a function.",
            self.data_requested,
            text="Name data",
        )
        self.trouble = make.empty("", "structure_trouble")
        self.remedy = make.button(
            "structure_remedy", "", "mdi6.play", self.remedy_requested, primary=True, tip="Run it."
        )
        self._pages = QStackedWidget()
        self._pages.addWidget(self._trouble_page())
        self._pages.addWidget(self._structure_page())
        make.column(self._pages, on=self)
        self.tree.module_chosen.connect(self._choose_module)
        self.tree.module_chosen.connect(lambda module: self.module_chosen.emit(module.path))
        self.weights.rows_chosen.connect(self._choose_rows)
        self._is_told = False  # true while the code, not the reader, selects
        self.show_trouble("")

    # -- what is shown ---------------------------------------------------------------------------

    def show_structure(self, whole: StructureSnapshot, expression: str) -> None:
        """Show a whole structure. `expression` is what Python calls the subject. What is selected
        stays selected, by name."""
        self._title.setText(whole.title)
        self._totals.setText(totals_words(whole))
        make.set_role(self._batch, "error" if whole.unrun else "muted")
        self._batch.setText(batch_words(whole))
        self._batch.setToolTip("" if whole.unrun is None else whole.unrun.traceback.rstrip())
        self.data_button.setVisible(not whole.batch and not whole.unrun)
        make.tell(self._unfed, unfed_words(whole))
        make.tell(self._unregistered, unregistered_words(whole))
        self.tree.show_structure(whole, expression)
        self.weights.show_structure(whole)
        if self.weights.chosen:
            self._choose_rows()
        else:
            self._choose_module(self.tree.chosen)
        self._pages.setCurrentIndex(1)

    def show_trouble(self, text: str, remedy: str = "", tip: str = "") -> None:
        """Say why there is no structure; `remedy` is the button that helps, if one does."""
        self.trouble.setText(text)
        self.remedy.setText(remedy)
        self.remedy.setAccessibleName(remedy)
        self.remedy.setToolTip(tip)
        self.remedy.setVisible(bool(remedy))
        self._pages.setCurrentIndex(0)

    def show_chosen(self, module: str, weight: str = "") -> None:
        """Select what another view has chosen: a module, or a parameter or buffer in it. Emits
        nothing; what is not there changes nothing."""
        self._is_told = True
        self.tree.choose(module)
        self._choose_module(self.tree.chosen)
        if weight:
            self.weights.choose(weight)
        self._is_told = False

    def show_preview(self, preview: InitPreviewSnapshot | None) -> None:
        """Show what initialising would give, or, for None, only what is there."""
        rows = preview.rows if preview else ()
        self.weights.show_preview({row.name: row for row in rows})
        if preview:
            self.bar.show_preview(rows)

    def show_difference(self, told: DifferenceSnapshot) -> None:
        """Show a comparison in the place of the picture."""
        self.difference.show_difference(told)
        self._beside.setCurrentWidget(self.difference)

    def show_picture(self) -> None:
        """Show the picture of one forward again."""
        self._beside.setCurrentWidget(self.calls)

    @property
    def shows_difference(self) -> bool:
        return self._beside.currentWidget() is self.difference

    @property
    def shows_structure(self) -> bool:
        return self._pages.currentIndex() == 1

    # -- what the reader does --------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.came_in_sight.emit()

    def _choose_module(self, module: ModuleRow | None) -> None:
        self.weights.show_module(module.path if module else "")
        self.bar.show_module(module)

    def _choose_differing(self, path: str) -> None:
        self.show_chosen(path)
        self.module_chosen.emit(path)

    def _choose_rows(self) -> None:
        chosen = self.weights.chosen
        if not chosen:
            self.bar.show_module(self.tree.chosen)
            return
        self.bar.show_weights(chosen)
        if len(chosen) == 1 and not self._is_told:
            self.weight_chosen.emit(chosen[0].name)

    # -- layout ----------------------------------------------------------------------------------

    def _structure_page(self) -> QWidget:
        head = make.column(
            make.row(self._title, (self._totals, 1), self.compare),
            make.row((self._batch, 1), self.data_button),
            self._unfed,
            self._unregistered,
            gap=GRID // 2,
            margins=(GRID, GRID, GRID, 0),
        )
        rows = make.splitter(self.tree, self.weights, upright=True, sizes=(300, 300), shares=(1, 1))
        panes = make.splitter(rows, self._beside, sizes=(736, 640), shares=(1, 1))
        return make.page(head, (panes, 1), self.bar, margins=(0, 0, 0, GRID))

    def _trouble_page(self) -> QWidget:
        middle = Qt.AlignmentFlag.AlignCenter
        return make.page(
            make.STRETCH, self.trouble, (self.remedy, 0, middle), make.STRETCH, margins=4 * GRID
        )
