"""The curves of other runs: read one after the other, and drawn as far as they have been read."""

from __future__ import annotations

from typing import Any

import pytest

from app.presenters.train.runs.curves import Curves
from engine.project.document import Project
from engine.protocol import KeptRunSnapshot, ReadRunCommand, RunRow, StepColumns


class View:
    """Keeps what is drawn last: the title and the folder of each run."""

    def show_overlays(self, runs: list[tuple[str, KeptRunSnapshot]]) -> None:
        self.drawn = [(title, kept.folder) for title, kept in runs]


def row(name: str, step: int = 5, note: str = "") -> RunRow:
    return RunRow(folder=name, step=step, note=note or name.upper(), state="finished")


@pytest.fixture
def view() -> View:
    return View()


@pytest.fixture
def curves(bench, link, view: View) -> Curves:
    link.get_ready()
    return Curves(bench, view, bench.window)  # pyright: ignore[reportArgumentType]


def asked(link: Any) -> list[str]:
    return [each.folder for each in link.sent if isinstance(each, ReadRunCommand)]


def answer(link: Any) -> None:
    link.answer(KeptRunSnapshot(folder=asked(link)[-1], steps=StepColumns(), project=Project()))


def test_one_is_read_after_the_other_and_drawn_at_once(curves: Curves, link, view: View) -> None:
    curves.show(["a", "b"], [row("a"), row("b"), row("c")])
    assert (asked(link), view.drawn) == (["a"], [])
    answer(link)
    assert (asked(link), view.drawn) == (["a", "b"], [("A", "a")])
    answer(link)
    assert (asked(link), view.drawn) == (["a", "b"], [("A", "a"), ("B", "b")])


def test_only_a_run_that_has_gone_on_is_read_again(curves: Curves, link, view: View) -> None:
    rows = [row("a"), row("b")]
    curves.show(["a", "b"], rows)
    answer(link)
    answer(link)
    curves.show(["b", "a"], rows)
    assert asked(link) == ["a", "b"] and view.drawn == [("B", "b"), ("A", "a")]
    curves.show(["b", "a"], [row("a", step=6), row("b")])
    assert asked(link) == ["a", "b", "a"] and view.drawn == [("B", "b")]
    answer(link)
    assert view.drawn == [("B", "b"), ("A", "a")]
    curves.show(["a"], [row("a", step=6), row("b")])
    curves.show(["a", "b"], [row("a", step=6), row("b")])  # it was left out meanwhile
    assert asked(link) == ["a", "b", "a", "b"]


def test_the_run_of_the_plots_is_not_drawn_a_second_time(curves: Curves, link, view: View) -> None:
    curves.show(["a", "b"], [row("a"), row("b")])
    answer(link)
    answer(link)
    curves.leave_out("a")
    assert view.drawn == [("B", "b")]
    view.drawn = []
    curves.leave_out("a")
    assert view.drawn == []  # nothing is drawn again
    curves.leave_out("")
    assert view.drawn == [("A", "a"), ("B", "b")]


def test_one_that_cannot_be_read_is_told_and_not_asked_again(curves: Curves, link, view) -> None:
    told: list[str] = []
    curves.failed.connect(told.append)
    curves.show(["a", "b"], [row("a"), row("b")])
    link.fail("It is damaged.", "Delete it.")
    assert told == ["It is damaged. Delete it."] and asked(link) == ["a", "b"]
    answer(link)
    assert view.drawn == [("B", "b")] and asked(link) == ["a", "b"]
    curves.show(["a", "b"], [row("a"), row("b")])
    assert asked(link) == ["a", "b"]


def test_the_title_is_the_note_if_it_is_short(curves: Curves, link, view: View) -> None:
    rows = [
        RunRow(folder=name, note=note, title="when it began", state="event files")
        for name, note in (("a", "n" * 24), ("b", "n" * 25), ("c", ""))
    ]
    curves.show(["a", "b", "c"], rows)
    for _ in rows:
        answer(link)
    assert [title for title, _ in view.drawn] == ["n" * 24, "when it began", "when it began"]
