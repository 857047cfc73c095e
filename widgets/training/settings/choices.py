"""Fields that the parts of the training form share: choices, and values of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox

from engine.project.catalogue import Param
from engine.project.document import ParamValue
from widgets.fields import value_text


class Choice(QComboBox):
    """A combo box that ignores the mouse wheel, which scrolls the form."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def show_choice(box: QComboBox, key: str) -> None:
    """Show `key`; add it if it is not among the choices."""
    with QSignalBlocker(box):
        if box.findData(key) < 0:
            box.addItem(key, key)
        box.setCurrentIndex(box.findData(key))


def with_value(
    schema: Sequence[Param], params: Mapping[str, ParamValue], name: str, value: ParamValue
) -> dict[str, ParamValue]:
    """`params` with one value set; a value equal to the default is left out."""
    default = next(param.default for param in schema if param.name == name)
    rest = {n: v for n, v in params.items() if n != name}
    return rest if value == default else {**rest, name: value}


def set_text(name: str, value: ParamValue) -> str:
    return f"Set {name.replace('_', ' ')} to {value_text(value)}"
