"""The flags of an engine: which command a signal is meant for, and whose code runs."""

from __future__ import annotations

import signal
import threading

import pytest

from engine.project.document import HoldWhen
from engine.system.control import Control


@pytest.mark.parametrize(("command", "is_kept"), [(6, True), (7, True), (8, False)])
def test_a_signal_is_meant_for_the_newest_command_and_older_ones(
    command: int, is_kept: bool
) -> None:
    control = Control(mark=7)
    control.stop.set()
    control.pause.set()
    control.clear_before(command)
    assert control.stop.is_set() == control.pause.is_set() == is_kept


def test_an_interrupt_may_come_in_the_users_code_and_not_in_ours_inside_it() -> None:
    control, seen = Control(), []
    with pytest.raises(ValueError), control.user_code():
        seen.append(control.in_user_code)
        with control.own_code():
            seen.append(control.in_user_code)
        seen.append(control.in_user_code)
        raise ValueError
    with control.own_code():
        seen.append(control.in_user_code)
    assert seen == [True, False, True, False] and not control.in_user_code


def test_an_interrupt_in_our_code_inside_the_users_is_raised_at_its_end() -> None:
    control, seen = Control(), []
    with pytest.raises(KeyboardInterrupt), control.user_code():
        with control.own_code():
            assert control.in_own_code and not control.in_user_code
            control.interrupted = True  # as the mailbox sets it
            seen.append("whole")
        seen.append("never")
    assert seen == ["whole"]
    with control.user_code(), control.own_code():  # it is not raised again
        assert not control.interrupted
    assert not (control.in_user_code or control.in_own_code)


def test_code_beyond_its_time_limit_is_interrupted_and_the_users_interrupt_is_another():
    control = Control(interrupt=lambda: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(TimeoutError, match=r"longer than 0\.01 s"), control.time_limit(0.01):
            while True:
                pass
        with pytest.raises(KeyboardInterrupt), control.time_limit(1000):
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)
    assert not control.in_user_code


def test_a_step_to_pause_after_holds_there_or_after_the_next_one() -> None:
    control = Control()
    control.pause_after(5)
    assert [control.pauses_by(step) for step in (3, 4, 5, 6)] == [False, False, True, True]
    control.reach(4)
    assert not control.pause.is_set()
    control.reach(6)  # step 5 was not looked at
    assert control.pause.is_set()
    control.pause.clear()
    control.reach(7)
    assert not control.pause.is_set()
    control.pause_after(9)
    control.let_go()
    assert not control.pauses_by(10)
    control.pause_after(0)
    assert control.pause.is_set()


def test_nobody_holds_code_that_is_let_go() -> None:
    control = Control(steps_backward=True, pause_at=3, hold_when=HoldWhen(not_finite=True))
    control.pause.set()
    control.let_go()
    assert (control.steps_backward, control.pause_at, control.goes_on) == (False, 0, "on")
    assert control.hold_when == HoldWhen() and not control.pause.is_set()


def test_a_pause_is_told_and_a_step_before_it_is_not_reached() -> None:
    told: list[int] = []
    control = Control(asked=lambda: told.append(1))
    control.pause_after(2)
    control.reach(1)
    assert told == [] and control.pause_at == 2
    control.reach(2)
    assert told == [1] and control.pause_at == 0


@pytest.mark.parametrize(
    ("stopped", "command", "ends"), [({3, 4}, 4, True), ({4}, 5, False), (set(), 0, False)]
)
def test_only_the_commands_that_are_named_end(stopped: set[int], command: int, ends: bool) -> None:
    assert Control(stopped=stopped).stops(command) is ends


def test_an_interrupt_for_other_code_is_forgotten_where_the_users_begins() -> None:
    control = Control(interrupted=True)
    with control.user_code():
        assert not control.interrupted
    with control.user_code(), pytest.raises(KeyboardInterrupt), control.own_code():
        control.interrupted = True
        with control.user_code():  # code of the user's that ours calls
            assert control.interrupted


def test_our_code_in_ours_is_marked_to_its_end() -> None:
    control, seen = Control(), []
    with control.own_code():
        seen.append(control.in_own_code)  # no code of the user's is around it
    with control.user_code(), control.own_code():
        with control.own_code():
            seen.append(control.in_own_code)
        seen.append(control.in_own_code)
        assert not control.in_user_code
    assert seen == [False, True, True] and not control.in_own_code


def test_of_a_time_that_was_enough_nothing_is_left() -> None:
    control = Control(interrupt=lambda: pytest.fail("it was in time"))
    with control.time_limit(1000):
        assert control.in_user_code
    assert not control.in_user_code
    assert not [t for t in threading.enumerate() if isinstance(t, threading.Timer)]
