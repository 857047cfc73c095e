"""Where the ranks of a run are, in words."""

from __future__ import annotations

import pytest

from app.presenters.attaching.member import Member
from app.presenters.attaching.ranks import _state
from engine.connecting.greeting import About
from engine.protocol import HeldSnapshot

CALLED = (
    "The ranks of this run. Choose the one that the window shows; Pause, Step and Continue are for"
    " all."
)


def member(rank: int, of: int = 2, held_at: str = "", step: int = 0) -> Member:
    made = Member(About(name="train.py", pid=rank, rank=rank, world_size=of))
    made.take(HeldSnapshot(at=held_at))  # pyright: ignore[reportArgumentType]
    made.step = step
    return made


def state(*members: Member) -> tuple[str, str]:
    return _state(members, members[0])


def test_ranks_that_run_or_are_held_together_need_few_words() -> None:
    assert state(member(0), member(1)) == ("rank 0 of 2", CALLED)
    held = [member(rank, held_at="step", step=1200) for rank in range(2)]
    assert state(*held) == ("rank 0 of 2 · all held after step 1,200", CALLED)
    held[1].step = 1201
    assert state(*held) == ("rank 0 of 2", CALLED)
    assert state(member(1, of=3, held_at="step"))[0] == "rank 1 of 3"


@pytest.mark.parametrize(
    ("running", "words", "waits"),
    [
        ((1,), "rank 1 waits for rank 0", "Rank 1 waits for it"),
        ((1, 2), "rank 1, 2 wait for rank 0", "Rank 1, 2 wait for it"),
    ],
)
def test_a_rank_that_is_held_lets_the_others_wait(
    running: tuple[int, ...], words: str, waits: str
) -> None:
    of = len(running) + 1
    others = [member(rank, of) for rank in running]
    told, tip = state(member(0, of, held_at="line"), *others)
    assert told == f"rank 0 of {of} · {words}"
    assert tip.removeprefix(CALLED).startswith(f" Rank 0 is held. {waits} in the next collective")


@pytest.mark.parametrize(
    ("of", "words", "them"),
    [(2, "1 of them does not listen", "it"), (4, "3 of them do not listen", "them")],
)
def test_ranks_that_are_not_found_are_counted(of: int, words: str, them: str) -> None:
    _, tip = state(member(0, of))
    assert tip.removeprefix(CALLED) == (
        f" {words} on this machine: this window cannot show or hold {them}. A rank is found once it"
        " has called tensorlab.watch here."
    )
