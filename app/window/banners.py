"""Messages at the top of the window, which stay until they are answered. None is a modal dialog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QFrame,
    QPushButton,
    QWidget,
)

from widgets import make, theme
from widgets.icons import icon
from widgets.theme import GRID

Tone = Literal["accent", "warning", "error", "success"]
_ICONS = {
    "accent": "mdi6.information-outline",
    "warning": "mdi6.alert-outline",
    "error": "mdi6.alert-octagon-outline",
    "success": "mdi6.check-circle-outline",
}

CODE_LINES = 8
"""The most lines of code that are in sight; the others are scrolled to."""

Choice = tuple[str, str, Callable[[], object]]
"""A button: its text, its tooltip, its function. Pressing it also closes the banner."""


class BannerArea(QWidget):
    """Banners under each other, one per key: a new banner replaces the old one with its key."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("banners")
        self._layout = make.column(on=self, gap=0)
        self._banners: dict[str, Banner] = {}
        self.hide()

    def show_banner(
        self,
        key: str,
        tone: Tone,
        title: str,
        text: str = "",
        choices: Sequence[Choice] = (),
        detail: str = "",
        code: str = "",
        code_title: str = "Python that will run",
    ) -> None:
        """Show a banner with `title` and `text`; `detail` (a log) becomes its tooltip. `code` is
        shown below: Python that a choice will run, or what `code_title` says."""
        self.dismiss(key)
        banner = Banner(tone, title, text, choices, detail, lambda: self.dismiss(key), self)
        if code:
            banner.show_code(code, code_title)
        banner.setObjectName(f"banner_{key}")
        self._banners[key] = banner
        self._layout.addWidget(banner)
        self.show()

    def dismiss(self, key: str) -> None:
        banner = self._banners.pop(key, None)
        if banner is not None:
            self._layout.removeWidget(banner)
            banner.hide()
            banner.deleteLater()
        self.setVisible(bool(self._banners))

    def banner(self, key: str) -> Banner | None:
        return self._banners.get(key)


class Banner(QFrame):
    def __init__(
        self,
        tone: Tone,
        title: str,
        text: str,
        choices: Sequence[Choice],
        detail: str,
        dismiss: Callable[[], None],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._tone: Tone = tone
        self.title, self.text = title, text
        self.setAccessibleName(f"{title}. {text}")
        self.setToolTip(detail)
        self._icon = make.label()
        words = make.text("", wrap=True, width="any")  # no word makes the window wider
        words.setText(f"{title}\n{text}" if text else title)
        close = make.tool_button("banner_close", "mdi6.close", "Close this message.", dismiss)
        buttons = [self._button(number, *choice, dismiss) for number, choice in enumerate(choices)]
        parts = (self._icon, (words, 1), *buttons, close)
        self._layout = make.column(make.row(*parts), on=self, margins=(2 * GRID, GRID, GRID, GRID))
        self._paint()
        theme.notifier.changed.connect(self._paint)

    def show_code(self, code: str, title: str) -> None:
        from widgets.model.code_editor import CodeEditor  # few banners need it: start without

        shown = CodeEditor("banner_code", title, f"{title}.")
        shown.setPlainText(code)
        self._layout.addWidget(shown)  # in the window, its scroll bar has its height
        lines = min(code.count("\n") + 1, CODE_LINES)
        margins = 2 * round(shown.document().documentMargin())
        bar = shown.horizontalScrollBar().sizeHint().height()
        shown.setFixedHeight(lines * shown.fontMetrics().lineSpacing() + margins + bar)

    def _button(self, index, label, tip, act, dismiss) -> QPushButton:
        def press() -> None:
            dismiss()
            act()

        name = "banner_" + label.lower().replace(" ", "_")
        button = make.button(name, label, slot=press, tip=tip, primary=index == 0)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        return button

    def _paint(self) -> None:
        color = theme.current().color(self._tone)
        rgba = f"rgba({color.red()}, {color.green()}, {color.blue()}"
        self._icon.setPixmap(icon(_ICONS[self._tone], self._tone).pixmap(20, 20))
        self.setStyleSheet(
            f"Banner {{ background: {rgba}, 28); border: none;"
            f" border-bottom: 1px solid {rgba}, 110); }}"
        )
