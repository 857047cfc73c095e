"""The card over the window, and the dialogs beside it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QToolButton, QWidget

from app.window.card import Card
from app.window.export_dialog import ExportDialog
from app.window.weights_panel import WeightsPanel
from engine.project.document import replace
from engine.protocol import FitSnapshot, KeyFit
from widgets.theme import GRID


@pytest.fixture
def window(qtbot) -> QWidget:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(1000, 700)
    window.show()
    return window


def test_a_card_stays_at_the_lower_right_until_it_is_closed(window, qapp) -> None:
    card = Card("note", "Close the note", window)
    assert card.isHidden()
    card.setLayout(card.head)
    card.title.setText("A note")
    over = QWidget(window)
    over.setGeometry(window.rect())
    over.show()
    card.show_card()
    for size in ((1000, 700), (900, 600)):
        window.resize(*size)
        qapp.processEvents()
        assert card.isVisible() and card.width() == 640
        right, bottom = card.x() + card.width(), card.y() + card.height()
        assert (right, bottom) == (size[0] - 3 * GRID, size[1] - 6 * GRID)
    assert window.childAt(card.geometry().center()) in (card, card.title)
    assert card.hasFocus()
    QTest.keyClick(card, Qt.Key.Key_A)
    assert card.isVisible()
    QTest.keyClick(card, Qt.Key.Key_Escape)
    assert card.isHidden()
    card.show_card()
    close = card.findChild(QToolButton, "note_close")
    assert (close.accessibleName(), close.toolTip()) == ("Close the note", "Close (Esc).")
    close.click()
    assert card.isHidden()


KEYS = tuple(KeyFit(f"w{n}", (2,), (3,)) for n in range(2))
FIT = FitSnapshot(
    path="/x/w.pt", title="net", matched=1_234, loaded=False, counts=(2, 0, 0), missing=KEYS,
)  # fmt: skip


def shown(panel: WeightsPanel) -> tuple[str, str, str, bool]:
    words = panel.findChild(QLabel, "weights_words")
    assert words is not None
    said = words.text() if words.isVisible() else ""
    names = panel.names.toPlainText() if panel.names.isVisible() else ""
    return panel.title.text(), said, names, panel.load.isVisible()


def test_weights_that_do_not_fit_are_listed_before_they_are_loaded(window) -> None:
    panel = WeightsPanel(window)
    panel.show_fit(FIT)
    assert shown(panel) == (
        "w.pt: 1,234 of 1,236 tensors of net", "Nothing is loaded yet.",
        "2 missing in the file:\n  w0  (2,)\n  w1  (2,)", True,
    )  # fmt: skip
    assert panel.load.text() == "Load what fits" and panel.load.isEnabled()
    assert panel.load.toolTip() == "Copy 1,234 tensors into net."
    panel.show_fit(
        replace(
            FIT, counts=(1, 1_002, 3), missing=KEYS[:1], unexpected=KEYS, misshapen=KEYS,
            renaming="Without module", loaded=True,
        )
    )  # fmt: skip
    assert shown(panel) == (
        "w.pt: 1,234 of 1,238 tensors loaded into net", "Without module.",
        "1 missing in the file:\n  w0  (2,)\n"
        "3 of another shape:\n  w0  (2,), the subject has (3,)\n"
        "  w1  (2,), the subject has (3,)\n  and 1 more\n"
        "1,002 not in the subject:\n  w0  (2,)\n  w1  (2,)\n  and 1,000 more", False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "matched", "words", "can_load"),
    [
        ((0, 0, 0), 3, "Load with these names", True),
        ((0, 2, 0), 3, "Load with these names", True),
        ((1, 0, 0), 1, "Load what fits", True),
        ((0, 0, 1), 0, "Load what fits", False),
    ],
)
def test_what_fits_can_be_loaded(window, qtbot, counts, matched, words, can_load) -> None:
    panel = WeightsPanel(window)
    panel.show_fit(replace(FIT, counts=counts, missing=(), matched=matched, renaming="As is"))
    assert shown(panel)[1] == "As is. Nothing is loaded yet."
    assert panel.names.isVisible() == any(counts)
    assert panel.load.text() == words and panel.load.isEnabled() == can_load
    if can_load:
        with qtbot.waitSignal(panel.load_requested):
            panel.load.click()
        assert panel.isHidden()


def test_the_export_dialog_opens_beside_the_window(window) -> None:
    dialog = ExportDialog(window)
    assert dialog.size().toTuple() == (920, 680) and not dialog.isModal()
    dialog.open_beside()
    assert dialog.isVisible()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
