"""What the window says about an engine that has ended."""

from __future__ import annotations

import signal

import pytest

from app.processes.exit_reasons import explain_departure, explain_exit, explain_no_start
from engine.process import Departure


@pytest.mark.parametrize(
    ("oom_kills", "title"),
    [
        (1, "killed by the system: out of memory"),
        (None, "most likely out of memory"),
        (0, "killed from outside"),
    ],
)
def test_a_kill_says_only_what_is_known(oom_kills, title):
    reason = explain_exit(-signal.SIGKILL, oom_kills=oom_kills)
    assert title in reason.title
    if oom_kills == 0:
        assert "no kill for want of memory" in reason.detail


def test_a_checkpoint_is_the_next_step():
    reason = explain_exit(-signal.SIGKILL, running="training", checkpoint_step=1200)
    assert "It was training." in reason.detail
    assert "checkpoint is step 1,200" in reason.next_step
    assert "Resume" in reason.next_step


def test_training_without_a_checkpoint_says_so():
    assert "no checkpoint" in explain_exit(-signal.SIGKILL, running="training").next_step


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"])
def test_a_crash_of_native_code_names_the_signal(name):
    reason = explain_exit(-getattr(signal, name), running="running your code")
    assert reason.title == "The engine crashed"
    assert name in reason.detail
    assert "It was running your code." in reason.detail


def test_a_windows_access_violation_is_a_crash():
    assert explain_exit(0xC0000005).title == "The engine crashed"


def test_an_unknown_signal_is_named():
    assert "SIGTERM" in explain_exit(-signal.SIGTERM).title
    assert "signal 200" in explain_exit(-200).title


def test_an_error_shows_the_exception_of_the_log():
    log = "Traceback (most recent call last):\n  File ...\nImportError: no torch here\n"
    reason = explain_exit(1, log=log)
    assert "exit code 1" in reason.title
    assert reason.detail.startswith("ImportError: no torch here.")
    assert log in reason.detail


def test_a_clean_exit_is_no_error():
    reason = explain_exit(0)
    assert reason.title == "The engine has ended"
    assert "project is safe" in reason.next_step


def test_an_engine_that_we_ended_was_not_killed_by_the_system():
    reason = explain_exit(-signal.SIGKILL, gave_up_waiting=True, oom_kills=None)
    assert "did not answer to Stop" in reason.title
    assert "memory" not in reason.title + reason.detail


def test_an_engine_that_sent_what_is_no_message():
    reason = explain_exit(-9, garbled=True, running="running your code")
    assert reason.title == "The engine sent what the window cannot read, and was ended"
    assert reason.detail.endswith("It was running your code.")


@pytest.mark.parametrize(
    ("how", "title", "can_reconnect"),
    [
        (Departure("a.py (pid 5)", lives=False), "a.py (pid 5) has ended", False),
        (
            Departure("a.py (pid 5)", lives=False, code=0),
            "a.py (pid 5) has ended with exit code 0",
            False,
        ),
        (
            Departure("a.py (pid 5)", lives=False, code=-9),
            "a.py (pid 5) was ended by SIGKILL",
            False,
        ),
        (
            Departure("a.py (pid 5)", lives=False, code=-11),
            "a.py (pid 5) was ended by SIGSEGV",
            False,
        ),
        (Departure("a.py (pid 5)", lives=True), "The connection to a.py (pid 5) was lost", True),
        (Departure("a.py (pid 5)"), "The connection to a.py (pid 5) was lost", True),
        (
            Departure("a.py (pid 5)", lives=True, garbled=True),
            "a.py (pid 5) sent what the window cannot read",
            True,
        ),
    ],
)
def test_a_script_is_lost_in_words(how: Departure, title: str, can_reconnect: bool):
    reason = explain_departure(how)
    assert (reason.title, reason.can_reconnect) == (title, can_reconnect)
    assert reason.was_attached and reason.detail and reason.next_step
    assert ("Reconnect" in reason.next_step) == can_reconnect


def test_what_the_system_says_of_an_engine_that_did_not_start():
    reason = explain_no_start(OSError(12, "Cannot allocate memory"))
    assert reason.detail == "The system says: [Errno 12] Cannot allocate memory."
    assert not reason.can_reconnect and not reason.was_attached


@pytest.mark.parametrize(
    ("how", "detail"),
    [
        (Departure("a", lives=False), "What it has shown stays here."),
        (Departure("a", lives=False, code=3), "What it has shown stays here."),
        (Departure("a", lives=False, code=-9), "The signal came from outside: a person or a program"
         " sent it, or the system, for lack of memory. What it has shown stays here."),
        (Departure("a", lives=False, code=-15),
         "The signal came from outside. What it has shown stays here."),
        (Departure("a", lives=False, code=-11),
         "It accessed memory that is not its own. What it has shown stays here."),
        (Departure("a", lives=True), "It goes on, and has ended the connection or was closed to"
         " windows. What it has shown stays here."),
        (Departure("a"), "It has ended, or the way to it was cut; then it goes on. What it has"
         " shown stays here."),
        (Departure("a", garbled=True), "Something in it wrote to the connection. The window has"
         " left it; it goes on."),
    ],
)  # fmt: skip
def test_how_a_script_was_lost_in_more_words(how: Departure, detail: str):
    reason = explain_departure(how)
    assert reason.detail == detail
    assert reason.was_attached


@pytest.mark.parametrize(
    ("running", "step", "next_step"),
    [
        ("", None, "Restart the engine: your project is safe in this window."),
        ("exporting", None, "Restart the engine: your project is safe in this window."),
        ("training", None, "Restart the engine and train again: the run had written no checkpoint"
         " yet."),
        ("", 0, "The run's last checkpoint is step 0. Restart the engine, then Resume to go on from"
         " there."),
    ],
)  # fmt: skip
def test_what_to_do_next(running, step, next_step):
    assert explain_exit(0, running=running, checkpoint_step=step).next_step == next_step


def test_what_is_known_stands_in_its_order():
    ended = "It ended by itself without an error, as code that calls os._exit(0) makes it do."
    assert explain_exit(0).detail == ended
    told = explain_exit(0, running="training", log="one\n")
    assert told.detail == f"{ended} It was training.\n\nThe end of its log:\none\n"
    silent = "It left no message, as when code calls os._exit(3)."
    assert explain_exit(3).detail == silent
    assert explain_exit(3, log="\n  \n").detail.startswith(f"{silent}\n\nThe end")
    assert explain_exit(3, log="one\n two. \n\n").detail.startswith("two.\n")
    assert explain_exit(-15).detail == "The signal came from outside."
    crash = (
        "Native code failed (SIGSEGV): it accessed memory that is not its own. Nothing outside the"
        " engine was harmed."
    )
    assert [explain_exit(code).detail for code in (-11, 0xC0000005)] == [crash, crash]
