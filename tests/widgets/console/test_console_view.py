"""The console by keys and clicks; what the engine would answer is handed in."""

from __future__ import annotations

import stat

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QDesktopServices, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from engine.protocol import (
    Completion,
    CompletionsSnapshot,
    ErrorReport,
    FailedOperands,
    OutputPiece,
    OutputSnapshot,
    OutputTailSnapshot,
)
from tests.pictures import assert_same_picture
from tests.widgets.failed_operands import OPERANDS
from widgets import theme
from widgets.console.code_input import is_complete
from widgets.console.console_view import ConsoleView
from widgets.console.history import MAX_ENTRIES, History
from widgets.console.output_tail import LeftOutNote
from widgets.console.transcript import MAX_LINE_CHARACTERS, MAX_LINES


@pytest.fixture
def console(qtbot):
    view = ConsoleView()
    qtbot.addWidget(view)
    view.resize(800, 400)
    view.show()
    view.input.setFocus()
    view.asked = []
    view.run_requested.connect(lambda source, filename: view.asked.append((source, filename)))
    return view


def type_(console, text: str) -> None:
    QTest.keyClicks(console.input, text)


def press(console, key, modifier=Qt.KeyboardModifier.NoModifier) -> None:
    QTest.keyClick(console.input, key, modifier)


def said(console) -> str:
    return console.output.toPlainText()


# -- Enter ---------------------------------------------------------------------------------------


def test_enter_runs_a_complete_line_and_empties_the_input(console):
    type_(console, "x = 1")
    press(console, Qt.Key.Key_Return)
    assert console.asked == [("x = 1", "<cell>")]
    assert (console.input.source(), console.busy) == ("", True)
    assert said(console).startswith("x = 1")


def test_enter_goes_on_with_a_block_indents_it_and_an_empty_line_ends_it(console):
    type_(console, "for i in range(3):")
    press(console, Qt.Key.Key_Return)
    type_(console, "print(i)")
    press(console, Qt.Key.Key_Return)
    assert console.asked == []
    assert console.input.source() == "for i in range(3):\n    print(i)\n    "
    press(console, Qt.Key.Key_Return)
    assert console.asked[0][0].rstrip() == "for i in range(3):\n    print(i)"


