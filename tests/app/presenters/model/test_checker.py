"""The model's check: every revision, one at a time."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from app.presenters.model.checker import ModelChecker
from app.processes.exit_reasons import explain_exit
from engine.project import edits
from engine.protocol import CheckModelCommand
from tests.app.conftest import SCRIPT


def change(bench) -> None:
    bench.store.set_project(edits.add_block(bench.project, "nn.Linear", 0, 0)[0])


def revisions(link) -> list[int]:
    assert all(isinstance(command, CheckModelCommand) for command in link.sent)
    return [command.revision for command in link.sent]


def lose(link) -> None:
    """The engine ends by itself."""
    link.close()
    link.lost.emit(explain_exit(-9))


@pytest.fixture
def checker(bench) -> ModelChecker:
    return ModelChecker(bench, bench.window)


def test_a_new_engine_is_given_the_model(checker, bench, link):
    change(bench)
    assert link.sent == []
    link.get_ready()
    assert revisions(link) == [2]
    assert link.sent[0].model == bench.project.model
    assert link.sent[0].training == bench.project.training


def test_during_a_check_only_the_newest_revision_waits(checker, bench, link):
    link.get_ready()
    for _ in range(3):
        change(bench)
    assert revisions(link) == [1]
    link.fail("It does not run.")
    assert revisions(link) == [1, 4]
    link.fail("It does not run.")
    assert revisions(link) == [1, 4]
    change(bench)
    assert revisions(link) == [1, 4, 5]


def test_a_model_that_was_sent_to_a_starting_engine_is_not_sent_again(checker, bench, link):
    link.start()
    change(bench)
    link.get_ready()
    assert revisions(link) == [2]


def test_a_check_that_ended_an_engine_is_not_sent_to_the_next(checker, bench, link):
    link.get_ready()
    lose(link)
    link.get_ready()
    assert revisions(link) == [1]
    banner = bench.window.banners.banner("check")
    told = "".join(label.text() for label in banner.findChildren(QLabel))
    assert "The engine ended while it checked this model" in told
    change(bench)
    assert revisions(link) == [1, 2]
    assert bench.window.banners.banner("check") is None


def test_the_user_can_have_it_checked_again(checker, bench, link):
    link.get_ready()
    lose(link)
    link.get_ready()
    (again,) = (
        button
        for button in bench.window.banners.banner("check").findChildren(QPushButton)
        if button.text() == "Check again"
    )
    again.click()
    assert revisions(link) == [1, 1]
    assert bench.window.banners.banner("check") is None
    lose(link)
    link.get_ready()
    assert revisions(link) == [1, 1]
    assert bench.window.banners.banner("check") is not None


def test_an_engine_that_ends_after_the_answer_is_not_the_checks_fault(checker, bench, link):
    link.get_ready()
    link.fail("It does not run.")
    lose(link)
    link.get_ready()
    assert revisions(link) == [1, 1]


def test_a_model_that_changed_while_there_was_no_engine_is_checked(checker, bench, link):
    link.get_ready()
    lose(link)
    change(bench)
    link.get_ready()
    assert revisions(link) == [1, 2]


def test_an_engine_that_the_user_restarts_is_no_loss(checker, bench, link):
    link.get_ready()
    for _ in range(3):
        link.close()
        link.get_ready()
    assert revisions(link) == [1] * 4


def test_an_engine_that_ended_owes_no_answer(checker, bench, link):
    link.get_ready()
    change(bench)
    link.close()
    link.get_ready()
    assert revisions(link) == [1, 2]
    link.fail("It does not run.")
    assert revisions(link) == [1, 2]


def test_a_script_is_not_asked_about_the_model(checker, bench, link):
    link.attach_to(SCRIPT)
    link.get_ready()
    change(bench)
    assert link.sent == []
    link.close()
    link.get_ready()  # detached: an engine of the window's own
    assert revisions(link) == [2]
