"""The user's words on plots: of which run they are, what is undone, and when they are kept."""

from __future__ import annotations

from typing import Any

import pytest

from app.presenters.train.pictures.annotations import AnnotationsPresenter
from engine.protocol import (
    AnnotateRunCommand,
    Annotation,
    AnnotationsSnapshot,
    ReadAnnotationsCommand,
)
from widgets.training.train_view import TrainView

FIRST, SECOND = Annotation(1, "first", "loss"), Annotation(2, "second", "accuracy")


class Words:
    """The user writes these words, one after the other."""

    def __init__(self, bench: Any, view: TrainView) -> None:
        self.waiting: list[str | None] = []
        self.offered: list[str] = []
        self._asked = view.board.note_asked
        bench.dialogs.ask_line = self._ask

    def _ask(self, parent: Any, title: str, label: str, text: str) -> str | None:
        self.offered.append(text)
        return self.waiting.pop(0)

    def write(self, plot: str, step: int, words: str | None) -> None:
        self.waiting.append(words)
        self._asked.emit(plot, step)


@pytest.fixture
def view(bench, link, qtbot) -> TrainView:
    link.get_ready()
    view = TrainView()
    qtbot.addWidget(view)
    AnnotationsPresenter(bench, view, bench.window)
    return view


@pytest.fixture
def words(bench, view: TrainView) -> Words:
    return Words(bench, view)


def shown(view: TrainView) -> tuple[Annotation, ...]:
    return view.board._annotations


def kept(link: Any) -> list[tuple[str, tuple[Annotation, ...]]]:
    return [(c.folder, c.annotations) for c in link.sent if isinstance(c, AnnotateRunCommand)]


def read(link: Any) -> list[str]:
    return [each.folder for each in link.sent if isinstance(each, ReadAnnotationsCommand)]


def test_those_of_a_run_are_read_once_and_shown(view, link, training_snapshot) -> None:
    link._receive(training_snapshot())
    assert read(link) == []  # it has no folder yet
    for step in (1, 2):
        link._receive(training_snapshot(step=step, folder="/r"))
    assert read(link) == ["/r"]
    link.answer(AnnotationsSnapshot(folder="/other", annotations=(FIRST,)))
    assert shown(view) == ()
    link.answer(AnnotationsSnapshot(folder="/r", annotations=(FIRST,)))
    assert shown(view) == (FIRST,)
    link._receive(training_snapshot(folder="/moved"))
    assert read(link) == ["/r", "/moved"] and shown(view) == (FIRST,)
    link._receive(training_snapshot(run="s", folder="/s"))
    assert read(link)[2:] == ["/s"] and shown(view) == ()


def test_words_before_the_first_step_are_kept_as_soon_as_there_is_a_folder(
    view, words: Words, link, training_snapshot
) -> None:
    link._receive(training_snapshot())
    words.write("loss", 1, "first")
    assert shown(view) == (FIRST,) and kept(link) == []
    link._receive(training_snapshot(folder="/r"))
    assert kept(link) == [("/r", (FIRST,))] and read(link) == []
    link._receive(training_snapshot(folder="/r", step=2))
    assert len(kept(link)) == 1


def test_words_are_changed_deleted_and_undone(
    view, words: Words, bench, link, training_snapshot
) -> None:
    link._receive(training_snapshot(folder="/r"))
    words.write("loss", 1, " fi\n rst ")
    words.write("accuracy", 2, "second")
    assert shown(view) == (Annotation(1, "fi rst", "loss"), SECOND)
    assert bench.history.stack.undoText() == "Annotate step 2"
    words.write("loss", 1, "first")
    assert shown(view) == (SECOND, FIRST)
    words.write("accuracy", 1, None)  # of another plot: there is none, and none is wanted
    words.write("accuracy", 1, " ")
    assert shown(view) == (SECOND, FIRST)
    words.write("accuracy", 2, "")
    assert shown(view) == (FIRST,) and bench.history.stack.undoText() == "Delete an annotation"
    assert words.offered == ["", "", "fi rst", "", "", "second"]
    bench.history.stack.undo()
    assert shown(view) == (SECOND, FIRST) and kept(link)[-1] == ("/r", (SECOND, FIRST))
    bench.history.stack.redo()
    assert kept(link)[-1] == ("/r", (FIRST,)) and len(kept(link)) == 6


def test_undo_changes_the_run_that_the_words_were_of(
    view, words: Words, bench, link, training_snapshot
) -> None:
    link._receive(training_snapshot(folder="/r"))
    words.write("loss", 1, "first")
    link._receive(training_snapshot(folder="/moved"))
    bench.history.stack.undo()
    assert kept(link)[-1] == ("/moved", ()) and shown(view) == ()
    bench.history.stack.redo()
    link._receive(training_snapshot(run="s", folder="/s"))
    link.answer(AnnotationsSnapshot(folder="/s", annotations=(SECOND,)))
    bench.history.stack.undo()
    assert kept(link)[-1] == ("/r", ()) and shown(view) == (SECOND,)


def test_what_cannot_be_kept_is_said(view, words: Words, bench, link, training_snapshot) -> None:
    link._receive(training_snapshot(folder="/r"))
    words.write("loss", 1, "first")
    link.fail("The disk is full.", "Free some space.")
    assert bench.window.said == ["The disk is full. Free some space."]
    link.close()
    words.write("loss", 1, "other")
    assert bench.window.said[1:] == [f"The annotation is not kept. {link.unsent}"]
    assert shown(view) == (Annotation(1, "other", "loss"),)


def test_another_project_has_none(view, words: Words, bench, training_snapshot, link) -> None:
    link._receive(training_snapshot(folder="/r"))
    words.write("loss", 1, "first")
    bench.files.opened.emit()
    assert shown(view) == ()
    link.answer(AnnotationsSnapshot(folder="/r", annotations=(FIRST,)))
    assert shown(view) == ()
