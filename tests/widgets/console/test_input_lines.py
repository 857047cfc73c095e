"""The lines of the transcript's cells: what a click tells, and which are lit."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from tests.pictures import assert_same_picture
from widgets import theme
from widgets.console.transcript import Transcript


@pytest.fixture
def transcript(qtbot) -> Transcript:
    view = Transcript()
    qtbot.addWidget(view)
    view.resize(360, 160)
    with qtbot.waitExposed(view):
        view.show()
    first = view.add_input("x = torch.ones(2)\ny = x * 3")
    view.lines.name(first, "<cell 1>", 1)
    view.add_output("stdout", "y = x * 3\n")
    second = view.add_input("loss = y.sum()")
    view.lines.name(second, "train.py", 12)
    view.add_input("running = 1")
    return view


def click(qtbot, view: Transcript, number: int) -> None:
    block = view.document().findBlockByNumber(number)
    at = view.blockBoundingGeometry(block).translated(view.contentOffset()).center().toPoint()
    at.setX(20)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)


def lit(view: Transcript) -> list[str]:
    return [block.text() for block in view.lines.lit()]


def test_a_click_tells_the_line_of_its_cell(transcript, qtbot) -> None:
    told: list[tuple[str, int]] = []
    transcript.line_chosen.connect(lambda file, line: told.append((file, line)))
    texts = transcript.toPlainText().split("\n")
    for number in range(len(texts)):
        click(qtbot, transcript, number)
    # Neither output, though it has the text of a line, nor a cell that still runs.
    assert told == [("<cell 1>", 1), ("<cell 1>", 2), ("train.py", 12)]


def test_lines_are_lit_also_after_a_change_of_theme(transcript, qapp) -> None:
    transcript.lines.light([("<cell 1>", 2), ("train.py", 12), ("<cell 9>", 1)])
    assert lit(transcript) == ["y = x * 3", "loss = y.sum()"]
    assert len(transcript.extraSelections()) == 2
    assert_same_picture(transcript, "transcript_chosen")
    theme.apply(qapp, theme.DARK)
    assert lit(transcript) == ["y = x * 3", "loss = y.sum()"]
    marked = [mark.cursor.block().text() for mark in transcript.extraSelections()]
    assert marked == lit(transcript)
    theme.apply(qapp, theme.LIGHT)
    transcript.lines.light(())
    assert lit(transcript) == [] and transcript.extraSelections() == []


def test_what_is_gone_is_neither_told_nor_lit(transcript) -> None:
    transcript.lines.light([("<cell 1>", 1)])
    for number in range(6_000):
        transcript.add_output("stdout", f"{number}\n")
    assert lit(transcript) == []
    transcript.clear()
    entry = transcript.add_input("x = 1")
    assert lit(transcript) == []
    transcript.lines.name(entry, "<cell 1>", 1)
    assert lit(transcript) == ["x = 1"]  # it is chosen still
    transcript.lines.forget()
    assert lit(transcript) == [] and transcript.lines.at(transcript.document().begin()) is None