def test_shift_enter_runs_as_it_stands_and_control_enter_never_does(console):
    type_(console, "x = 1")
    press(console, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    type_(console, "y = (")
    assert console.asked == []
    press(console, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert console.asked == [("x = 1\ny = (", "<cell>")]


def test_nothing_is_run_for_nothing(console):
    press(console, Qt.Key.Key_Return)
    type_(console, "   ")
    press(console, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert console.asked == []


@pytest.mark.parametrize(
    ("source", "complete"),
    [
        ("x = 1", True), ("x = (1,", False), ("def f():", False), ("def f():\n    pass", False),
        ("def f():\n    pass\n", True), ("'''a", False), ("x = = 1", True), ("@dec", False),
        ("'\\d'", True), ("# %%", True), ("x = 1\0", True),
    ],
)  # fmt: skip
def test_what_is_complete(source, complete):
    assert is_complete(source) is complete


def test_backspace_and_tab_keep_to_tab_stops(console):
    press(console, Qt.Key.Key_Tab)
    assert console.input.source() == " " * 4
    press(console, Qt.Key.Key_Backspace)
    assert console.input.source() == ""
    console.input.set_source("a\nb")
    console.input.selectAll()
    press(console, Qt.Key.Key_Tab)
    assert console.input.source() == "    a\n    b"
    press(console, Qt.Key.Key_Backtab)
    assert console.input.source() == "a\nb"


# -- one cell at a time --------------------------------------------------------------------------


@pytest.mark.parametrize(("ms", "told"), [(1000, ""), (2500, "ran for 2.5 s\n")])
def test_a_cell_that_took_long_says_how_long(console, monkeypatch, ms, told):
    console.submit("x = 1")
    monkeypatch.setattr(console._clock, "elapsed", lambda: ms)
    console.finish_cell(None)
    assert said(console) == f"x = 1\n{told}"


def test_what_is_submitted_meanwhile_waits_and_is_dropped_after_a_failure(console):
    for source in ("a = 1", "b = 2", "c = 3", "d = 4"):
        console.submit(source)
    assert [source for source, _ in console.asked] == ["a = 1"]
    console.finish_cell(None)
    assert [source for source, _ in console.asked] == ["a = 1", "b = 2"]
    console.finish_cell(ErrorReport("NameError", "no", line=1, traceback="Traceback\nNameError"))
    assert len(console.asked) == 2
    assert "2 more cells were not run" in said(console)
    assert not console.busy


def test_interrupt_is_there_only_while_a_cell_runs(console, qtbot):
    assert not console.interrupt_button.isEnabled()
    console.submit("while True: pass")
    with qtbot.waitSignal(console.interrupt_requested):
        QTest.mouseClick(console.interrupt_button, Qt.MouseButton.LeftButton)
    assert console.busy  # until the engine says so
    console.finish_cell(ErrorReport("KeyboardInterrupt", "", traceback="KeyboardInterrupt"))
    assert not console.interrupt_button.isEnabled()


def test_why_nothing_could_be_run_takes_the_place_of_the_hint(console):
    console.abandon("There is no engine.")
    assert said(console) == "There is no engine.\n" and not console.empty.isVisible()


def test_a_lost_engine_ends_the_cell_in_hand_and_those_that_wait(console):
    console.submit("a")
    console.submit("b")
    console.abandon("The engine has ended.")
    assert (console.busy, len(console.asked)) == (False, 1)
    assert "The engine has ended." in said(console)
    console.submit("c")
    assert len(console.asked) == 2


def test_control_c_in_the_input_stops_the_cell_and_still_copies_a_selection(console, qapp):
    stopped: list[bool] = []
    console.interrupt_requested.connect(lambda: stopped.append(True))
    control = Qt.KeyboardModifier.ControlModifier
    type_(console, "abc")
    press(console, Qt.Key.Key_C, control)
    assert stopped == []  # nothing runs
    console.submit("while True: pass")
    qapp.clipboard().setText("before")
    console.input.selectAll()
    press(console, Qt.Key.Key_C, control)
    assert (stopped, qapp.clipboard().text()) == ([], "abc")
    console.input.moveCursor(QTextCursor.MoveOperation.End)
    press(console, Qt.Key.Key_C, control)
    assert (stopped, console.input.source()) == ([True], "abc")


# -- output --------------------------------------------------------------------------------------


def test_output_streams_and_the_line_at_fault_is_marked(console):
    console.submit("print(1)\nx = 1 / 0\ny = 2")
    console.add_output(OutputSnapshot(stream="stdout", text="1"))
    console.add_output(OutputSnapshot(stream="stdout", text="1\n"))
    error = ErrorReport("ZeroDivisionError", "division by zero", "Try 1.", 2, "Trace\nZero: by")
    console.finish_cell(error)
    assert "\n11\nTrace\nZero: by\nTry 1.\n" in said(console)
    assert console.output.faulty_lines() == ["x = 1 / 0"]
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    theme.apply(application, theme.DARK)
    assert console.output.faulty_lines() == ["x = 1 / 0"]
    assert "\n11\nTrace\nZero: by\nTry 1.\n" in said(console)


def test_progress_bars_write_over_their_line_and_colour_codes_go(console):
    console.submit("x")
    for text in ("\r 10%", "\r 50%", "\r100%\n", "\x1b[31mred\x1b[0m\n"):
        console.add_output(OutputSnapshot(stream="stderr", text=text))
    assert said(console) == "x\n100%\nred\n"


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["50%\r"], "50%"),
        (["50%\r", "60%\r"], "60%"),
        (["50%\r", "\r60%"], "60%"),
        (["50%\r", "done\n"], "done\n"),
        (["50%\r", "", "done\n"], "done\n"),
        (["50%\r", "\ndone\n"], "50%\ndone\n"),
        (["50%\r\r"], "50%"),
        (["10%\r20%\r\r"], "20%"),
        (["a\r\nb\r\n"], "a\nb\n"),
        (["a\r", "\nb"], "a\nb"),
        (["a", "\rb\rc"], "c"),
        (["a\nb\rc\nd\r"], "a\nc\nd"),
    ],
)
def test_a_return_takes_effect_when_more_comes(console, pieces, shown):
    console.submit("x")
    for text in pieces:
        console.add_output(OutputSnapshot(stream="stdout", text=text))
    assert said(console) == f"x\n{shown}"
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    theme.apply(application, theme.DARK)
    assert said(console) == f"x\n{shown}"


