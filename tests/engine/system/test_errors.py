"""Any exception as plain data: the user's line and frames, and no more text than can be sent."""

from __future__ import annotations

import linecache

import pytest

from engine.protocol import ErrorReport
from engine.system.errors import MAX_TEXT, LabError, error_report, sendable
from engine.system.user_files import is_user_file


def raised(source: str, name: str = "<cell 1>", **variables: object) -> BaseException:
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        exec(compile(source, name, "exec"), dict(variables))
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def report(error: BaseException) -> ErrorReport:
    return error_report(error, lambda filename: filename.startswith("<cell"))


def outside() -> None:
    raise ValueError("from outside")


def test_what_the_user_can_correct_has_words_and_a_hint_alone() -> None:
    told = report(LabError("no loss", hint="add one"))
    assert (told.type, told.message, told.hint) == ("LabError", "no loss", "add one")
    assert told.line is None and told.traceback == ""


def test_the_line_is_the_users_innermost_and_the_traceback_begins_with_the_users_first() -> None:
    told = report(raised("def f():\n    outside()\n\nf()\n", outside=outside))
    assert (told.type, told.message, told.line) == ("ValueError", "from outside", 2)
    lines = told.traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == '  File "<cell 1>", line 4, in <module>'
    assert 'raise ValueError("from outside")' in told.traceback and "in raised" not in lines[1]


def test_an_error_without_a_frame_of_the_users_keeps_all_of_its_frames() -> None:
    told = error_report(raised("outside()", "library.py", outside=outside))
    assert told.line is None
    assert "in raised" in told.traceback and "library.py" in told.traceback


def test_frames_of_this_program_between_the_users_are_left_out() -> None:
    from engine.console.tensor_report import or_none

    def stop() -> None:
        raise KeyboardInterrupt  # which or_none passes on

    error = raised("def f():\n    stop()\nor_none(f)", or_none=or_none, stop=stop)
    told = report(error)
    assert told.type == "KeyboardInterrupt" and told.line == 2
    assert "tensor_report.py" not in told.traceback and "in f" in told.traceback


def test_an_interrupt_is_told_without_the_frames_that_it_struck() -> None:
    def struck() -> None:
        raise KeyboardInterrupt

    told = report(raised("x = 1\nstruck()", struck=struck))
    assert (told.type, told.line) == ("KeyboardInterrupt", 2)
    assert "struck()" in told.traceback and "raise KeyboardInterrupt" not in told.traceback


def test_the_causes_of_an_error_are_told_by_the_users_frames_too() -> None:
    source = (
        "try:\n    outside()\nexcept ValueError as error:\n    raise KeyError('k') from error\n"
    )
    told = report(raised(source, outside=outside))
    assert (told.type, told.line) == ("KeyError", 4)
    assert told.traceback.count('File "<cell 1>"') == 2 and "direct cause" in told.traceback
    assert "exec(compile(" not in told.traceback


@pytest.mark.parametrize(("name", "line"), [("<cell 1>", 2), ("other.py", None)])
def test_a_syntax_error_is_placed_in_the_users_file(name: str, line: int | None) -> None:
    told = report(raised("x = 1\ny = = 2\n", name))
    assert (told.type, told.message, told.line) == ("SyntaxError", "invalid syntax", line)
    assert ("exec(compile(" in told.traceback) == (line is None)


def test_a_syntax_error_says_what_python_says_without_the_place() -> None:
    assert report(raised("x = (1,\n")).message == "'(' was never closed"
    assert report(SyntaxError()).message == "invalid syntax"


def test_long_texts_keep_both_ends() -> None:
    whole = "a" * (MAX_TEXT // 2) + "b" * (MAX_TEXT // 2)
    assert report(ValueError(whole)).message == whole
    told = report(ValueError(f"{whole[:-1]}xyz")).message
    assert told.startswith("a" * (MAX_TEXT // 2) + "\n... 2 characters left out ...\n")
    assert (
        told.endswith("bxyz") and len(told) - len("\n... 2 characters left out ...\n") == MAX_TEXT
    )


def test_lone_surrogates_can_be_sent() -> None:
    assert sendable("ü\ud800") == "ü\\ud800"
    assert report(ValueError("\ud800")).message == "\\ud800"


def test_a_fault_of_the_program_keeps_its_traceback():
    assert not is_user_file("")  # an exception that names no file
    error = ValueError("fault").with_traceback(None)
    try:
        int.from_bytes(b"", "neither")  # type: ignore[arg-type]
    except ValueError as raised:
        error = raised
    here = __file__  # as if this file were the program's own
    report = error_report(error, lambda name: name != here and is_user_file(name))
    assert "int.from_bytes" in report.traceback
