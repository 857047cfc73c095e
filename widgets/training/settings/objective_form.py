"""The objective of code: its data, and the step that gives the loss of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, QStringListModel, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QCompleter, QLabel, QLineEdit, QPlainTextEdit, QWidget

from engine.project.document import replace
from engine.project.subject import Objective
from engine.protocol import StepSnapshot
from widgets import make
from widgets.icons import icon
from widgets.model.python_highlighter import PythonHighlighter
from widgets.theme import GRID, mono_font
from widgets.training.settings.choices import Choice

_SOURCE_TIP = (
    "Where the samples come from: data that your code makes, or a data set of Train, bundled or of"
    " a file, which it splits, transforms and shows here."
)
_SOURCES = (
    ("of my code", False, "A Dataset, a DataLoader, tensors, or a function that returns batches."),
    ("a data set or a file", True, "Batches are pairs (x, y), as a model of blocks gets them."),
)
_DATA_TIP = (
    "Data to learn from: a Dataset, a DataLoader, a tuple of tensors, or a function that returns"
    " batches. Write a name of your code, or FILE.py:NAME. A Dataset or tensors are shuffled in"
    " batches of the size below."
)
_VALIDATION_TIP = (
    "Data to validate on, if there is any: like the data above, but in its own order. The model"
    " never trains on it."
)
_STEP_TIP = (
    "The function step(batch): it runs the model and returns the loss, a scalar, or a dict of"
    " figures with “loss” among them. Each figure gets a plot, and so does lab.log(name=value). A"
    " figure may be a metric, an object with update, compute and reset, such as torchmetrics has:"
    " it is computed over each epoch. It sees model, torch, nn, F and the names of your code."
    " Ctrl+Enter takes an edit over."
)
_STEP_LINES = 9
_NO_NAMES = "loader, data.py:loader"
_EXAMPLES = 2
_STEP = "def step(batch):\n    x, y = batch\n    return F.mse_loss(model(x), y)"
_OWN_STEP = "The step of your code.\nType one here to use\nthat instead."
_TRAILING = QLineEdit.ActionPosition.TrailingPosition


class ObjectiveForm(QWidget):
    """Shows an `Objective`. Each edit emits the whole new one and a text for Undo. `of_step` is for
    under all that is said about the data."""

    edited = Signal(object, str)
    """(the new Objective, what was done: "Set the data to loader")"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown = Objective()
        self._usual = ""
        self._names = QStringListModel(self)
        self.source = make.named(Choice(), "objective_source", "Data to train on", _SOURCE_TIP)
        make.add_choices(self.source, _SOURCES)
        self.source.activated.connect(lambda: self._choose_source(self.source.currentData()))
        self.data = self._field("objective_data", "Data", _DATA_TIP, _NO_NAMES)
        self.validation = self._field("objective_validation", "Validation", _VALIDATION_TIP, "none")
        for field, edit in (
            (self.data, self._edit_data),
            (self.validation, self._edit_validation),
        ):
            field.editingFinished.connect(edit)
            # Queued: the field takes the name that was picked after this signal.
            field.completer().activated.connect(edit, Qt.ConnectionType.QueuedConnection)
        self.step = make.named(_StepEditor(), "objective_step", "Step", _STEP_TIP)
        self.step.left.connect(self._edit_step)
        self._usual_button = make.button(
            "objective_usual",
            "Use the written step",
            slot=self._use_usual,
            tip="Forget this step: the program writes the one that fits the first batch again.",
        )
        self._words = make.label("", "muted", "objective_words", wrap=True)
        self._of_code = make.page(
            _titled("data", self.data),
            self.data,
            _titled("validation", self.validation),
            self.validation,
            gap=GRID // 2,
        )
        make.column(self.source, self._of_code, on=self, gap=GRID // 2, margins=0)
        self.of_step = make.page(
            make.label("Step", "heading"),
            self.step,
            self._words,
            self._usual_button,
            gap=GRID // 2,
        )
        self.offer_names(())
        self.show_objective(self._shown)

    # -- showing ---------------------------------------------------------------------------------

    def show_objective(self, objective: Objective) -> None:
        self._shown = objective
        with QSignalBlocker(self.source):
            self.source.setCurrentIndex(self.source.findData(objective.of_setup))
        self._of_code.setVisible(not objective.of_setup)
        self.data.setText(objective.data)
        self.validation.setText(objective.validation)
        self._usual_button.setVisible(bool(objective.step))
        if not objective.has_data:
            self._usual = ""  # it was written for other data
        self.step.show_source(objective.step or self._usual)
        if not objective.has_data:
            self.show_words("Name your data: a step that fits its first batch is written here.")

    def show_usual_step(self, step: StepSnapshot) -> None:
        """Show the step that the program has written, unless the user has one of their own."""
        self._usual = step.source
        if self._shown.step:
            self.show_words(f"Your step. The first batch is {step.batch}.")
        elif step.source:
            self.step.show_source(step.source)
            self.show_words(
                f"Written for {step.task}: the first batch is {step.batch}. Edit it to make it"
                " yours."
            )
        else:
            self.step.show_source("", _OWN_STEP)
            self.show_words(f"Your code's own step is used. The first batch is {step.batch}.")

    def show_words(self, text: str, role: str = "muted") -> None:
        """Show a text under the step; an error in the role "error"."""
        self._words.setText(text)
        make.set_role(self._words, role)

    def offer_names(self, names: Sequence[str]) -> None:
        """The names that the fields complete."""
        self._names.setStringList(list(names))
        example = "such as " + (", ".join(names[:_EXAMPLES]) if names else _NO_NAMES)
        self.data.setPlaceholderText(f"{example}, …" if len(names) > _EXAMPLES else example)
        for field in (self.data, self.validation):
            for action in field.actions():
                action.setVisible(bool(names))

    # -- editing ---------------------------------------------------------------------------------

    def _choose_source(self, of_setup: bool) -> None:
        if of_setup != self._shown.of_setup:
            self._usual = ""
            what = "Train on a data set" if of_setup else "Train on data of the code"
            self._emit(replace(self._shown, of_setup=of_setup), what)

    def _edit_data(self) -> None:
        text = self.data.text().strip()
        if text != self._shown.data:
            self._usual = ""
            self._emit(replace(self._shown, data=text), f"Set the data to {text or 'none'}")

    def _edit_validation(self) -> None:
        text = self.validation.text().strip()
        if text != self._shown.validation:
            what = f"Set the validation data to {text or 'none'}"
            self._emit(replace(self._shown, validation=text), what)

    def _edit_step(self) -> None:
        source = self.step.toPlainText()
        source = f"{source.rstrip()}\n" if source.strip() else ""
        if source.rstrip() != (self._shown.step or self._usual).rstrip():
            self._emit(replace(self._shown, step=source), "Edit the step")

    def _use_usual(self) -> None:
        self._emit(replace(self._shown, step=""), "Use the written step")

    def _emit(self, objective: Objective, what: str) -> None:
        self.edited.emit(objective, what)

    def _field(self, name: str, title: str, tip: str, placeholder: str) -> QLineEdit:
        field = make.field(name, title, tip, placeholder=placeholder, mono=True)
        completer = QCompleter(self._names, field)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        field.setCompleter(completer)
        choose = field.addAction(icon("mdi6.chevron-down", "muted"), _TRAILING)
        choose.setText("Choose among the data of your code")
        choose.triggered.connect(lambda: _show_all(completer))
        return field


class _StepEditor(QPlainTextEdit):
    """Python to edit. `left()`: the user has finished, by Ctrl+Enter or by leaving. Esc brings back
    what was shown. Tab writes four spaces."""

    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._shown = ""
        self.setFont(mono_font(9))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setPlaceholderText(_STEP)
        self._highlighter = PythonHighlighter(self.document())
        height = self.fontMetrics().lineSpacing() * _STEP_LINES + 2 * GRID
        self.setMinimumHeight(height)

    def show_source(self, source: str, placeholder: str = _STEP) -> None:
        self.setPlaceholderText(placeholder)
        self._shown = source
        if self.toPlainText() != source:
            self.setPlainText(source)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        control = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and control:
            self.left.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.setPlainText(self._shown)
        elif event.key() == Qt.Key.Key_Tab and not event.modifiers():
            self.insertPlainText("    ")
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.left.emit()


def _show_all(completer: QCompleter) -> None:
    completer.setCompletionPrefix("")
    completer.complete()


def _titled(text: str, buddy: QWidget) -> QLabel:
    label = QLabel(text)
    label.setBuddy(buddy)
    return label
