"""The list of runs beside the plots, with what can be done with them."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from engine.protocol import RunDifferenceSnapshot, RunRow, RunsSnapshot
from widgets import make
from widgets.folding_row import FoldingRow
from widgets.runs.run_difference import RunDifference
from widgets.runs.run_table import RunTable
from widgets.runs.run_words import name_of, writer_words
from widgets.runs.sweep_pane import SweepPane
from widgets.theme import GRID

_EMPTY = (
    "No runs yet. Each run of Train is kept here with its settings, its curves and its checkpoints."
)
_EMPTY_FOLDER = (
    "There are no runs in this folder. Choose the folder of a run (it has run.json), the folder of"
    " several (NAME.runs), or one with TensorBoard's event files."
)
_BOTH_WIDTH = 800
"""From this width on the list and the settings that differ stand side by side, in pixels."""


class RunPane(QWidget):
    """`open_requested(folder)`, `resume_requested(folder)`, `delete_requested(folders)`,
    `restore_requested()`, `compare_requested(first, second)`; `folder_requested()`: show the runs
    of another folder, `home_requested()`: those of the project again; `events_requested(folders)`:
    write runs as event files, `stop_requested()`: stop that, or copying;
    `settings_requested(folder)`: take over the settings of a run; `sweep_opened()`: the form of
    `sweeps` is shown; `came_in_sight()`: the list is shown. The notes and ticks are those of
    `table`."""

    open_requested = Signal(str)
    resume_requested = Signal(str)
    delete_requested = Signal(tuple)
    restore_requested = Signal()
    compare_requested = Signal(str, str)
    folder_requested = Signal()
    home_requested = Signal()
    settings_requested = Signal(str)
    sweep_opened = Signal()
    events_requested = Signal(tuple)
    stop_requested = Signal()
    came_in_sight = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "run_pane", "Runs of this project")
        self.runs: tuple[RunRow, ...] = ()
        """All runs of the list, also those that the filter hides."""
        self._make_table()
        self._make_finders()
        self._make_actions()
        self._lay_out()
        self.show_place("")
        self.show_runs(RunsSnapshot(folder=""))

    def _make_table(self) -> None:
        """The list, what stands for it when it is empty, and what is told beside it."""
        self.table = RunTable()
        self.table.itemSelectionChanged.connect(self._show_buttons)
        self.table.opened.connect(self.open_requested)
        self.table.delete_asked.connect(self._delete)
        self.empty = make.empty(_EMPTY, "runs_empty")
        self.told = make.text("runs_told", wrap=True, width="own")
        self.place = make.text("runs_place", "muted", wrap=True, width="own")
        self.difference = RunDifference()
        self.difference.closed.connect(self._close_difference)
        self.sweeps = SweepPane()
        self.sweeps.hide()

    def _make_finders(self) -> None:
        """What chooses the runs that are listed, or makes more."""
        self.search = make.field(
            "runs_search",
            "Filter the runs",
            "Show only the runs whose time, subject, state or note holds this text.",
            placeholder="Filter…",
        )
        self.search.setClearButtonEnabled(True)
        self.search.setFixedWidth(17 * GRID)  # else its button to clear it would move the others
        self.search.textChanged.connect(self._show_rows)
        self.folder = make.button(
            "runs_folder",
            "Open folder…",
            "mdi6.folder-search-outline",
            self.folder_requested,
            tip="Show the runs of another folder, or one run: also while another program or another"
            " machine writes them, and TensorBoard's event files. Tick a run to draw its curves;"
            " they go on as it does.",
        )
        self.home = make.button(
            "runs_home",
            "Project's runs",
            "mdi6.home-outline",
            self.home_requested,
            tip="Show the runs of this project again.",
        )
        self.sweep = make.tool_button(
            "runs_sweep",
            "mdi6.tune-variant",
            "Train with other settings again and again, and find the best: each trial is a run.",
            text="Sweep",
            framed=True,
            toggled=self._show_sweep,
        )

    def _make_actions(self) -> None:
        """What can be done with the runs that are selected, or taken back, or stopped."""
        self.open = make.button(
            "runs_open",
            "Open",
            "mdi6.folder-open-outline",
            self._open,
            tip="Show the run as it was at its last checkpoint: its settings, curves and weights."
            " Undo brings your settings back.",
        )
        self.resume = make.button(
            "runs_resume",
            "Resume",
            "mdi6.backup-restore",
            lambda: self.resume_requested.emit(self.table.chosen[0]),
            tip="Open the run, and train on from its last checkpoint.",
            accessible="Resume the selected run",
        )
        self.use = make.button(
            "runs_use",
            "Use settings",
            "mdi6.content-duplicate",
            lambda: self.settings_requested.emit(self.table.chosen[0]),
            tip="Take over the settings of the selected run, such as the best trial of a sweep, and"
            " nothing else. Undo brings yours back.",
            accessible="Use the settings of the selected run",
        )
        self.compare = make.button(
            "runs_compare",
            "Compare settings",
            "mdi6.compare-horizontal",
            self._compare,
            tip="List the settings in which two selected runs differ (Ctrl+click selects two).",
        )
        self.delete = make.button(
            "runs_delete",
            "Delete",
            "mdi6.delete-outline",
            self._delete,
            tip="Delete the selected runs with their checkpoints (Delete). Undo brings them back"
            " until others are deleted.",
        )
        self.undo = make.button(
            "runs_undo",
            "Undo delete",
            "mdi6.undo",
            self.restore_requested,
            tip="Bring the deleted runs back.",
        )
        self.events = make.button(
            "runs_events",
            "TensorBoard…",
            "mdi6.chart-line",
            lambda: self.events_requested.emit(self.table.chosen),
            tip="Write the selected runs as event files of TensorBoard: each figure with its steps"
            " and times, and the settings as text.",
            accessible="Write the selected runs as TensorBoard's event files",
        )
        self.stop = make.button(
            "runs_stop",
            "Stop",
            "mdi6.stop",
            self.stop_requested,
            tip="Stop writing event files, or copying runs. Those that are complete stay.",
        )

    def _lay_out(self) -> None:
        self.buttons = FoldingRow(
            "runs_more",
            "More to do with runs",
            (
                *(self.search, self.sweep, self.open, self.resume, self.use, self.compare),
                *(self.delete, self.undo),
                *(self.folder, self.home, self.events, self.stop),
            ),
            (
                *(self.events, self.folder, self.use, self.compare),
                *(self.home, self.delete, self.sweep, self.resume, self.open),
            ),
        )
        self.buttons.offer(self.stop, False)
        self.lists = make.splitter(self.table, self.difference, sizes=(720, 400), shares=(2, 1))
        parts = (self.sweeps, self.place, self.told, (self.empty, 1), (self.lists, 1))
        make.column(self.buttons, *parts, on=self, gap=GRID // 2, margins=(0, GRID, 0, 0))

    def minimumSizeHint(self) -> QSize:
        """Also all rows of the form of a sweep, as many as its width makes them."""
        size = super().minimumSizeHint()
        if not self.sweep.isChecked():
            return size
        form = self.sweeps
        more = form.heightForWidth(self.width()) - form.minimumSizeHint().height()
        return QSize(size.width(), size.height() + max(0, more))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._share_room()
            self.updateGeometry()

    # -- showing ---------------------------------------------------------------------------------

    def show_runs(self, snapshot: RunsSnapshot) -> None:
        """Show the list. While a note is being written, only what can be done changes."""
        self.runs, self.table.read_s = snapshot.runs, snapshot.read_s
        there = {row.folder for row in self.runs}
        if not there.issuperset(self.difference.compared):
            self._close_difference()
        self.table.ticked = tuple(folder for folder in self.table.ticked if folder in there)
        self.buttons.offer(self.undo, snapshot.deleted > 0)
        count = snapshot.deleted
        self.undo.setText(f"Undo delete ({count})" if count > 1 else "Undo delete")
        if not self.buttons.offers(self.stop):
            left = snapshot.left_out
            words = f"{left:,} older runs are not listed." if left else ""
            self.show_told(" ".join(filter(None, (words, snapshot.problem))))
        self._show_rows()

    def show_place(self, folder: str) -> None:
        """Say whose runs these are: those of the project if `folder` is empty."""
        self._elsewhere = folder
        self.buttons.offer(self.home, bool(folder))
        self._show_place()

    def _show_place(self) -> None:
        """The folder, and who writes the run in question: the one that is selected, or the only
        one that another process writes."""
        chosen = self.table.chosen
        written = [row for row in self.table.rows if row.elsewhere]
        if len(chosen) == 1:
            written = [row for row in written if row.folder == chosen[0]]
        words = [f"Runs in {self._elsewhere}."] if self._elsewhere else []
        if len(written) == 1:
            words.append(writer_words(written[0], self.table.read_s))
        make.tell(self.place, " ".join(words))

    def show_problem(self, text: str) -> None:
        """Say what went wrong with a run; nothing if empty."""
        make.tell(self.told, text)
        make.set_role(self.told, "error" if text else "")

    def show_told(self, text: str) -> None:
        make.tell(self.told, text)
        make.set_role(self.told, "muted")

    def show_writing(self, text: str) -> None:
        """Say how far event files are written, or runs are copied; that can be stopped until the
        text is empty."""
        self.buttons.offer(self.stop, bool(text))
        self.show_told(text)
        self._show_buttons()

    def show_difference(self, found: RunDifferenceSnapshot) -> None:
        """List the settings that differ."""
        names = {row.folder: name_of(row) for row in self.runs}
        heads = [names.get(f, PurePath(f).name) for f in (found.first, found.second)]
        self.difference.show_rows((found.first, found.second), heads, found.rows)
        self.difference.setVisible(bool(found.rows))
        self._share_room()
        self.show_told("" if found.rows else "These two runs have the same settings.")

    def _close_difference(self) -> None:
        """Give its room to the list again."""
        self.difference.compared = ()
        self.difference.hide()
        self._share_room()

    def _share_room(self) -> None:
        """A list and the settings that differ stand side by side, if both have room."""
        alone = self.width() < _BOTH_WIDTH and not self.difference.isHidden()
        self.table.setHidden(alone)

    def clear(self) -> None:
        """Another project is shown."""
        self.table.ticked = ()
        self._close_difference()
        self.show_problem("")
        self.show_runs(RunsSnapshot(folder=""))

    def _show_rows(self) -> None:
        if self.table.is_editing:
            return
        wanted = self.search.text().casefold()
        rows = [row for row in self.runs if wanted in _words(row).casefold()]
        self.table.show_runs(rows)
        self.lists.setVisible(bool(rows))
        self.empty.setVisible(not rows)
        empty = _EMPTY_FOLDER if self._elsewhere else _EMPTY
        self.empty.setText("No run holds this text." if self.runs else empty)
        self._show_buttons()

    def _show_buttons(self) -> None:
        self._show_place()
        chosen = self.table.chosen
        rows = {row.folder: row for row in self.table.rows}
        one = rows[chosen[0]] if len(chosen) == 1 else None
        idle = one is not None and one.state not in ("running", "event files")
        self.open.setEnabled(idle)
        self.resume.setEnabled(
            idle and one is not None and bool(one.checkpoint) and one.state != "finished"
        )
        self.use.setEnabled(one is not None and one.state not in ("damaged", "event files"))
        self.compare.setEnabled(len(chosen) == 2)
        self.delete.setEnabled(
            bool(chosen)
            and all(rows[folder].state not in ("running", "event files") for folder in chosen)
        )
        self.events.setEnabled(
            bool(chosen)
            and not self.buttons.offers(self.stop)
            and all(rows[folder].state not in ("damaged", "event files") for folder in chosen)
        )

    # -- what the user wants ---------------------------------------------------------------------

    def _show_sweep(self, shown: bool) -> None:
        self.sweeps.setVisible(shown)
        if shown:
            self.sweep_opened.emit()

    def _open(self) -> None:
        self.open_requested.emit(self.table.chosen[0])

    def _compare(self) -> None:
        self.compare_requested.emit(*self.table.chosen)

    def _delete(self) -> None:
        if self.delete.isEnabled():
            self.delete_requested.emit(self.table.chosen)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.came_in_sight.emit()


def _words(row: RunRow) -> str:
    parts = [name_of(row), row.id, row.title, row.state, row.note, row.error]
    if row.trial is not None:
        parts += [f"sweep {row.trial.sweep}", row.trial.values, row.trial.state]
    return " ".join(parts)
