"""Questions: an answer goes to the caller of the newest question of its kind."""

from __future__ import annotations

import pytest

from app.presenters.questions import Questions, in_words
from engine.protocol import (
    AliasesCommand,
    AliasesSnapshot,
    CompleteCommand,
    CompletionsSnapshot,
    ErrorReport,
)

EMPTY = CompletionsSnapshot(start=0, completions=())


class Asker:
    """Asks, and keeps what it is told."""

    def __init__(self, bench) -> None:
        self.questions = Questions(bench)
        self.told: list = []

    def complete(self, source: str) -> int:
        command = CompleteCommand(source=source, cursor=0)
        return self.questions.ask(
            command,
            lambda answer: self.told.append((source, answer.start)),
            lambda error: self.told.append((source, error.message)),
        )


@pytest.fixture
def asker(bench, link) -> Asker:
    link.get_ready()
    return Asker(bench)


def test_the_answer_to_a_question_that_was_asked_anew_is_dropped(asker, link):
    asker.complete("a")
    asker.complete("b")
    link.answer(CompletionsSnapshot(start=1, completions=()), to=1)
    assert asker.told == []
    link.answer(CompletionsSnapshot(start=2, completions=()), to=2)
    assert asker.told == [("b", 2)]
    link.fail("late", to=1)
    assert asker.told == [("b", 2)]


def test_questions_of_other_kinds_and_of_others_are_not_superseded(asker, link, bench):
    other = Asker(bench)
    asker.complete("mine")
    other.complete("theirs")
    asker.questions.ask(AliasesCommand(), lambda a: asker.told.append(a.tensors), print)
    for number in (1, 2):
        link.answer(EMPTY, to=number)
    link.answer(AliasesSnapshot(storages=(), tensors=()), to=3)
    assert asker.told == [("mine", 0), ()] and other.told == [("theirs", 0)]


def test_every_answer_to_a_command_is_handed_over_and_errors_apart(asker, link):
    asker.complete("a")
    link.answer(EMPTY)
    link.answer(CompletionsSnapshot(start=3, completions=()))
    link.fail("No such name.")
    assert asker.told == [("a", 0), ("a", 3), ("a", "No such name.")]


def test_dropped_questions_are_answered_no_more(asker, link):
    asker.complete("a")
    asker.questions.drop()
    link.answer(EMPTY)
    assert asker.told == []


def test_without_an_engine_nothing_is_asked_and_no_snapshot_is_an_answer(asker, link):
    assert asker.complete("a")
    link.close()
    assert not asker.complete("b")
    link.get_ready()  # its snapshot replies to no command
    assert asker.told == [] and len(link.sent) == 1


def test_an_error_is_told_on_one_line():
    assert in_words(ErrorReport("E", "It broke.", "Mend it.")) == "It broke. Mend it."
    assert in_words(ErrorReport("E", "It broke.")) == "It broke."
