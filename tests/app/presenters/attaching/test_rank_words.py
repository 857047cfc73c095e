"""Where the ranks of a run are, in words."""

from __future__ import annotations

import pytest

from app.presenters.attaching.member import Member
from app.presenters.attaching.ranks import _ranks, _state
from engine.connecting.greeting import About
from engine.protocol import HeldSnapshot, RankPlace

CALLED = (
    "The ranks of this run. Choose the one that the window shows; Pause, Step and Continue are for"
    " all."
)


def member(rank: int, of: int = 2, held_at: str = "", step: int = 0) -> Member:
    made = Member(About(name="train.py", pid=rank, rank=rank, world_size=of))
    made.take(HeldSnapshot(at=held_at))  # pyright: ignore[reportArgumentType]
    made.step = step
    return made


def place(rank: int) -> RankPlace:
    return RankPlace(rank, "two", 1, "python")


def state(*members: Member, **elsewhere: list[RankPlace]) -> tuple[str, str]:
    return _state(members, members[0], "this machine", elsewhere)


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
    ("ranks", "words"),
    [
        ((1,), " Rank 1 listens on two: choose it to call it."),
        ((1, 3), " Ranks 1, 3 listen on two: choose one of them to call all there."),
    ],
)
def test_ranks_that_listen_elsewhere_can_be_called(ranks: tuple[int, ...], words: str) -> None:
    _, tip = state(member(0, len(ranks) + 1), two=[place(rank) for rank in ranks])
    assert tip == CALLED + words
    assert _ranks([place(rank) for rank in ranks]) == words.split(" listen")[0].strip().lower()


@pytest.mark.parametrize(
    ("of", "words", "them"),
    [(3, "1 of them does not listen", "it"), (4, "2 of them do not listen", "them")],
)
def test_ranks_that_nobody_knows_of_are_counted(of: int, words: str, them: str) -> None:
    _, tip = state(member(0, of), two=[place(1)])
    rest = tip.removeprefix(f"{CALLED} Rank 1 listens on two: choose it to call it.")
    assert rest == (
        f" {words} on this machine, nor tell where: this window cannot show or hold {them}. A rank"
        " is found once it has called init_process_group and tensorlab.watch."
    )
