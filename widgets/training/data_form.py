"""The form of the data set: which one, its parameters, and how it is split."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import DatasetKind, Param, datasets
from engine.project.document import DataSetup, ParamValue, replace
from engine.project.limits import MAX_SEED
from widgets import make
from widgets.forms import ParamForm
from widgets.theme import GRID
from widgets.training.choices import Choice, set_text, show_choice, with_value

_DEFAULT = DataSetup()
_SPLIT = (
    Param(
        "validation_fraction",
        "float",
        _DEFAULT.validation_fraction,
        minimum=0.0,
        maximum=0.9,
        doc="Fraction of the samples held out for validation: the model never trains on them.",
    ),
    Param(
        "stratified",
        "bool",
        _DEFAULT.stratified,
        doc="Keep the share of each class the same in training and validation. Targets that are"
        " numbers are split at random in any case.",
    ),
    Param(
        "split_seed",
        "int",
        _DEFAULT.split_seed,
        minimum=0,
        maximum=MAX_SEED,
        doc="Seed of the split: another seed holds out other samples.",
    ),
)


class DataForm(QWidget):
    """Shows a `DataSetup`. Each edit emits the whole new one and a text for Undo."""

    edited = Signal(object, str)
    """(the new DataSetup, what was done: "Set noise to 0.2")"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = _DEFAULT
        layout = make.column(on=self, gap=GRID // 2)
        tip = "Data set to learn from"
        self._kind = make.named(Choice(), "setup_data", make.first_words(tip), tip)
        rows = ((kind.title, key, kind.summary) for key, kind in datasets().items())
        make.add_choices(self._kind, rows)
        self._words = make.label("", "muted", "setup_data_words", wrap=True)
        self._params, self._split = ParamForm(), ParamForm()
        self._params.setObjectName("setup_data_form")
        self._split.setObjectName("setup_split_form")
        for widget in (self._kind, self._words, self._params, self._split):
            layout.addWidget(widget)
        self._kind.activated.connect(lambda: self._choose(self._kind.currentData()))
        self._params.value_edited.connect(self._edit_param)
        self._split.value_edited.connect(self._edit_split)

    def show_setup(self, setup: DataSetup) -> None:
        self._setup = setup
        kind = datasets().get(setup.kind)
        show_choice(self._kind, setup.kind)
        self._words.setText(_words_of(kind))
        params = kind.params if kind else ()
        self._params.show_params(params, setup.params)
        self._params.setVisible(bool(params))
        self._split.show_params(
            _SPLIT, {param.name: getattr(setup, param.name) for param in _SPLIT}
        )

    def _choose(self, key: str) -> None:
        if key != self._setup.kind:
            setup = replace(self._setup, kind=key, params={})
            self.edited.emit(setup, f"Use the data set {datasets()[key].title}")

    def _edit_param(self, name: str, value: ParamValue) -> None:
        schema = datasets()[self._setup.kind].params
        params = with_value(schema, self._setup.params, name, value)
        self.edited.emit(replace(self._setup, params=params), set_text(name, value))

    def _edit_split(self, name: str, value: ParamValue) -> None:
        self.edited.emit(replace(self._setup, **{name: value}), set_text(name, value))


def _words_of(kind: DatasetKind | None) -> str:
    if kind is None:
        return "This version does not know this data set."
    targets = f"{kind.classes} classes" if kind.classes else "Targets are numbers"
    return f"{kind.summary} Shape of a sample: {kind.sample_shape}. {targets}."