def test_a_return_of_one_stream_or_cell_takes_nothing_of_the_next(console):
    console.submit("x")
    console.add_output(OutputSnapshot(stream="stdout", text="50%\r"))
    console.add_output(OutputSnapshot(stream="result", text="3\n"))
    console.finish_cell(None)
    console.submit("y")
    assert said(console) == "x\n50%\n3\n\ny\n"


def test_an_error_without_a_hint_has_no_line_for_one_and_nothing_can_be_typed_there(console):
    console.submit("x")
    console.finish_cell(ErrorReport("NameError", "no x", traceback="NameError: no x\n"))
    QTest.keyClicks(console.output, "typed")
    assert said(console) == "x\nNameError: no x\n"


def test_endless_output_is_bounded(console):
    console.submit("x")
    console.add_output(OutputSnapshot(stream="stdout", text="line\n" * (MAX_LINES * 2)))
    console.add_output(OutputSnapshot(stream="stdout", text="y" * 100_000))
    assert console.output.blockCount() <= MAX_LINES
    assert len(said(console).split("\n")[-1]) < MAX_LINE_CHARACTERS + 10


def long_tail(text: str, lines: int, path: str = "", **options) -> OutputTailSnapshot:
    return OutputTailSnapshot(
        pieces=(OutputPiece("stdout", text),),
        left_out_lines=lines,
        left_out_characters=10 * lines,
        path=path,
        **options,
    )


def note(console) -> LeftOutNote:
    (found,) = console.output.findChildren(LeftOutNote)
    return found


def test_the_tail_of_a_long_output_replaces_the_one_before(console, qapp):
    console.submit("x")
    console.add_output(OutputSnapshot(stream="stdout", text="head\n"))
    for end in ("a\nb", "c\nd\ne\n", "f\n"):
        console.add_output(long_tail(end, 1234))
    lines = said(console).split("\n")
    assert (lines[:3], lines[-2:]) == (["x", "head", ""], ["f", ""])
    assert not {"a", "b", "c", "d", "e"} & set(lines)
    assert note(console).text == "… 1,234 lines are left out here."
    console.interrupt()
    console.submit("y")
    console.output.add_note("a note meanwhile")
    console.add_output(long_tail("g\nh\n", 1235))
    assert said(console).endswith("\ng\nh\na note meanwhile\n")
    theme.apply(qapp, theme.DARK)
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert said(console).endswith("\ng\nh\na note meanwhile\n")
    assert note(console).text == "… 1,235 lines are left out here."
    console.finish_cell(None)
    console.submit("z")
    console.add_output(OutputSnapshot(stream="stdout", text="own\n"))
    console.add_output(long_tail("i\n", 2))
    assert said(console).count("g\nh\n") == 1
    assert said(console).endswith("i\n")


def test_the_note_opens_the_file_and_says_where_there_is_none(console, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url) or True)
    file = tmp_path / "output.txt"
    file.write_text("all")
    console.submit("x")
    console.add_output(long_tail("a\n", 5, str(file)))
    button = console.output.findChild(QPushButton, "console_left_out_open")
    button.click()
    assert [url.toLocalFile() for url in opened] == [str(file)]
    file.unlink()
    button.click()
    assert note(console).text == f"The file no longer exists: {file}"
    console.add_output(long_tail("a\n", 5, str(file), is_whole=False))
    assert "only their beginning" in note(console).text
    console.add_output(long_tail("a\n", 5, "", is_whole=False, fault="No space left"))
    assert "No file holds all of them: No space left." in note(console).text
    assert button.isHidden()


def test_clear_keeps_nothing_on_screen(console):
    console.submit("x")
    console.finish_cell(None)
    QTest.mouseClick(console.clear_button, Qt.MouseButton.LeftButton)
    assert said(console) == ""
    assert console.empty.isVisible()


# -- history -------------------------------------------------------------------------------------


def test_up_and_down_walk_through_what_was_run_and_back_to_the_draft(console):
    for source in ("a = 1", "b = 2"):
        console.submit(source)
        console.finish_cell(None)
    type_(console, "draft")
    press(console, Qt.Key.Key_Up)
    assert console.input.source() == "b = 2"
    press(console, Qt.Key.Key_Up)
    press(console, Qt.Key.Key_Up)
    assert console.input.source() == "a = 1"
    press(console, Qt.Key.Key_Down)
    press(console, Qt.Key.Key_Down)
    assert console.input.source() == "draft"


