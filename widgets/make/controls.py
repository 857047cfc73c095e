"""Words and controls in one call each: named, labelled, with a tooltip and an accessible name.

A control's accessible name is its text unless another is given; a button without a text is called
by the first words of its tooltip. Classes of Qt that the first page lacks are written as
`QtWidgets.QSpinBox`: PySide makes each class, with its enums, when it is first named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, TypeVar

from PySide6 import QtGui, QtWidgets
from PySide6.QtCore import QObject, QPoint, Qt, Signal, SignalInstance
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from widgets.icons import set_icon
from widgets.theme import mono_font

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractItemView, QProgressBar

Slot = Callable[..., object] | SignalInstance
"""What a click calls, without arguments, or a signal that it emits."""
W = TypeVar("W", bound=QWidget)


def named(widget: W, name: str, accessible: str = "", tip: str = "") -> W:
    """Give a widget its object name, accessible name and tooltip; empty ones are left alone."""
    widget.setObjectName(name)
    if accessible:
        widget.setAccessibleName(accessible)
    if tip:
        widget.setToolTip(tip)
    return widget


# -- words -----------------------------------------------------------------------------------------


def label(
    text: str = "",
    role: str = "",
    name: str = "",
    *,
    tip: str = "",
    wrap: bool = False,
    of: QWidget | None = None,
) -> QLabel:
    """Words of the program. `role` is one of the style sheet's: muted, heading, error, title.
    `of` is the field that the words stand before."""
    made = named(QLabel(text), name, tip=tip)
    made.setWordWrap(wrap)
    if role:
        made.setProperty("role", role)
    if of is not None:
        made.setBuddy(of)
    return made


def empty(text: str, name: str = "") -> QLabel:
    """What to do where there is nothing to show yet, in the middle of the place."""
    made = label(text, "muted", name, wrap=True)
    made.setAlignment(Qt.AlignmentFlag.AlignCenter)
    return made


def text(
    name: str,
    role: str = "",
    *,
    tip: str = "",
    wrap: bool = False,
    mono: int = 0,
    width: Literal["own", "rest", "any"] = "rest",
) -> QLabel:
    """Plain text that is shown later and can be selected, monospace with `mono` points.

    `width` says how wide it wants to be: its `own` text's width, the `rest` of the row (it asks
    for nothing), or its own where there is room and less (`any`) where there is not.
    """
    made = label("", role, name, tip=tip, wrap=wrap)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if mono:
        made.setFont(mono_font(mono))
    if width == "rest":
        made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    elif width == "any":
        made.setMinimumWidth(1)
    return made


def paragraph(name: str, role: str = "") -> QLabel:
    """Plain text that wraps, and can be selected by mouse and keys."""
    made = text(name, role, wrap=True, width="own")
    keys = Qt.TextInteractionFlag.TextSelectableByKeyboard
    made.setTextInteractionFlags(made.textInteractionFlags() | keys)
    return made


def progress(bar: QProgressBar, done: int, total: int) -> None:
    """Show how far it is. It is painted with the rest of the window; by itself, QProgressBar paints
    at once, and with it all that waits to be painted."""
    bar.setUpdatesEnabled(False)
    bar.setRange(0, total)
    bar.setValue(done)
    bar.setUpdatesEnabled(True)


def tell(shown: QLabel, text: str) -> None:
    """Show a text; a label without one is hidden."""
    shown.setText(text)
    shown.setVisible(bool(text))


def set_role(shown: QLabel, role: str) -> None:
    """Give a label another role of the style sheet's."""
    if shown.property("role") != role:
        shown.setProperty("role", role)
        shown.style().unpolish(shown)
        shown.style().polish(shown)


# -- controls --------------------------------------------------------------------------------------


def button(
    name: str,
    text: str,
    icon: str = "",
    slot: Slot | None = None,
    *,
    tip: str = "",
    accessible: str = "",
    primary: bool = False,
    ink: str = "",
) -> QPushButton:
    """A button. The `primary` one of a view is filled with the accent colour; `ink` is the role of
    the icon's colour."""
    made = named(QPushButton(text), name, accessible or text, tip)
    if primary:
        made.setProperty("role", "primary")
    if icon:
        set_icon(made, icon, ink or ("on_accent" if primary else "text"))
    if slot is not None:
        _connect(made, slot)
    return made


def tool_button(
    name: str,
    icon: str = "",
    tip: str = "",
    slot: Slot | None = None,
    *,
    text: str = "",
    accessible: str = "",
    framed: bool = False,
    toggled: Callable[[bool], object] | None = None,
    ink: str = "text",
) -> QToolButton:
    """A small button: an icon, a text, or both side by side. With `toggled` it stays pressed, and
    tells so. It has a frame only under the pointer, unless it is `framed`."""
    spoken = accessible or text or first_words(tip)
    made = named(QToolButton(autoRaise=not framed), name, spoken, tip)
    made.setText(text)
    if icon:
        set_icon(made, icon, ink)
    if icon and text:
        made.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    if slot is not None:
        _connect(made, slot)
    if toggled is not None:
        made.setCheckable(True)
        made.toggled.connect(toggled)
    return made


