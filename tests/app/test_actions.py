"""The table of actions: every row calls something, and nothing else is called."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget

from app.actions import ON_CANVAS, SPECS, TRACE_ACTIONS, Actions


@pytest.fixture
def actions(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    yield Actions(window)


def test_every_action_calls_its_own_callable_without_arguments(actions):
    called: list[str] = []
    actions.bind({spec.id: lambda name=spec.id: called.append(name) for spec in SPECS})
    for spec in SPECS:
        actions[spec.id].trigger()
    assert called == [spec.id for spec in SPECS]


def test_an_action_without_a_callable_is_refused_by_its_name(actions):
    calls = {spec.id: print for spec in SPECS if spec.id not in ("file.open", "train.stop")}
    with pytest.raises(ValueError, match=r"actions that call nothing: file\.open, train\.stop$"):
        actions.bind(calls)


def test_a_callable_without_an_action_is_refused_by_its_name(actions):
    calls = {spec.id: print for spec in SPECS} | {"file.burn": print}
    with pytest.raises(ValueError, match=r"callables without an action: file\.burn$"):
        actions.bind(calls)


def test_the_step_keys_belong_to_the_trace_or_to_the_passes(actions):
    keys = {actions[name].shortcut().toString() for name in TRACE_ACTIONS}
    others = {s.id for s in SPECS if s.shortcut in keys} - set(TRACE_ACTIONS)
    assert len(others) == len(TRACE_ACTIONS) == 7
    for to_trace in (True, False):
        actions.give_step_keys(to_trace)
        assert {actions[name].isEnabled() for name in TRACE_ACTIONS} == {to_trace}
        assert {actions[name].isEnabled() for name in others} == {not to_trace}
        assert actions["file.open"].isEnabled()


def test_an_action_is_as_its_row_says(actions):
    for spec, action in actions:
        assert action is actions[spec.id]
        assert (action.objectName(), action.text(), action.statusTip()) == (
            spec.id, spec.text, spec.tip,
        )  # fmt: skip
        assert action.shortcut() == QKeySequence(spec.shortcut)
        keys = f" ({spec.shortcut})" if spec.shortcut else ""
        assert action.toolTip() == spec.tip + keys
        assert action.isCheckable() == spec.checkable and not action.icon().isNull()
    assert [spec for spec, _ in actions] == list(SPECS)


def test_the_keys_of_the_canvas_work_on_the_canvas_alone(actions, qtbot):
    window, canvas = actions.parent(), QWidget()
    qtbot.addWidget(canvas)
    named = {action.objectName() for action in window.actions()}
    assert named == {spec.id for spec in SPECS} - set(ON_CANVAS)
    edits = {spec.id for spec in SPECS if spec.id.startswith("edit.")}
    assert set(ON_CANVAS) == edits - {"edit.undo", "edit.redo"} | {"view.fit", "model.insert"}
    actions.give_canvas(canvas)
    assert [action.objectName() for action in canvas.actions()] == list(ON_CANVAS)
    there = Qt.ShortcutContext.WidgetWithChildrenShortcut
    for spec, action in actions:
        assert (action.shortcutContext() == there) == (spec.id in ON_CANVAS)
