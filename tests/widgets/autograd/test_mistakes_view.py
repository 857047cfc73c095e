"""The page of usual mistakes: its two pieces of code, and the question after a gradient."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from engine.protocol import ErrorReport, WhyNoGradientSnapshot
from widgets.autograd.mistakes_view import MistakesView


@pytest.fixture
def view(qtbot) -> MistakesView:
    made = MistakesView()
    qtbot.addWidget(made)
    made.resize(1200, 800)
    made.show()
    return made


@pytest.fixture
def asked(view) -> list[tuple[str, str]]:
    questions: list[tuple[str, str]] = []
    view.why_requested.connect(lambda name, root: questions.append((name, root)))
    return questions


def said(view: MistakesView, name: str) -> str:
    label = view.findChild(QLabel, name)
    assert label is not None
    return label.text() if label.isVisible() else ""


def test_enter_in_either_field_asks_why_there_is_no_gradient(view, asked) -> None:
    view.name.show_text(" w ")
    view.root.show_text(" loss ")
    for press in (view.name, view.root):
        QTest.keyClick(press, Qt.Key.Key_Return)
    view.ask.click()
    assert asked == [("w", "loss")] * 3


def test_without_a_name_it_says_what_to_name(view, asked) -> None:
    view.name.show_text("  ")
    view.ask.click()
    assert asked == []
    assert said(view, "why_answer") and "net.weight" in said(view, "why_hint")


def test_an_answer_can_be_shown_where_the_graph_has_a_node_for_it(view, qtbot) -> None:
    answer = WhyNoGradientSnapshot(
        reason="cut", text="It was detached.", hint="Drop detach().", node=3
    )
    view.show_why(answer, "loss")
    assert said(view, "why_answer") == "It was detached."
    assert said(view, "why_hint") == "Drop detach()."
    assert view.where.isVisible()
    view.show_why(answer)  # asked about a graph that is not known by name
    assert not view.where.isVisible()
    view.show_why(WhyNoGradientSnapshot(reason="not_leaf", text="It is no leaf."), "loss")
    assert not view.where.isVisible()
    view.show_why(answer, "loss")
    view.show_problem(ErrorReport("NameError", "There is no w.", "Make one."))
    assert said(view, "why_answer") == "There is no w." and not view.where.isVisible()


def test_what_ran_is_told_beside_the_code_that_ran(view) -> None:
    wrong, right = view.code.code(), view.instead.code()
    graph = view._graph
    assert not graph.isEnabled()
    view.show_ran("another(code)", None, "printed")
    assert not graph.isEnabled()
    view.show_ran(wrong, ErrorReport("RuntimeError", "no"), "2\n")
    assert graph.isEnabled() and view.mistake.root in graph.toolTip()
    assert said(view, "mistake_error") == "RuntimeError: no"
    assert said(view, "mistake_printed") == "2"
    view.show_ran(right, None, "4\n")
    assert said(view, "mistake_instead_ran") == "It ran without an error.\n4"
    view.show_ran(right, ErrorReport("ValueError", "bad"))
    assert said(view, "mistake_instead_ran") == "ValueError: bad"
    assert said(view, "mistake_error") == "RuntimeError: no"
    other = view._mistakes[1].key
    view.choose(other)
    assert view.mistake.key == other and not graph.isEnabled()
    for name in ("mistake_error", "mistake_printed", "mistake_instead_ran"):
        assert said(view, name) == ""


def test_each_request_names_its_code_its_place_and_its_words(view) -> None:
    ran, graphs, places = [], [], []
    view.run_requested.connect(ran.append)
    view.graph_requested.connect(lambda *of: graphs.append(of))
    view.where_requested.connect(lambda *of: places.append(of))
    mistake = view.mistake
    view.code.run.click()
    view.instead.run.click()
    assert ran == [view.code.code(), view.instead.code()]
    view.show_ran(ran[0], None)
    view._graph.click()
    assert graphs == [(mistake.root, mistake.node, f"The mistake: {mistake.title}. {mistake.look}")]
    view.show_why(WhyNoGradientSnapshot(reason="cut", text="It was detached.", node=3), "loss")
    view.where.click()
    assert places == [("loss", 3, "It was detached.")]


def test_every_mistake_shows_its_own_words(view, asked, qtbot) -> None:
    with qtbot.assertNotEmitted(view.run_requested):
        for mistake in (*view._mistakes[1:], view._mistakes[0]):
            view.show_why(WhyNoGradientSnapshot(reason="cut", text="Cut.", hint="No.", node=1), "l")
            view.choose(mistake.key)
            assert view.mistake == mistake
            shown = [said(view, f"mistake_{part}") for part in ("happens", "why", "look")]
            assert shown == [mistake.happens, mistake.why, mistake.look]
            codes = [view.code.code(), view.instead.code()]
            assert codes == [mistake.wrong.rstrip(), mistake.right.rstrip()]
            assert (view.name.text(), view.root.text()) == (mistake.missing, mistake.root)
            assert (said(view, "why_answer"), said(view, "why_hint")) == ("", "")
            assert not view.where.isVisible()
            assert view._graph.toolTip().startswith("Run the mistake first")
    assert asked == []


def test_a_mistake_that_runs_again_has_no_error_from_before(view) -> None:
    view.show_ran(view.code.code(), ErrorReport("RuntimeError", "no"))
    assert said(view, "mistake_error") == "RuntimeError: no"
    view.code.run.click()
    assert said(view, "mistake_error") == ""
