"""Colours, fonts and spacing of the light and the dark theme. Colours are named only here and in
`widgets.colormap`.

Each colour has one meaning in the whole program: storage, leaf, intermediate, gradient, error. They
are the colour-blind-safe palette of Okabe and Ito (2008), darkened or lightened for contrast on
each background.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication, QWidget

GRID = 8
"""The spacing unit in pixels."""

SANS, MONO = "Tensor Lab Sans", "Tensor Lab Mono"
"""The families in `assets/fonts`. A character that one lacks is taken from the other; MONO has all
mathematical signs."""

POINTS = 10.0

CHOSEN_ALPHA = 28
"""The strength of the colour "text" on what is lit because another view has chosen it. Accent is
the next node and the row with the focus, the gradient's colour what has run."""

_ASSETS = Path(__file__).resolve().parent.parent / "assets"


class Theme(Struct, frozen=True):
    name: str
    window: str
    surface: str
    raised: str
    canvas: str
    grid: str
    border: str
    text: str
    muted: str
    accent: str
    on_accent: str
    storage: str
    leaf: str
    intermediate: str
    gradient: str
    error: str
    warning: str
    success: str
    series: tuple[str, ...]

    @property
    def dark(self) -> bool:
        return self.name == "dark"

    def color(self, role: str, alpha: int = 255) -> QColor:
        """The colour of a role (a field of this class), with alpha 0 to 255."""
        color = QColor(getattr(self, role))
        color.setAlpha(alpha)
        return color


LIGHT = Theme(
    name="light",
    window="#f3f4f6",
    surface="#ffffff",
    raised="#ffffff",
    canvas="#fafbfc",
    grid="#e6e9ee",
    border="#d5d9e0",
    text="#1b1f27",
    muted="#5d6675",
    accent="#2f5fd0",
    on_accent="#ffffff",
    storage="#0072b2",
    leaf="#00805c",
    intermediate="#5b6b85",
    gradient="#b25a00",
    error="#c0311f",
    warning="#946200",
    success="#00805c",
    series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56a4d9"),
)

DARK = Theme(
    name="dark",
    window="#16191f",
    surface="#1d2129",
    raised="#262b35",
    canvas="#191c23",
    grid="#242933",
    border="#363d4a",
    text="#e6e9ef",
    muted="#9aa4b5",
    accent="#7aa2ff",
    on_accent="#10141c",
    storage="#56b4e9",
    leaf="#2fc39a",
    intermediate="#9fb0cc",
    gradient="#f0a04b",
    error="#ff7a68",
    warning="#f0c04b",
    success="#2fc39a",
    series=("#56b4e9", "#f0a04b", "#2fc39a", "#e39cc6", "#f0e442", "#8fb8ff"),
)


class _Notifier(QObject):
    changed = Signal()


notifier = _Notifier()
"""`notifier.changed` is emitted after a change of theme. Widgets that paint themselves repaint
then; Qt repaints all others."""

_current = LIGHT
_DRESSED = "dressed"  # a property of windows


def current() -> Theme:
    return _current


def sans_font(points: float = POINTS) -> QFont:
    """The font of the window, at a size in points."""
    return _font([SANS, MONO], points)


def mono_font(points: float = POINTS) -> QFont:
    """The font of code and numbers, at a size in points."""
    return _font([MONO, SANS], points)


def _font(families: list[str], points: float) -> QFont:
    """A font of the first of these families, drawn the same on every machine."""
    _load_fonts()
    font = QFont(families)
    font.setPointSizeF(points)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    font.setStyleStrategy(
        QFont.StyleStrategy.PreferAntialias | QFont.StyleStrategy.NoSubpixelAntialias
    )
    font.setFeature(QFont.Tag("tnum"), 1)  # digits of one width
    font.setFeature(QFont.Tag("calt"), 0)  # "->" stays as it was written
    return font


@cache
def _load_fonts() -> None:
    files = [path for path in (_ASSETS / "fonts").iterdir() if path.suffix in (".otf", ".ttf")]
    for path in sorted(files):
        if QFontDatabase.addApplicationFont(str(path)) < 0:
            raise OSError(f"{path} is not a font that Qt can read")


def apply(application: QApplication, theme: Theme) -> None:
    """Set font and palette of the application, style its windows, then emit `notifier.changed`.
    The style is Fusion, with which `app.application` makes the application.

    The font has POINTS, or more if the system's font is larger. The palette is set explicitly,
    because `QStyleHints.setColorScheme` does nothing on the offscreen platform.
    """
    global _current
    _current = theme
    application.setFont(sans_font(max(POINTS, application.font().pointSizeF())))
    application.setPalette(_palette(theme))
    fields = _field_palette(theme)
    for kind in _FIELDS:
        # PySide takes a str and refuses bytes here; its stub says the reverse.
        application.setPalette(fields, kind)  # pyright: ignore[reportArgumentType]
    for window in application.topLevelWidgets():
        if window.property(_DRESSED):
            dress(window)
    notifier.changed.emit()


