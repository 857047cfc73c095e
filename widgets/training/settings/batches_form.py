"""How data of code is split, and, folded away, how batches are taken of it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.document import DataSetup, Loading, ParamValue, TrainingSetup, replace
from widgets import make
from widgets.forms import ParamForm
from widgets.theme import GRID
from widgets.training.settings.choices import set_text
from widgets.training.settings.console_field import GivenForm
from widgets.training.settings.loading_fields import LOADER, LOADING, PADDED, PADDING, SPLIT

_OF_CODE = tuple(param for param in LOADING if param.name != "balanced")


class BatchesForm(QWidget):
    """Shows the loading of a `TrainingSetup` for a Dataset or tensors of code. Each edit emits the
    whole new set-up."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = TrainingSetup()
        self._form = make.named(ParamForm(), "setup_batches_form")
        self._form.value_edited.connect(self._edit)
        words = make.label(
            "For a Dataset or tensors. A DataLoader of yours stays as it is.",
            "muted",
            "setup_batches_words",
            wrap=True,
        )
        self._share = make.check(
            "setup_hold_out",
            "hold out a share for validation",
            "Split a Dataset or tensors of your code: a share validates, the rest trains. Data that"
            " is named for validation above goes first. Classes keep their shares where tensors, a"
            " list or the targets of a Dataset tell them.",
        )
        self._share.clicked.connect(self._hold_out)
        self._split = make.named(ParamForm(), "setup_split_form")
        self._split.value_edited.connect(self._edit_split)
        self.given = GivenForm("setup_batches_given")
        self.given.edited.connect(self._emit)
        body = make.page(words, self._form, self.given, gap=GRID // 2)
        self._more = make.fold(
            "batches_more",
            "More: batches, padding",
            "Order and size of batches, samples of different lengths, torch's DataLoader.",
            body,
        )
        make.column(self._share, self._split, self._more, body, on=self, gap=GRID // 2)

    def show_setup(self, setup: TrainingSetup) -> None:
        self._setup = setup
        loading = setup.data.loading
        self._share.setChecked(setup.data.hold_out)
        self._split.setVisible(setup.data.hold_out)
        split = {param.name: getattr(setup.data, param.name) for param in SPLIT}
        self._split.show_params(SPLIT, split)
        padding = PADDING if loading.padding == "none" else (*PADDING, *PADDED)
        shown = (*_OF_CODE, *(LOADER if loading.workers is not None else ()), *padding)
        values = {param.name: getattr(loading, param.name) for param in shown}
        self._form.show_params(shown, values)
        self.given.show_loading(loading)
        if loading != Loading():
            self._more.setChecked(True)

    def _edit(self, name: str, value: ParamValue) -> None:
        loading = replace(self._setup.data.loading, **{name: value})
        self._emit(loading, set_text(name, value))

    def _hold_out(self, on: bool) -> None:
        what = "Hold out a share for validation" if on else "Hold out no share"
        self._emit_data(replace(self._setup.data, hold_out=on), what)

    def _edit_split(self, name: str, value: ParamValue) -> None:
        self._emit_data(replace(self._setup.data, **{name: value}), set_text(name, value))

    def _emit(self, loading: Loading, words: str) -> None:
        self._emit_data(replace(self._setup.data, loading=loading), words)

    def _emit_data(self, data: DataSetup, words: str) -> None:
        self.setup_edited.emit(replace(self._setup, data=data), words)
