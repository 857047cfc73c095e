"""A form for parameters, with the types, defaults and ranges of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QWidget

from engine.project.catalogue import Param, parse_value
from engine.project.document import ParamValue
from widgets import make, theme
from widgets.fields import Field, TextField, field_for, tooltip, value_text


class ParamForm(QWidget):
    """A form with one row per parameter. A valid new value emits `value_edited(name, value)` once.

    Each key press checks the text of the field. An error is shown under the field, and the text
    stays. The name of a parameter that differs from its default is bold; a button resets it.
    """

    value_edited = Signal(str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._grid = make.grid(self, down=theme.GRID // 2, stretch=1)
        self._params: tuple[Param, ...] = ()
        self._owner = ""
        self._rows: dict[str, _Row] = {}

    def show_params(
        self, params: Sequence[Param], values: Mapping[str, ParamValue], *, of: str = ""
    ) -> None:
        """Show `params` with `values`. A parameter that is not in `values` has its default.

        `of` names the owner of the parameters. If owner and parameters are those shown already,
        only fields whose value changed are written: text that is being typed stays.
        """
        if tuple(params) != self._params or of != self._owner:
            self._owner = of
            self._rebuild(tuple(params))
        for param in params:
            default = param.initial if param.required else param.default
            self._rows[param.name].show_value(values.get(param.name, default))

    def set_head(self, label: QWidget, field: QWidget, error: QWidget) -> None:
        """Show a row with another widget above the parameters, in the same columns."""
        _place_row(self._grid, 0, label, field, error)

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters that are shown."""
        return self._params

    def field(self, name: str) -> Field:
        """The editor of a parameter; raises KeyError when it is not shown."""
        return self._rows[name].field

    def error(self, name: str) -> str:
        """The error shown under a field; empty if its text is valid."""
        return self._rows[name].error.text()

    def _rebuild(self, params: tuple[Param, ...]) -> None:
        for row in self._rows.values():
            row.remove(self._grid)
        self._params = params
        self._rows = {}
        before: QWidget | None = None
        for index, param in enumerate(params):
            row = _Row(self, param)
            row.place(self._grid, 2 * index + 2)
            if before is not None:
                QWidget.setTabOrder(before, row.field)
            before = row.field
            self._rows[param.name] = row


class _Row:
    """Label, field, reset button and error text of one parameter."""

    def __init__(self, form: ParamForm, param: Param) -> None:
        self._form = form
        self._param = param
        self._value: ParamValue = None
        self._shown_once = False
        self.field = field_for(param, form)
        self.label = make.label(param.name, tip=tooltip(param), of=self.field)
        self.error = make.label("", "error", f"param_{param.name}_error", wrap=True)
        self.error.hide()
        self.reset = make.tool_button(
            f"param_{param.name}_reset", "mdi6.restore", slot=self._reset, ink="muted"
        )
        self.reset.setAccessibleName(f"Reset {param.name}")
        self.reset.setToolTip(f"Back to the default: {value_text(param.default)}")
        self.reset.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        for widget in (self.label, self.error, self.reset):
            widget.setParent(form)
        policy = self.reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(policy)
        self.field.committed.connect(self._commit)
        if isinstance(self.field, TextField):
            self.field.typed.connect(self._check)

    def place(self, grid: QGridLayout, row: int) -> None:
        _place_row(grid, row, self.label, self.field, self.error)
        grid.addWidget(self.reset, row, 2)

    def remove(self, grid: QGridLayout) -> None:
        for widget in (self.label, self.field, self.reset, self.error):
            grid.removeWidget(widget)
            # A field that loses the focus while it is removed must not emit again.
            widget.blockSignals(True)
            widget.hide()
            widget.deleteLater()

    def show_value(self, value: ParamValue) -> None:
        if self._shown_once and _is_equal(value, self._value):
            return
        self._shown_once = True
        self._value = value
        self.field.show_value(value)
        self._show_error("")
        self._mark()

    def _mark(self) -> None:
        param = self._param
        changed = not param.required and not _is_equal(self._value, param.default)
        self.label.setProperty("changed", changed)
        # A property for the style sheet, which on X11 overrides a font set before the first show.
        self.label.style().unpolish(self.label)
        self.label.style().polish(self.label)
        self.reset.setVisible(changed)

    def _check(self, text: str) -> None:
        try:
            parse_value(self._param, text)
        except ValueError as error:
            self._show_error(str(error))
        else:
            self._show_error("")

    def _show_error(self, text: str) -> None:
        make.tell(self.error, text)
        if isinstance(self.field, TextField):
            self.field.set_faulty(bool(text))

    def _commit(self, entered: object) -> None:
        try:
            value = parse_value(self._param, entered)
        except ValueError as error:
            self._show_error(str(error))
            return
        if _is_equal(value, self._value):
            # The same value typed in another form (`1e-3` for `0.001`): write the usual form.
            self._shown_once = False
            self.show_value(value)
            return
        self.show_value(value)
        self._form.value_edited.emit(self._param.name, value)

    def _reset(self) -> None:
        self.show_value(self._param.default)
        self._form.value_edited.emit(self._param.name, self._param.default)


def _place_row(grid: QGridLayout, row: int, label: QWidget, field: QWidget, error: QWidget) -> None:
    grid.addWidget(label, row, 0)
    grid.addWidget(field, row, 1)
    grid.addWidget(error, row + 1, 0, 1, 3)


def _is_equal(left: ParamValue, right: ParamValue) -> bool:
    """Whether two values are equal and of one type: True is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right
