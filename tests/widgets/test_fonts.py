"""The program's own faces: every character it shows comes from them, whatever the machine has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QFont, QFontInfo, QFontMetricsF, QRawFont, QTextLayout

from widgets import theme

ROOT = Path(__file__).parents[2]
OURS = {theme.SANS, theme.MONO}
MATHEMATICS = (
    "∂∇∑∏∫√∞±−×÷⋅·⊙⊗⊕≤≥≠≈≡∈∉∀∃→←↔⇒↦⟨⟩‖ℝᵀᵢⱼₖₙⁿ⁰¹²³⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉αβγδεζηθλμνξπρστφχψωΓΔΘΛΣΦΨΩ"
)
FONTS = {"sans": theme.sans_font, "mono": theme.mono_font}


@pytest.fixture(scope="module")
def shown_characters() -> str:
    """All printable characters in the program's sources and its data, and the mathematical ones."""
    found = set(MATHEMATICS) | {chr(code) for code in range(32, 127)}
    for folder in ("app", "widgets", "engine", "assets"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".json", ".tlab", ".md", ".txt"):
                found |= set(path.read_text(encoding="utf-8"))
    return "".join(sorted(character for character in found if character.isprintable()))


@pytest.mark.parametrize("font", FONTS)
def test_every_character_that_the_program_shows_is_drawn_with_its_own_faces(
    qapp, shown_characters, font
):
    assert len(shown_characters) > 150
    foreign = {}
    for bold in (False, True):
        for character in shown_characters:
            face = FONTS[font]()
            face.setBold(bold)
            layout = QTextLayout(character, face)
            layout.beginLayout()
            layout.createLine()
            layout.endLayout()
            for run in layout.glyphRuns():
                if run.rawFont().familyName() not in OURS or 0 in run.glyphIndexes():
                    foreign[character] = run.rawFont().familyName()
    assert not foreign


def test_the_monospace_has_full_mathematical_coverage(qapp, shown_characters):
    raw = QRawFont.fromFont(theme.mono_font())
    assert raw.familyName() == theme.MONO
    assert [c for c in shown_characters if not raw.supportsCharacter(ord(c))] == []
    metrics = QFontMetricsF(theme.mono_font())
    assert {round(metrics.horizontalAdvance(c), 3) for c in MATHEMATICS} == {
        round(metrics.horizontalAdvance("0"), 3)
    }


def test_the_window_uses_the_sans_with_digits_of_one_width_and_no_ligatures(qapp):
    assert QFontInfo(qapp.font()).family() == theme.SANS
    metrics = QFontMetricsF(qapp.font())
    assert len({metrics.horizontalAdvance(digit) for digit in "0123456789"}) == 1
    arrow = metrics.horizontalAdvance("-") + metrics.horizontalAdvance(">")
    assert metrics.horizontalAdvance("->") == pytest.approx(arrow, abs=0.5)


def test_letters_that_the_system_made_larger_stay_larger_and_small_ones_grow(qapp):
    before = qapp.font()
    for asked, given in ((9, 10), (10, 10), (14, 14)):
        qapp.setFont(QFont("any", asked))
        theme.apply(qapp, theme.current())
        assert qapp.font().pointSizeF() == given
    qapp.setFont(before)


def test_the_program_needs_no_font_of_the_machine():
    code = (
        "from PySide6.QtGui import QFontDatabase, QFontInfo\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from widgets import theme\n"
        "qt = QApplication([])\n"
        "print(sorted(QFontDatabase.families()))\n"
        "theme.apply(qt, theme.LIGHT)\n"
        "print(QFontInfo(qt.font()).family(), '/', QFontInfo(theme.mono_font()).family())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names_for_none = ["Monospace", "Sans Serif", "Serif"]  # Qt's own, with no font behind them
    assert done.stdout == f"{names_for_none}\n{theme.SANS} / {theme.MONO}\n"


def test_every_face_has_its_licence_beside_it():
    folder = ROOT / "assets" / "fonts"
    for face in folder.glob("*.[ot]tf"):
        kind = face.name.split("-")[0]
        assert "Copyright" in (folder / f"{kind}-LICENSE.txt").read_text(encoding="utf-8")
