"""A form that creates a tensor, and shows the line of Python that does it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QSizePolicy,
    QWidget,
)

from engine.project.factories import (
    FACTORIES,
    OPTIONS,
    Field,
    FieldError,
    Known,
    Surroundings,
    python_line,
)
from engine.protocol import VariablesSnapshot
from widgets import make, theme
from widgets.model.python_highlighter import PythonHighlighter

Editor = QLineEdit | QComboBox | QCheckBox


class CreateForm(QWidget):
    """Shows a form and the line that it makes. `run_requested(source)` asks to run the line. An
    invalid value is explained under its field at once; there is then no line."""

    run_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("create_form")
        self._around = Surroundings()
        self._names: frozenset[str] = frozenset()
        self._own_name = ""  # the last name that the form proposed
        self.editors: dict[str, Editor] = {}
        self._errors: dict[str, QLabel] = {}
        self.factory_box = make.combo("create_factory", "Function that makes the tensor")
        self.factory_box.setToolTip("The function of torch that makes the tensor.")
        self.factory_box.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._fill_factories()
        self.name_edit = make.field("create_name", "Name of the new variable")
        self.name_edit.setToolTip("The variable's name. A variable of this name is replaced.")
        self._summary = make.label("", "muted", "create_summary", wrap=True)
        self._name_error = make.label("", "error", "create_name_error", wrap=True)
        self._replaces = make.label("", "muted", "create_replaces", wrap=True)
        self.preview = _Preview()
        self.create_button = make.button("create_run", "Create", slot=self._run, primary=True)
        self.create_button.setAccessibleName("Create the tensor")
        self.create_button.setToolTip(
            "Run this line in the console. It stays in the console's history."
        )

        for widget in (self.factory_box, self.name_edit, self.preview, self.create_button):
            widget.setParent(self)  # Tab order follows the parents: these before the function's
        self._rows = _form()
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._lay_out()
        self.factory_box.currentIndexChanged.connect(self._show_factory)
        self.name_edit.textChanged.connect(self._refresh)
        self.name_edit.returnPressed.connect(self.create_button.click)
        self._propose_name()
        self._show_factory()

    def show_variables(self, snapshot: VariablesSnapshot) -> None:
        """Offer the console's tensors and arrays in fields that take one."""
        known = {
            kind: {
                v.name: Known(v.shape, v.dtype)
                for v in snapshot.variables
                if v.shape is not None and (v.kind == "tensor") == (kind == "tensor")
            }
            for kind in ("tensor", "array")
        }
        self._around = replace(self._around, tensors=known["tensor"], arrays=known["array"])
        self._names = frozenset(variable.name for variable in snapshot.variables)
        self._propose_name()
        self._fill_choices()
        self._refresh()

    def set_devices(self, names: tuple[str, ...]) -> None:
        """Offer the engine's devices."""
        self._around = replace(self._around, devices=names)
        self._fill_choices()
        self._refresh()

    def choose(self, key: str) -> None:
        """Show the fields of a function (`"zeros"`); raises ValueError for an unknown one."""
        index = self.factory_box.findData(key)
        if index < 0:
            raise ValueError(f"there is no factory {key!r}")
        self.factory_box.setCurrentIndex(index)

    @property
    def source(self) -> str:
        """The line of Python that Create runs; empty while a value is invalid."""
        return self.preview.toPlainText()

    def error(self, name: str) -> str:
        """The error under a field; empty without one."""
        label = self._name_error if name == "name" else self._errors[name]
        return label.text()

    # -- building --------------------------------------------------------------------------------

    def _fill_factories(self) -> None:
        group = ""
        for factory in FACTORIES.values():
            if group and factory.group != group:
                self.factory_box.insertSeparator(self.factory_box.count())
            group = factory.group
            title = "torch.tensor (of an array)" if "(" in factory.key else factory.call
            make.add_choices(self.factory_box, ((title, factory.key, factory.summary),))

    def _show_factory(self) -> None:
        """Show the fields of the chosen function. Values of fields of the same name stay."""
        typed = self._typed()
        while self._rows.rowCount():
            self._rows.removeRow(0)
        self.editors, self._errors = {}, {}
        factory = FACTORIES[self.factory_box.currentData()]
        self._summary.setText(factory.summary)
        for field in (*factory.fields, *(OPTIONS[name] for name in factory.options)):
            editor = self._editor(field)
            error = make.label("", "error", f"create_{field.name}_error", wrap=True)
            label = self._title(field.name)
            label.setToolTip(field.hint)
            self._rows.addRow(label, editor)
            self._rows.addRow(error)
            self.editors[field.name], self._errors[field.name] = editor, error
        self._fill_choices()
        for name, value in typed.items():
            self._write(name, value)
        self._refresh()

    def _editor(self, field: Field) -> Editor:
        if field.kind == "text":
            editor: Editor = QLineEdit(field.initial, self)
            editor.textChanged.connect(self._refresh)
            editor.returnPressed.connect(self.create_button.click)
        elif field.kind == "check":
            editor = QCheckBox(self)
            editor.toggled.connect(self._refresh)
        else:
            editor = QComboBox(self)
            editor.setEditable(field.kind != "choice")
            editor.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
            editor.setSizeAdjustPolicy(
                QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
            )
            editor.addItems(field.choices)
            if editor.isEditable():
                editor.setEditText(field.initial)
            editor.currentTextChanged.connect(self._refresh)
        return make.named(editor, f"create_{field.name}", field.name, field.hint)

    def _fill_choices(self) -> None:
        """Update the lists of variables and devices. What the user chose or typed stays."""
        offered = {
            "input": tuple(self._around.tensors),
            "array": tuple(self._around.arrays),
            "device": ("default", *dict.fromkeys((*self._around.devices, "meta"))),
        }
        self._offer_pinning()
        for name, choices in offered.items():
            box = self.editors.get(name)
            if not isinstance(box, QComboBox):
                continue
            text = box.currentText()
            box.blockSignals(True)
            box.clear()
            box.addItems(choices)
            if box.isEditable():
                box.setEditText(text or (choices[0] if choices and name == "input" else ""))
            else:
                box.setCurrentIndex(max(0, box.findText(text)))
            box.blockSignals(False)

    def _offer_pinning(self) -> None:
        """Enable pinning if there is a CUDA device: torch refuses to pin memory without one."""
        box = self.editors.get("pin_memory")
        if not isinstance(box, QCheckBox):
            return
        possible = any(name.startswith("cuda") for name in self._around.devices)
        box.setEnabled(possible)
        why = "" if possible else "\nThis engine has no CUDA device to pin memory for."
        box.setToolTip(f"{OPTIONS['pin_memory'].hint}{why}")
        box.setChecked(box.isChecked() and possible)

    def _propose_name(self) -> None:
        """Propose a name that no variable has, unless the user has typed a name."""
        if self.name_edit.text() != self._own_name:
            return
        letters = ("x", "y", "z", "w", "a", "b", "c", *(f"x{n}" for n in range(1, 10_000)))
        self._own_name = next(letter for letter in letters if letter not in self._names)
        self.name_edit.setText(self._own_name)

    # -- what stands in the form -----------------------------------------------------------------

    def _typed(self) -> dict[str, str | bool]:
        typed: dict[str, str | bool] = {}
        for name, editor in self.editors.items():
            if isinstance(editor, QCheckBox):
                typed[name] = editor.isChecked()
            else:
                is_line = isinstance(editor, QLineEdit)
                typed[name] = editor.text() if is_line else editor.currentText()
        return typed

    def _write(self, name: str, value: str | bool) -> None:
        editor = self.editors.get(name)
        if isinstance(editor, QCheckBox):
            editor.setChecked(bool(value))
        elif isinstance(editor, QLineEdit):
            editor.setText(str(value))
        elif isinstance(editor, QComboBox):
            editor.setCurrentText(str(value))

    def _refresh(self) -> None:
        """Write the line again, or show each error under its field."""
        fault: FieldError | None = None
        source = ""
        try:
            source = python_line(
                self.factory_box.currentData(), self.name_edit.text(), self._typed(), self._around
            )
        except FieldError as error:
            fault = error
        for name, label in (("name", self._name_error), *self._errors.items()):
            text = str(fault) if fault is not None and fault.field_name == name else ""
            make.tell(label, text)
        name = self.name_edit.text().strip()
        self._replaces.setText(f"{name} exists and will be replaced.")
        self._replaces.setVisible(name in self._names)
        self.preview.show_source(source)
        self.create_button.setEnabled(bool(source))

    def _run(self) -> None:
        if self.source:
            self.run_requested.emit(self.source)

    def _title(self, text: str) -> QLabel:
        """The label of a row. All have the width of the widest, so that both forms line up."""
        label = QLabel(text, self)
        label.setMinimumWidth(label.fontMetrics().horizontalAdvance("memory_format"))
        return label

    def _lay_out(self) -> None:
        head = _form()
        head.addRow(self._title("function"), self.factory_box)
        head.addRow(self._summary)
        head.addRow(self._title("name"), self.name_edit)
        head.addRow(self._name_error)
        head.addRow(self._replaces)
        half = theme.GRID // 2
        inside = QWidget(self)
        make.column(head, self._rows, make.STRETCH, on=inside, gap=half, margins=theme.GRID)
        margins = (theme.GRID, half, theme.GRID, theme.GRID)
        foot = make.column(self.preview, self.create_button, gap=half, margins=margins)
        make.column((make.scroll(inside, QScrollArea(self)), 1), foot, on=self, gap=0)


class _Preview(QPlainTextEdit):
    """The line of Python, read-only."""

    def __init__(self) -> None:
        super().__init__()
        tip = "The Python that Create runs in the console."
        make.named(self, "create_preview", "Python that Create runs", tip)
        self.setPlaceholderText("No line yet: correct the marked field above.")
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._highlighter = PythonHighlighter(self.document())
        theme.notifier.changed.connect(self._use_theme)
        self._use_theme()

    def show_source(self, source: str) -> None:
        if source != self.toPlainText():
            self.setPlainText(source)

    def sizeHint(self) -> QSize:
        return QSize(200, 3 * self.fontMetrics().lineSpacing() + 2 * theme.GRID)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.sizeHint().height())

    def _use_theme(self) -> None:
        self.setFont(theme.mono_font(9))


def _form() -> QFormLayout:
    """A layout with rows of label and field; the fields take all of the width."""
    form = QFormLayout()
    form.setSpacing(theme.GRID // 2)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    return form
