"""The element below Train's parameters: when the engine is asked, and what is shown."""

from __future__ import annotations

import pytest

from app.presenters.train.elements import ElementPresenter
from engine.protocol import Element, ElementSnapshot, ReadElementCommand
from tests.labels import said
from widgets.training.element_view import ElementView


@pytest.fixture
def view(bench, link, qtbot) -> ElementView:
    link.get_ready()
    view = ElementView()
    qtbot.addWidget(view)
    view.presenter = ElementPresenter(bench, view, bench.window)
    return view


def test_a_chosen_parameter_is_asked_for_once_it_is_seen(view, bench, link):
    assert link.sent == []
    view.choose("0.weight")
    (command,) = link.sent
    assert isinstance(command, ReadElementCommand)
    assert (command.name, command.index) == ("0.weight", None)
    assert (command.subject, command.model) == (bench.project.subject, bench.project.model)
    element = Element(index=(2, 1), value=0.5, gradient=3.0)
    link.answer(ElementSnapshot(name="0.weight", element=element))
    assert said(view, "element_title") == "0.weight[2, 1]"
    view._place.setText("0, 0")
    view._place.returnPressed.emit()
    assert link.sent[-1].index == (0, 0) and len(link.sent) == 2
    link.fail("Index 9 is out of range.", "Use 0.")
    assert said(view, "element_trouble") == "Index 9 is out of range. Use 0."
    view.choose("")
    assert len(link.sent) == 2
