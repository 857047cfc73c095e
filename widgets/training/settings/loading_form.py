"""Transforms of the samples, and how batches are taken, folded away: a first model needs none."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import transforms
from engine.project.document import DataSetup, Loading, ParamValue, Transform, replace
from engine.project.limits import MAX_TRANSFORMS
from widgets import make
from widgets.forms import ParamForm
from widgets.theme import GRID
from widgets.training.settings.choices import set_text, with_value
from widgets.training.settings.console_field import GivenForm
from widgets.training.settings.loading_fields import LOADER, LOADING

_DEFAULT = Loading()


class LoadingForm(QWidget):
    """Shows the transforms and the loading of a `DataSetup`. It is folded while both have their
    defaults, until the reader opens it. Each edit emits the whole new set-up."""

    edited = Signal(object, str)
    """(the new DataSetup, what was done)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = DataSetup()
        self._rows: list[_TransformRow] = []
        self._add = make.button(
            "add_transform",
            "Add transform",
            tip="Change the samples of each training batch: shift, mirror, noise, normalize.",
        )
        menu = make.menu(self._add, accessible="Transforms", tips=True)
        for key, kind in transforms().items():
            action = menu.addAction(key, partial(self._append, key))
            action.setToolTip(kind.summary)
        self._list = make.column(gap=GRID // 2)
        self._form = make.named(ParamForm(), "setup_loading_form")
        self._form.value_edited.connect(self._edit_loading)
        self.given = GivenForm("setup_loading_given")
        self.given.edited.connect(self._emit_loading)
        add = make.row(self._add, make.STRETCH)
        body = make.page(self._list, add, self._form, self.given, gap=GRID // 2)
        self._more = make.fold(
            "data_more",
            "More: transforms, batches",
            "Transforms of the training samples; order and size of batches; torch's DataLoader.",
            body,
        )
        make.column(self._more, body, on=self, gap=GRID // 2)

    def show_setup(self, setup: DataSetup) -> None:
        self._setup = setup
        kinds = [transform.kind for transform in setup.transforms]
        if kinds != [row.kind for row in self._rows]:
            self._rebuild(kinds)
        for row, transform in zip(self._rows, setup.transforms, strict=True):
            row.form.show_params(transforms()[transform.kind].params, transform.params)
        self._add.setEnabled(len(kinds) < MAX_TRANSFORMS)
        shown = LOADING if setup.loading.workers is None else (*LOADING, *LOADER)
        values = {param.name: getattr(setup.loading, param.name) for param in shown}
        self._form.show_params(shown, values)
        self.given.show_loading(setup.loading)
        if kinds or setup.loading != _DEFAULT:
            self._more.setChecked(True)

    def _rebuild(self, kinds: list[str]) -> None:
        for row in self._rows:
            row.hide()
            row.deleteLater()
        self._rows = [_TransformRow(kind, i) for i, kind in enumerate(kinds)]
        for i, row in enumerate(self._rows):
            row.edited.connect(partial(self._edit_transform, i))
            row.removed.connect(partial(self._remove, i))
            row.raised.connect(partial(self._raise, i))
            self._list.addWidget(row)

    def _emit(self, transforms: tuple[Transform, ...], words: str) -> None:
        self.edited.emit(replace(self._setup, transforms=transforms), words)

    def _append(self, kind: str) -> None:
        self._emit((*self._setup.transforms, Transform(kind)), f"Add {kind}")

    def _remove(self, index: int) -> None:
        chosen = self._setup.transforms
        self._emit(chosen[:index] + chosen[index + 1 :], f"Remove {chosen[index].kind}")

    def _raise(self, index: int) -> None:
        chosen = [*self._setup.transforms]
        chosen.insert(index - 1, chosen.pop(index))
        self._emit(tuple(chosen), f"Move {chosen[index - 1].kind} up")

    def _edit_transform(self, index: int, name: str, value: ParamValue) -> None:
        chosen = [*self._setup.transforms]
        schema = transforms()[chosen[index].kind].params
        params = with_value(schema, chosen[index].params, name, value)
        chosen[index] = replace(chosen[index], params=params)
        self._emit(tuple(chosen), set_text(name, value))

    def _edit_loading(self, name: str, value: ParamValue) -> None:
        self._emit_loading(replace(self._setup.loading, **{name: value}), set_text(name, value))

    def _emit_loading(self, loading: Loading, words: str) -> None:
        self.edited.emit(replace(self._setup, loading=loading), words)


class _TransformRow(QWidget):
    """One transform: its name, its parameters, and buttons to move it up and to remove it."""

    edited = Signal(str, object)
    removed = Signal()
    raised = Signal()

    def __init__(self, kind: str, index: int) -> None:
        super().__init__()
        self.kind = kind
        self.form = make.named(ParamForm(), f"transform_{index}_form")
        up = make.tool_button(
            f"transform_{index}_up",
            "mdi6.arrow-up",
            tip=f"Apply {kind} before the transform above it",
            slot=self.raised.emit,
            ink="muted",
        )
        up.setVisible(index > 0)
        away = make.tool_button(
            f"transform_{index}_remove",
            "mdi6.close",
            tip=f"Remove {kind}",
            slot=self.removed.emit,
            ink="muted",
        )
        title = make.label(kind, tip=transforms()[kind].summary)
        make.column(make.row(title, make.STRETCH, up, away), self.form, on=self, gap=GRID // 4)
        self.form.value_edited.connect(self.edited)