def fold(name: str, text: str, tip: str, body: QWidget, *, accessible: str = "") -> QToolButton:
    """A button with an arrow: `body` is shown while it is checked. It is closed at first."""

    def show(is_open: bool) -> None:
        body.setVisible(is_open)
        button.setArrowType(Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow)

    button = tool_button(name, text=text, tip=tip, toggled=show, accessible=accessible)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    show(False)
    return button


def _connect(button: QPushButton | QToolButton, slot: Slot) -> None:
    # Qt passes whether the button is checked; the lambda drops this argument.
    button.clicked.connect(slot if isinstance(slot, SignalInstance) else lambda: slot())


def first_words(tip: str) -> str:
    """A tooltip up to its first colon or full stop."""
    return re.split(r"[:.](?:\s|$)", tip, maxsplit=1)[0]


def menu(button: QPushButton | QToolButton, *, accessible: str = "", tips: bool = False) -> QMenu:
    """The menu that a button opens. With `tips` its actions show their tooltips."""
    made = QMenu(button)
    made.setAccessibleName(accessible)
    made.setToolTipsVisible(tips)
    button.setMenu(made)
    if isinstance(button, QToolButton):
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    return made


class _Menus(QObject):
    opened = Signal(QMenu, QWidget)


menus = _Menus()
"""`menus.opened(menu, owner)`: a context menu is about to open; more entries can be added."""


def context_menu(owner: QWidget) -> QMenu:
    """A menu to fill and to `pop_up`; it deletes itself when it is closed."""
    made = QMenu(owner)
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return made


def pop_up(menu: QMenu, where: QPoint) -> None:
    """Open a context menu at a point of the screen, unless nothing is in it."""
    menus.opened.emit(menu, menu.parentWidget())
    if menu.isEmpty():
        menu.deleteLater()
    else:
        menu.popup(where)


def give_menu(view: QAbstractItemView) -> None:
    """Give a list, table or tree a context menu of what others add to it (see `menus`). Qt selects
    the row under the cursor first."""

    def open_menu(at: QPoint) -> None:
        menu = context_menu(view)
        menu.addActions(view.actions())
        pop_up(menu, view.viewport().mapToGlobal(at))

    view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
    view.customContextMenuRequested.connect(open_menu)


def action(
    menu: QMenu, text: str, slot: Callable[[], object], *, name: str = "", tip: str = ""
) -> QAction:
    """An action at the end of a menu."""
    made = menu.addAction(text, slot)
    made.setObjectName(name)
    if tip:
        made.setToolTip(tip)
    return made


def check(name: str, text: str, tip: str = "", *, checked: bool = False) -> QtWidgets.QCheckBox:
    """A box to tick."""
    made = named(QtWidgets.QCheckBox(text), name, tip=tip)
    made.setChecked(checked)
    return made


def combo(
    name: str,
    accessible: str,
    tip: str = "",
    choices: Iterable[tuple[str, object] | tuple[str, object, str]] = (),
) -> QComboBox:
    """A choice among (text, data, tooltip)."""
    made = named(QComboBox(), name, accessible, tip)
    add_choices(made, choices)
    return made


def add_choices(
    box: QComboBox, choices: Iterable[tuple[str, object] | tuple[str, object, str]]
) -> None:
    """Add (text, data, tooltip) to a combo box."""
    for text, data, *tip in choices:
        box.addItem(text, data)
        if tip:
            box.setItemData(box.count() - 1, tip[0], Qt.ItemDataRole.ToolTipRole)


def field(
    name: str,
    accessible: str,
    tip: str = "",
    *,
    placeholder: str = "",
    mono: bool = False,
    entered: Slot | None = None,
) -> QLineEdit:
    """A line to type in; Enter calls `entered`."""
    made = named(QLineEdit(), name, accessible, tip)
    made.setPlaceholderText(placeholder)
    if mono:
        made.setFont(mono_font())
    if entered is not None:
        made.returnPressed.connect(entered)
    return made


def spin(
    name: str, accessible: str, tip: str = "", *, low: int = 0, high: int = 99, value: int = 0
) -> QtWidgets.QSpinBox:
    """A whole number from `low` to `high`."""
    made = named(QtWidgets.QSpinBox(), name, accessible, tip)
    made.setRange(low, high)
    made.setValue(value)
    return made


def shortcut(
    keys: QKeySequence | QKeySequence.StandardKey | Qt.Key,
    scope: QWidget,
    slot: Slot,
    *,
    inside: bool = False,
) -> QtGui.QShortcut:
    """Keys that act while `scope` has the focus; with `inside`, also while a widget in it has."""
    made = QtGui.QShortcut(QKeySequence(keys), scope)
    made.setContext(
        Qt.ShortcutContext.WidgetWithChildrenShortcut
        if inside
        else Qt.ShortcutContext.WidgetShortcut
    )
    made.activated.connect(slot)
    return made