def test_up_in_the_midst_of_a_text_moves_the_cursor(console):
    console.submit("before")
    console.finish_cell(None)
    console.input.set_source("a\nb")
    press(console, Qt.Key.Key_Up)
    assert (console.input.source(), console.input.textCursor().blockNumber()) == ("a\nb", 0)


def test_the_history_is_for_this_user_only_also_one_of_an_older_version(tmp_path):
    path = tmp_path / "tensorlab" / "history.jsonl"
    path.parent.mkdir()
    path.parent.chmod(0o755)
    path.write_text("", encoding="utf-8")
    path.chmod(0o644)
    History(path).add("x = 1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_history_lasts_through_sessions_and_survives_a_torn_line(tmp_path):
    path = tmp_path / "state" / "history"
    History(path).add("x = 1\ny = 2")
    with path.open("a") as file:
        file.write('"cut sho')
    later = History(path)
    assert later.entries == ["x = 1\ny = 2"]
    assert later.older("") == "x = 1\ny = 2"


def test_the_newest_of_a_long_history_stay(tmp_path):
    path = tmp_path / "history"
    path.write_text("".join(f'"x = {i}"\n' for i in range(MAX_ENTRIES + 5)))
    kept = [f"x = {i}" for i in range(5, MAX_ENTRIES + 5)]
    assert History(path).entries == kept == History(path).entries
    assert len(path.read_text().splitlines()) == MAX_ENTRIES


def test_a_history_that_cannot_be_kept_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    history = History(tmp_path / "file" / "history")
    history.add("x")
    assert history.entries == ["x"]
    assert "could not be" in history.fault


# -- completion ----------------------------------------------------------------------------------

TWO = (Completion("view", "function", "(*shape)"), Completion("view_as", "function", "(other)"))


def answer(console, *completions: Completion) -> None:
    source, cursor = console.input._asked
    start = cursor - len(source[:cursor].rpartition(".")[2])
    console.show_completions(CompletionsSnapshot(start=start, completions=completions))


def test_a_dot_asks_and_the_list_narrows_while_typing(console, qtbot):
    with qtbot.waitSignal(console.completion_requested) as asked:
        type_(console, "x.")
    assert asked.args == ["x.", 2]
    answer(console, Completion("abs", "function"), *TWO)
    popup = console.input.popup
    assert popup.isVisible()
    type_(console, "vi")
    assert popup.texts() == ["view", "view_as"]
    press(console, Qt.Key.Key_Down)
    press(console, Qt.Key.Key_Tab)
    assert console.input.source() == "x.view_as"
    assert not popup.isVisible()


@pytest.mark.parametrize("keys", [[Qt.Key.Key_ParenLeft], [Qt.Key.Key_Left], [Qt.Key.Key_Space]])
def test_the_list_closes_where_the_name_ends(console, keys):
    type_(console, "x.")
    answer(console, *TWO)
    for key in keys:
        press(console, key)
    assert not console.input.popup.isVisible()


def test_tab_fills_in_the_only_name(console):
    type_(console, "torch.zeros_l")
    press(console, Qt.Key.Key_Escape)
    press(console, Qt.Key.Key_Tab)
    answer(console, Completion("zeros_like", "function"))
    assert console.input.source() == "torch.zeros_like"


def test_a_late_answer_to_a_dot_writes_nothing_into_what_is_typed_on(console):
    type_(console, "np.")
    source, cursor = console.input._asked
    type_(console, "aran")
    assert console.input._asked == (source, cursor)
    console.show_completions(
        CompletionsSnapshot(start=3, completions=(Completion("arange", "function"),))
    )
    type_(console, "ge(6)")
    assert console.input.source() == "np.arange(6)"


def test_a_late_answer_to_tab_writes_nothing_into_what_is_typed_on(console):
    type_(console, "torch.zer")
    press(console, Qt.Key.Key_Escape)
    press(console, Qt.Key.Key_Tab)
    type_(console, "os_l")
    console.show_completions(
        CompletionsSnapshot(start=6, completions=(Completion("zeros_like", "function"),))
    )
    type_(console, "ike")
    assert console.input.source() == "torch.zeros_like"


def test_escape_closes_and_a_late_answer_for_another_text_is_dropped(console):
    type_(console, "x.")
    answer(console, *TWO)
    press(console, Qt.Key.Key_Escape)
    assert not console.input.popup.isVisible()
    press(console, Qt.Key.Key_Space, Qt.KeyboardModifier.ControlModifier)
    late = CompletionsSnapshot(start=2, completions=TWO)
    console.input.set_source("yy")
    console.input.moveCursor(QTextCursor.MoveOperation.End)
    console.show_completions(late)
    assert not console.input.popup.isVisible()


def test_enter_runs_a_name_that_is_written_out(console):
    type_(console, "x.")
    answer(console, *TWO)
    type_(console, "view")
    press(console, Qt.Key.Key_Return)
    assert console.asked == [("x.view", "<cell>")]


def test_a_click_inserts_a_name(console):
    type_(console, "x.")
    answer(console, *TWO)
    popup = console.input.popup
    rect = popup.visualRect(popup.model().index(1, 0))
    QTest.mouseClick(
        popup.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, rect.center()
    )
    assert console.input.source() == "x.view_as"


# -- files ---------------------------------------------------------------------------------------

FILE = "import torch\n\n# %%\nx = 1\n\n# %%\ny = 1 / 0\n"


def test_a_file_runs_cell_by_cell_with_its_own_line_numbers(console):
    console.open_file("/tmp/net.py", FILE)
    assert console.input.source() == "import torch"
    press(console, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    console.finish_cell(None)
    assert console.input.source() == "# %%\nx = 1"
    QTest.mouseClick(console.file._run, Qt.MouseButton.LeftButton)
    console.finish_cell(None)
    QTest.mouseClick(console.file._run, Qt.MouseButton.LeftButton)
    assert console.asked[1] == ("\n\n# %%\nx = 1", "/tmp/net.py")
    console.finish_cell(ErrorReport("ZeroDivisionError", "no", line=7, traceback="Z"))
    assert console.output.faulty_lines() == ["y = 1 / 0"]
    QTest.mouseClick(console.file._close, Qt.MouseButton.LeftButton)
    assert not console.file.isVisible()


def test_the_rest_of_a_file_runs_until_a_cell_fails(console):
    console.open_file("/tmp/net.py", FILE)
    QTest.mouseClick(console.file._rest, Qt.MouseButton.LeftButton)
    assert len(console.asked) == 1
    console.finish_cell(ErrorReport("ImportError", "no", line=1, traceback="I"))
    assert len(console.asked) == 1
    assert "2 more cells were not run" in said(console)


def test_one_goes_back_and_forth_through_the_cells_of_a_file(console):
    console.open_file("/tmp/net.py", FILE)
    strip, seen = console.file, []
    for press_ in (strip._skip, strip._skip, strip._skip, strip._back, strip._back, strip._back):
        seen.append((strip._place.text(), strip._back.isEnabled(), strip._skip.isEnabled()))
        press_.click()
    first, second, third = (
        f"cell {n} of 3, from line {line}" for n, line in ((1, 1), (2, 3), (3, 6))
    )
    done = "all 3 cells done"
    assert seen == [
        (first, False, True), (second, True, True), (third, True, True),
        (done, True, False), (third, True, True), (second, True, True),
    ]  # fmt: skip
    assert console.asked == [] and console.input.source() == "import torch"
    strip._close.click()
    assert console.input.source() == "" and strip.current is None


def test_an_empty_file_is_told(console):
    console.open_file("/tmp/empty.py", "\n")
    assert "nothing in it to run" in said(console)


# -- pictures of failed operands -----------------------------------------------------------------


def fail(console, operands: FailedOperands | None = OPERANDS) -> None:
    console.submit("x + y")
    console.finish_cell(ErrorReport("RuntimeError", "no", "a hint", 1, "", operands))


def test_failed_operands_are_drawn_under_the_error_and_cover_no_text(console, qapp):
    fail(console)
    console.submit("1")
    qapp.processEvents()
    (picture,) = console.output.pictures()
    assert picture.isVisible() and picture.failed == OPERANDS
    output = console.output
    place = picture.geometry()
    block = output.document().begin()
    while block.isValid():
        lines = output.blockBoundingGeometry(block).translated(output.contentOffset())
        if block.text():
            assert not lines.toRect().intersects(place), block.text()
        block = block.next()
    assert said(console).index("a hint") < said(console).rindex("1")


def test_a_picture_goes_with_its_lines_as_the_output_scrolls(console, qapp):
    fail(console)
    qapp.processEvents()
    (picture,) = console.output.pictures()
    before = picture.y()
    console.add_output(OutputSnapshot(stream="stdout", text="a line\n" * 3))
    qapp.processEvents()
    bar = console.output.verticalScrollBar()
    bar.setValue(0)
    qapp.processEvents()
    lowest = picture.y()
    bar.setValue(2)
    qapp.processEvents()
    moved = lowest - picture.y()
    assert moved == 2 * console.output.fontMetrics().lineSpacing() or bar.maximum() < 2
    assert before >= 0
    console.add_output(OutputSnapshot(stream="stdout", text="a line\n" * 200))
    qapp.processEvents()
    assert not picture.isVisible()
    bar.setValue(0)
    qapp.processEvents()
    assert picture.isVisible() and picture.y() == lowest


def test_pictures_are_drawn_anew_in_another_theme_and_go_when_cleared(console, qapp):
    fail(console)
    theme.apply(qapp, theme.DARK)
    assert [picture.failed for picture in console.output.pictures()] == [OPERANDS]
    console.clear()
    assert console.output.pictures() == []


def test_a_picture_whose_lines_are_long_gone_goes_too(console, qapp):
    fail(console)
    console.add_output(OutputSnapshot(stream="stdout", text="line\n" * (2 * MAX_LINES)))
    qapp.processEvents()
    assert console.output.pictures() == []


def test_an_error_without_operands_has_no_picture(console):
    fail(console, None)
    assert console.output.pictures() == []


# -- what is in sight ----------------------------------------------------------------------------

TRACEBACK = "Traceback (most recent call last):\n" + "  a frame\n" * 5 + "RuntimeError: no"


def top_line(console) -> str:
    return console.output.firstVisibleBlock().text()


@pytest.mark.parametrize("operands", [OPERANDS, None])
def test_of_an_error_with_no_room_for_all_the_beginning_is_in_sight(console, qapp, operands):
    console.resize(800, 160)
    for _ in range(30):
        console.submit("x = 1")
        console.finish_cell(None)
    console.submit("x + y")
    console.finish_cell(ErrorReport("RuntimeError", "no", "a hint", 1, TRACEBACK, operands))
    qapp.processEvents()
    assert top_line(console) == "x + y"
    console.submit("z = 2")  # what comes next is in sight again
    qapp.processEvents()
    bar = console.output.verticalScrollBar()
    assert bar.value() == bar.maximum()


def test_an_error_that_has_room_leaves_the_end_in_sight(console, qapp):
    for _ in range(30):
        console.submit("x = 1")
        console.finish_cell(None)
    fail(console)
    qapp.processEvents()
    bar = console.output.verticalScrollBar()
    assert bar.value() == bar.maximum()


def test_a_cell_that_is_run_is_in_sight_though_one_was_reading_further_up(console, qapp):
    for _ in range(30):
        console.submit("x = 1")
        console.finish_cell(None)
    bar = console.output.verticalScrollBar()
    bar.setValue(0)
    console.add_output(OutputSnapshot(stream="stdout", text="late\n"))
    assert bar.value() == 0  # reading is left alone
    console.submit("y = 2")
    assert bar.value() == bar.maximum()


# -- looks ---------------------------------------------------------------------------------------


def test_the_console_looks_as_it_did(console, qapp):
    console.submit("for i in range(2):\n    print(i)  # twice")
    console.add_output(OutputSnapshot(stream="stdout", text="0\n1\n"))
    console.add_output(OutputSnapshot(stream="stderr", text="UserWarning: careful\n"))
    console.add_output(OutputSnapshot(stream="result", text="tensor([1., 2.])\n"))
    fail(console)
    console.output.add_note("The engine has ended.")
    qapp.processEvents()
    assert_same_picture(console, "console")


def test_completions_look_as_they_did(console, qapp):
    type_(console, "x.")
    answer(console, Completion("T", "attribute", "(4, 3)"), *TWO)
    qapp.processEvents()
    assert_same_picture(console, "console_completions")
    type_(console, "view_")
    qapp.processEvents()
    assert_same_picture(console, "console_completions_narrowed")
    for _ in range(5):
        press(console, Qt.Key.Key_Backspace)
    assert console.input.popup.texts() == ["T", "view", "view_as"]  # the name is empty again
    assert console.input.popup.isVisible()


def test_a_file_looks_as_it_did(console, qapp):
    console.open_file("/tmp/net.py", FILE)
    qapp.processEvents()
    assert_same_picture(console, "console_file")
