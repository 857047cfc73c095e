"""The flags of an engine: which command a signal is meant for, and whose code runs."""

from __future__ import annotations

import signal

import pytest

from engine.control import Control


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