def dress(window: QWidget) -> None:
    """Give a window, with all that is and will be in it, the theme's style sheet, now and after
    each change of theme.

    The application itself has no style sheet. With one, Qt compares every widget with its rules at
    each move to another parent, thus several times while a page is built.
    """
    window.setProperty(_DRESSED, True)
    window.setStyleSheet(_style_sheet(_current))


def _palette(theme: Theme) -> QPalette:
    palette = QPalette()
    roles = {
        QPalette.ColorRole.Window: "window",
        QPalette.ColorRole.WindowText: "text",
        QPalette.ColorRole.Base: "surface",
        QPalette.ColorRole.AlternateBase: "window",
        QPalette.ColorRole.ToolTipBase: "raised",
        QPalette.ColorRole.ToolTipText: "text",
        QPalette.ColorRole.Text: "text",
        QPalette.ColorRole.Button: "raised",
        QPalette.ColorRole.ButtonText: "text",
        QPalette.ColorRole.BrightText: "error",
        QPalette.ColorRole.Link: "accent",
        QPalette.ColorRole.Highlight: "accent",
        QPalette.ColorRole.HighlightedText: "on_accent",
        QPalette.ColorRole.PlaceholderText: "muted",
        QPalette.ColorRole.Mid: "border",
        QPalette.ColorRole.Light: "border",  # the line under tabs
        QPalette.ColorRole.Accent: "accent",
    }
    for role, name in roles.items():
        palette.setColor(role, theme.color(name))
    disabled = QPalette.ColorGroup.Disabled
    for role in (
        QPalette.ColorRole.WindowText,
        QPalette.ColorRole.Text,
        QPalette.ColorRole.ButtonText,
    ):
        palette.setColor(disabled, role, theme.color("muted", 150))
    return palette


_FIELDS = ("QLineEdit", "QPlainTextEdit", "QComboBox", "QAbstractSpinBox")


def _field_palette(theme: Theme) -> QPalette:
    """The palette of a field of text. Fusion draws outlines darker than the window: in the dark
    theme they would not be seen, so such a field's window counts as lighter."""
    palette = _palette(theme)
    if theme.dark:
        palette.setColor(QPalette.ColorRole.Window, theme.color("muted"))
    return palette


def _style_sheet(theme: Theme) -> str:
    icons = f"{_ASSETS.as_posix()}/icons"
    return f"""
    QToolTip {{ background: {theme.raised}; color: {theme.text};
                border: 1px solid {theme.border}; padding: 4px 6px; }}
    QTreeView::indicator, QTableView::indicator, QCheckBox::indicator {{
        width: 14px; height: 14px; border-radius: 3px;
        border: 1px solid {theme.muted}; background: {theme.surface}; }}
    QCheckBox::indicator:hover, QCheckBox::indicator:focus {{ border-color: {theme.accent}; }}
    QTreeView::indicator:checked, QTableView::indicator:checked, QCheckBox::indicator:checked {{
        background: {theme.accent}; border-color: {theme.accent};
        image: url("{icons}/check_{theme.name}.svg"); }}
    QCheckBox::indicator:disabled {{ border-color: {theme.border}; }}
    QCheckBox::indicator:checked:disabled {{ background: {theme.muted}; }}
    QScrollBar {{ background: transparent; border: none; margin: 0; }}
    QScrollBar:vertical {{ width: 10px; }}
    QScrollBar:horizontal {{ height: 10px; }}
    QScrollBar::handle {{ background: {theme.border}; border-radius: 3px; margin: 2px; }}
    QScrollBar::handle:vertical {{ min-height: 32px; }}
    QScrollBar::handle:horizontal {{ min-width: 32px; }}
    QScrollBar::handle:hover {{ background: {theme.muted}; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: none; }}
    QAbstractScrollArea::corner {{ background: transparent; border: none; }}
    QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
    QDockWidget {{ titlebar-close-icon: url("{icons}/close_{theme.name}.svg");
        titlebar-normal-icon: url("{icons}/float_{theme.name}.svg"); }}
    QSplitter::handle {{ background: {theme.border}; }}
    QSplitter::handle:horizontal {{ width: 1px; }}
    QSplitter::handle:vertical {{ height: 1px; }}
    QLabel[role="muted"] {{ color: {theme.muted}; }}
    QLabel[role="error"] {{ color: {theme.error}; }}
    QLabel[role="warning"] {{ color: {theme.warning}; }}
    QLabel[changed="true"] {{ font-weight: bold; }}
    QLabel[role="success"] {{ color: {theme.success}; }}
    QLabel[role="heading"] {{ font-weight: 600; }}
    QLabel[role="title"] {{ font-size: 18pt; font-weight: 600; }}
    QFrame[role="card"] {{ background: {theme.surface}; border: 1px solid {theme.border};
                           border-radius: 6px; }}
    QPushButton[role="primary"] {{ background: {theme.accent}; color: {theme.on_accent};
        border: none; border-radius: 4px; padding: 6px 16px; font-weight: 600; }}
    QPushButton[role="line"] {{ text-align: left; padding: 3px 4px; }}
    QPushButton[role="primary"]:disabled {{ background: {theme.border}; color: {theme.muted}; }}
    """
