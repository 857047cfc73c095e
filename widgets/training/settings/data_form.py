"""The form of the data set: which one, its parameters, and how it is split."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import DatasetKind, datasets
from engine.project.document import Column, DataSetup, ParamValue, replace
from widgets import make
from widgets.forms import ParamForm
from widgets.painting.paint_form import PaintForm
from widgets.theme import GRID
from widgets.training.settings.choices import Choice, set_text, show_choice, with_value
from widgets.training.settings.console_field import ConsoleField
from widgets.training.settings.data_report import DataReport
from widgets.training.settings.loading_fields import SPLIT
from widgets.training.settings.loading_form import LoadingForm

_PREVIEW_TIP = "What is in the data: samples, classes, columns, first rows, what was skipped."
_DEFAULT = DataSetup()


class DataForm(QWidget):
    """Shows a `DataSetup`. Each edit emits the whole new one and a text for Undo."""

    edited = Signal(object, str)
    """(the new DataSetup, what was done: "Set noise to 0.2")"""
    path_wanted = Signal(str)
    """The reader wants to choose a "file" or a "folder"."""
    report_wanted = Signal()
    """The reader has opened the preview."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = _DEFAULT
        layout = make.column(on=self, gap=GRID // 2)
        tip = "Data set to learn from"
        self._kind = make.named(Choice(), "setup_data", make.first_words(tip), tip)
        rows = ((kind.title, key, kind.summary) for key, kind in datasets().items())
        make.add_choices(self._kind, rows)
        self._words = make.label("", "muted", "setup_data_words", wrap=True)
        self._path = make.label("", name="setup_data_path", wrap=True)
        self._buttons = {
            what: make.button(
                f"setup_choose_{what}",
                f"{what.capitalize()}…",
                slot=partial(self.path_wanted.emit, what),
                tip=f"Choose the {what} of the data; it can be dropped here, too.",
            )
            for what in ("file", "folder")
        }
        self._source = make.page(self._path, make.row(*self._buttons.values(), make.STRETCH))
        self.console = ConsoleField()
        self.console.chosen.connect(self._name_data)
        self._points = PaintForm()
        self._points.edited.connect(self.edited)
        self._params, self._split = ParamForm(), ParamForm()
        self._params.setObjectName("setup_data_form")
        self._split.setObjectName("setup_split_form")
        self._loading = LoadingForm()
        self.report = DataReport()
        self._preview = make.fold("setup_preview", "Preview", _PREVIEW_TIP, self.report)
        for widget in (self._kind, self._words, self._source, self.console, self._points):
            layout.addWidget(widget)
        for widget in (self._params, self._split):
            layout.addWidget(widget)
        for widget in (self._loading, self._preview, self.report):
            layout.addWidget(widget)
        self.setAcceptDrops(True)
        self.report.column_edited.connect(self._edit_column)
        self._kind.activated.connect(lambda: self._choose(self._kind.currentData()))
        self._params.value_edited.connect(self._edit_param)
        self._split.value_edited.connect(self._edit_split)
        self._loading.edited.connect(self.edited)
        self._preview.clicked.connect(lambda: self.previews and self.report_wanted.emit())

    def show_setup(self, setup: DataSetup) -> None:
        self._setup = setup
        kind = datasets().get(setup.kind)
        show_choice(self._kind, setup.kind)
        self._words.setText(_words_of(kind))
        params = kind.params if kind else ()
        self._params.show_params(params, setup.params)
        self._params.setVisible(bool(params))
        source = kind.source if kind else ""
        self._source.setVisible(kind is not None and kind.is_of_path)
        self.console.setVisible(source == "console")
        self.console.show_name(setup.path if source == "console" else "")
        self._points.setVisible(source == "points")
        self._points.show_setup(setup)
        empty = f"Choose a {source}, or drop it here." if source else ""
        self._path.setText(setup.path or empty)
        for what, button in self._buttons.items():
            button.setVisible(what in source)
        self._split.show_params(SPLIT, {param.name: getattr(setup, param.name) for param in SPLIT})
        self._loading.show_setup(setup)

    def _choose(self, key: str) -> None:
        if key != self._setup.kind:
            cleared = {"params": {}, "path": "", "columns": {}, "transforms": ()}
            setup = replace(self._setup, kind=key, **cleared)
            self.edited.emit(setup, f"Use the data set {datasets()[key].title}")

    @property
    def previews(self) -> bool:
        """Whether the reader wants to see what is in the data."""
        return self._preview.isChecked()

    def offer_objects(self, names: Sequence[str]) -> None:
        """The names of the console that the DataLoader's arguments may be."""
        self._loading.given.offer_names(names)

    def set_path(self, path: str) -> None:
        """Use a file or a folder: with the kind that is shown if it is read from one, else with
        the one that its name tells."""
        kind = kind_for(path, self._setup.kind)
        params = self._setup.params if kind == self._setup.kind else {}
        setup = replace(self._setup, kind=kind, params=params, path=path, columns={})
        self.edited.emit(setup, f"Use the data of {PurePath(path).name}")

    def _name_data(self, expression: str) -> None:
        setup = replace(self._setup, path=expression)
        self.edited.emit(setup, f"Set the data to {expression or 'none'}")

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.set_path(_dropped(event.mimeData()))
        event.acceptProposedAction()

    def show_report(self, always: bool) -> None:
        """Show what is in the data: `always` for data of a file, else in the preview."""
        self._preview.setVisible(not always)
        self.report.setVisible(always or self.previews)

    def _edit_column(self, name: str, column: Column) -> None:
        columns = {**self._setup.columns, name: column}
        if column.role == "target":  # there is one; another that had the role is a feature again
            columns |= {
                n: replace(c, role="feature")
                for n, c in columns.items()
                if n != name and c.role == "target"
            }
        setup = replace(self._setup, columns=columns)
        self.edited.emit(setup, f"Use the column {name} as {column.role}, {column.type}")

    def _edit_param(self, name: str, value: ParamValue) -> None:
        schema = datasets()[self._setup.kind].params
        params = with_value(schema, self._setup.params, name, value)
        self.edited.emit(replace(self._setup, params=params), set_text(name, value))

    def _edit_split(self, name: str, value: ParamValue) -> None:
        self.edited.emit(replace(self._setup, **{name: value}), set_text(name, value))


def kind_for(path: str, kind: str) -> str:
    """The kind of data set for a file or folder, where `kind` is chosen now."""
    what, name = ("folder" if os.path.isdir(path) else "file"), PurePath(path).name.lower()
    known = datasets().get(kind)
    if known is not None and what in known.source:
        return kind
    if what == "folder":
        return "images"
    plain = name.removesuffix(".gz")
    found = (key for key, each in datasets().items() if plain.endswith(each.suffixes))
    return "idx" if "idx" in name else next(found, "csv")


def _dropped(data: QMimeData) -> str:
    """The one file or folder that is dragged; empty for anything else."""
    urls = data.urls()
    return urls[0].toLocalFile() if len(urls) == 1 and urls[0].isLocalFile() else ""


def _words_of(kind: DatasetKind | None) -> str:
    if kind is None:
        return "This version does not know this data set."
    if kind.source:
        return kind.summary
    targets = f"{kind.classes} classes" if kind.classes else "Targets are numbers"
    return f"{kind.summary} Shape of a sample: {kind.sample_shape}. {targets}."
