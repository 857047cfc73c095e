"""Notes about the user's code, in the console's transcript and beside a run."""

from __future__ import annotations

from typing import get_args

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QToolButton, QWidget

from engine.project.document import replace
from engine.protocol import Finding
from engine.protocol.advice_snapshots import FindingKind
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets import make, theme
from widgets.advice.kinds import KINDS
from widgets.advice.note import FindingNote
from widgets.advice.note_list import FindingList
from widgets.console.transcript import Transcript

BROADCAST = Finding(
    "broadcast",
    "`F.mse_loss` stretches prediction (16, 1) and target (16,) to (16, 16): it compares each"
    " prediction with every target, not only with its own.",
    ("prediction (16, 1)", "target (16,)", "compared: (16, 16), that is 256 pairs in place of 16"),
    "loss = F.mse_loss(net(x), y.unsqueeze(-1))",
    "<cell 2>",
    3,
)
ZERO_GRAD = Finding("zero_grad", "Gradients add up.", ("norm 1, then 2",), "optimizer.zero_grad()")


@pytest.fixture
def transcript(qtbot) -> Transcript:
    view = Transcript()
    qtbot.addWidget(view)
    view.resize(720, 320)
    view.show()
    view.add_input("loss = F.mse_loss(net(x), y)\nloss.backward()")
    view.add_output("stdout", "done\n")
    return view


def notes(transcript: Transcript) -> list[FindingNote]:
    QGuiApplication.processEvents()  # they are laid out
    return transcript.notes()


def click(note: FindingNote, name: str) -> None:
    button = note.findChild(QToolButton, name)
    assert isinstance(button, QToolButton)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def words(note: FindingNote, name: str) -> str:
    label = note.findChild(QLabel, name)
    assert isinstance(label, QLabel)
    return label.text()


def test_a_note_is_one_line_that_opens_to_evidence_and_fix(transcript, qapp):
    transcript.add_finding(BROADCAST)
    transcript.add_output("stdout", "more\n")
    (note,) = notes(transcript)
    line = note.fontMetrics().lineSpacing()
    closed, lines = note.height(), transcript.blockCount()
    assert closed < 2.5 * line
    assert words(note, "finding_text").startswith("Line 3: `F.mse_loss` stretches")
    assert words(note, "finding_text").endswith("…")
    click(note, "finding_open")
    qapp.processEvents()
    assert note.is_open and note.height() > closed + 4 * line
    assert transcript.blockCount() > lines  # the text below has made room
    assert words(note, "finding_text") == f"Line 3: {BROADCAST.text}"
    assert words(note, "finding_evidence").split("\n") == [f"• {e}" for e in BROADCAST.evidence]
    assert words(note, "finding_fix") == BROADCAST.fix
    click(note, "finding_copy")
    assert QGuiApplication.clipboard().text() == BROADCAST.fix
    click(note, "finding_open")
    qapp.processEvents()
    assert (note.height(), transcript.blockCount()) == (closed, lines)
    assert transcript.toPlainText().rstrip().endswith("more")


def test_a_note_that_opens_below_the_edge_is_brought_in_sight(transcript, qapp):
    transcript.resize(720, 120)
    transcript.add_finding(BROADCAST)
    (note,) = notes(transcript)
    click(note, "finding_open")
    qapp.processEvents()
    room = transcript.viewport().height()
    assert note.height() < room and note.y() >= 0 and note.geometry().bottom() < room
    transcript.resize(720, 60)
    note.set_open(False)
    note.set_open(True)
    qapp.processEvents()
    line = transcript.fontMetrics().lineSpacing()
    assert note.height() > transcript.viewport().height() and 0 <= note.y() < line  # its head stays


def test_an_open_note_covers_no_text(transcript, qapp):
    transcript.add_finding(BROADCAST)
    transcript.add_output("stdout", "more\n")
    (note,) = notes(transcript)
    for width in (720, 420):
        transcript.resize(width, 320)
        note.set_open(True)
        qapp.processEvents()
        below = transcript.document().findBlockByNumber(transcript.blockCount() - 2)
        assert below.text() == "more"
        top = transcript.blockBoundingGeometry(below).translated(transcript.contentOffset()).top()
        assert note.geometry().bottom() <= top


def test_a_note_that_is_dismissed_leaves_no_lines(transcript, qapp):
    lines = transcript.blockCount()
    transcript.add_finding(BROADCAST)
    transcript.add_finding(ZERO_GRAD)
    first, second = notes(transcript)
    click(first, "finding_dismiss")
    assert notes(transcript) == [second]
    click(second, "finding_dismiss")
    assert notes(transcript) == [] and transcript.blockCount() == lines
    assert transcript.toPlainText().rstrip().endswith("done")


def test_muting_asks_for_the_kind_and_drops_all_of_it(transcript, qtbot):
    for finding in (BROADCAST, ZERO_GRAD, BROADCAST):
        transcript.add_finding(finding)
    with qtbot.waitSignal(transcript.finding_muted) as muted:
        click(notes(transcript)[0], "finding_mute")
    assert muted.args == ["broadcast"]
    transcript.drop_findings("broadcast")
    assert [note.finding for note in notes(transcript)] == [ZERO_GRAD]


def test_a_note_stays_open_in_another_theme(transcript, qapp):
    transcript.add_finding(BROADCAST)
    notes(transcript)[0].set_open(True)
    theme.apply(qapp, theme.DARK)
    try:
        (note,) = notes(transcript)
        assert note.is_open
    finally:
        theme.apply(qapp, theme.LIGHT)


def test_notes_beside_a_run_take_room_only_if_there_are_some(qtbot):
    beside = FindingList()
    qtbot.addWidget(beside)
    assert beside.isHidden()
    beside.add(BROADCAST)
    beside.add(ZERO_GRAD)
    assert [note.finding for note in beside.notes()] == [BROADCAST, ZERO_GRAD]
    beside.drop("broadcast")
    assert [note.finding for note in beside.notes()] == [ZERO_GRAD]
    click(beside.notes()[0], "finding_dismiss")
    assert beside.notes() == [] and beside.isHidden()


def test_words_of_a_note_of_each_kind(qtbot):
    assert KINDS.keys() == set(get_args(FindingKind))
    beside = FindingList()
    qtbot.addWidget(beside)
    for kind in KINDS:
        beside.add(replace(ZERO_GRAD, kind=kind))
    assert_same_words(beside, "finding_list")


def test_picture_of_notes_beside_a_run(qtbot, qapp):
    beside = FindingList()
    qtbot.addWidget(beside)
    for finding in (BROADCAST, ZERO_GRAD):
        beside.add(finding)
    beside.add(replace(ZERO_GRAD, fix=f"{ZERO_GRAD.fix}  # " + "before loss.backward() " * 4))
    beside.notes()[-1].set_open(True)
    view = make.page(beside, (QWidget(), 1), margins=0)
    qtbot.addWidget(view)
    view.resize(480, 200)
    view.move(600, 400)  # the pointer lies at the screen's corner: no button is under it
    view.show()
    qapp.processEvents()
    fix = beside.notes()[-1].findChild(QLabel, "finding_fix")
    assert fix.height() == fix.heightForWidth(fix.width())  # all of its lines show
    assert_same_picture(view, "finding_list")


def test_picture_of_notes_in_the_console(transcript, qapp):
    transcript.add_finding(BROADCAST)
    transcript.add_finding(ZERO_GRAD)
    notes(transcript)[0].set_open(True)
    transcript.add_output("result", "tensor(1.5)\n")
    qapp.processEvents()
    assert_same_picture(transcript, "console_notes")
