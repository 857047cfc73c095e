"""F6 and F10 to F12 step what is seen, wherever the focus is; no key means two things at once."""

from __future__ import annotations

from itertools import combinations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QPushButton, QWidget

from app import templates
from app.actions import TRACE_ACTIONS
from engine.protocol import BackwardSnapshot, ForwardSnapshot
from tests.gestures import press_key

pytestmark = pytest.mark.one_program

F10, F11, F12 = Qt.Key.Key_F10, Qt.Key.Key_F11, Qt.Key.Key_F12
SHIFT = Qt.KeyboardModifier.ShiftModifier
CODE = "import torch\nx = torch.ones(2, requires_grad=True)\ny = torch.relu(x) * 2\nz = y.sum()\n"


@pytest.fixture
def mlp(program):
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("autograd")
    settle(program)
    return program


def settle(program) -> None:
    for _ in range(3):
        program.bench.link.drain()
        QApplication.processEvents()


def press(program, widget: QWidget, key: Qt.Key, modifier=Qt.KeyboardModifier.NoModifier) -> None:
    widget.setFocus()
    focus = QApplication.focusWidget()
    assert focus is not None
    press_key(focus, key, modifier)
    settle(program)


def positions(program) -> tuple[int, int]:
    """Of the forward and the backward pass; -1 where there is none."""
    newest = program.bench.store.newest
    passes = (newest(ForwardSnapshot), newest(BackwardSnapshot))
    forward, backward = (-1 if found is None else found.position for found in passes)
    return forward, backward


def places(page) -> dict[str, QWidget]:
    """Where the focus may be, besides the panel that a step belongs to."""
    steps = page.steps
    return {
        "tab row": page.tabBar(),
        "root": page.findChild(QComboBox, "graph_root"),
        "search": page.findChild(QLineEdit, "graph_search"),
        "graph": steps.graph,
        "blocks": steps.forward.blocks,
        "batch": steps.forward.findChild(QWidget, "forward_batch"),
        "gradients": steps.backward.table,
        "lists": steps.backward.tabs.tabBar(),
        "start": steps.backward.findChild(QPushButton, "backward_start"),
    }


def test_the_passes_step_from_everywhere(mlp):
    page = mlp.window.page("autograd")
    mlp.workspaces.autograd.start_backward()
    settle(mlp)
    length = positions(mlp)[0]
    for count, (name, place) in enumerate(places(page).items()):
        press(mlp, place, F11)
        assert positions(mlp) == (length, count + 1), name
    for name, place in places(page).items():
        at = positions(mlp)[1]
        press(mlp, place, F10, SHIFT)
        assert positions(mlp)[1] == at - 1, name
    press(mlp, page.tabBar(), F11, SHIFT)
    words = page.steps.backward._words
    ran = mlp.bench.store.newest(BackwardSnapshot).step.node
    assert positions(mlp)[1] > 1 and words.node(ran).block is not None
    press(mlp, page.tabBar(), F12)
    assert mlp.bench.store.newest(BackwardSnapshot).next is None
    press(mlp, page.tabBar(), F12, SHIFT)
    assert positions(mlp)[1] == 0
    press(mlp, page.tabBar(), F12)
    at = positions(mlp)
    press(mlp, page.tabBar(), F10)  # forward has ended: nothing moves, the backward pass stays
    assert positions(mlp) == at and "F11" in mlp.window.statusBar().currentMessage()


def test_the_trace_steps_from_everywhere_while_it_is_seen(mlp):
    page = mlp.window.page("autograd")
    page.setCurrentWidget(page.trace)
    page.trace.source.input.set_source(CODE)
    press(mlp, page.tabBar(), Qt.Key.Key_F6)
    assert page.trace.trace is not None
    moves: list[str] = []
    page.trace.moved.connect(lambda move, _: moves.append(move))
    bar = page.trace.bar.buttons["over"]
    for place in (page.tabBar(), page.trace.tree, page.trace.source.reader, bar, page.trace.what):
        press(mlp, place, F10)
        press(mlp, place, F10, SHIFT)
    assert moves == ["over", "back"] * 5
    moves.clear()
    press(mlp, page.tabBar(), F11)
    press(mlp, page.tabBar(), F12)
    press(mlp, page.tabBar(), F12, SHIFT)
    press(mlp, page.tabBar(), F11, SHIFT)
    assert moves == ["step", "line", "back_line", "out"]
    assert positions(mlp) == (-1, -1)


def test_elsewhere_the_keys_lead_to_the_passes(mlp):
    page = mlp.window.page("autograd")
    page.setCurrentWidget(page.trace)
    mlp.window.show_workspace("tensors")
    console = mlp.window.page("tensors").console
    press(mlp, console, F10)
    assert mlp.window.workspace == "autograd" and page.currentWidget() is page.steps
    assert positions(mlp) == (0, -1)
    page.setCurrentWidget(page.mistakes)
    press(mlp, page.tabBar(), F11)
    assert page.currentWidget() is page.steps and positions(mlp)[1] == 0


def test_the_menu_offers_what_the_keys_do(mlp):
    page, actions = mlp.window.page("autograd"), mlp.bench.actions

    def offered() -> set[str]:
        keys = {actions[name].shortcut() for name in TRACE_ACTIONS}
        return {spec.id for spec, a in actions if a.shortcut() in keys and a.isEnabled()}

    passes = offered()
    assert not passes & set(TRACE_ACTIONS) and len(passes) == len(TRACE_ACTIONS)
    page.setCurrentWidget(page.trace)
    assert offered() == set(TRACE_ACTIONS)
    mlp.window.show_workspace("train")
    assert offered() == passes
    mlp.window.show_workspace("autograd")
    assert offered() == set(TRACE_ACTIONS)


def test_no_key_means_two_things_at_once(mlp):
    """Two enabled shortcuts of one key whose widgets can have the focus together: Qt would run
    neither of them."""
    for name in ("tensors", "model", "train", "autograd"):
        mlp.window.show_workspace(name)
    page = mlp.window.page("autograd")
    for tab in range(page.count()):
        page.setCurrentIndex(tab)
        claims = [claim for claim in _claims(mlp.window)]
        for (one, key, scope), (other, other_key, other_scope) in combinations(claims, 2):
            if key != other_key or one is other:
                continue
            assert not _together(scope, other_scope), f"{key}: {_name(one)} and {_name(other)}"


def _claims(window):
    """(shortcut, key, the widget within which it acts; None for the whole window)."""
    context = Qt.ShortcutContext
    for action in window.findChildren(QAction):
        if not action.isEnabled():
            continue
        whole = action.shortcutContext() in (context.WindowShortcut, context.ApplicationShortcut)
        scopes = [w for w in action.associatedObjects() if isinstance(w, QWidget)]
        for key in action.shortcuts():
            if whole and scopes:
                yield action, key.toString(), None
            for scope in () if whole else scopes:
                yield action, key.toString(), scope
    for shortcut in window.findChildren(QShortcut):
        whole = shortcut.context() in (context.WindowShortcut, context.ApplicationShortcut)
        for key in shortcut.keys():  # noqa: SIM118 - a QShortcut is no dict
            yield shortcut, key.toString(), None if whole else shortcut.parent()


def _together(one: QWidget | None, other: QWidget | None) -> bool:
    if one is None or other is None or one is other:
        return True
    return one.isAncestorOf(other) or other.isAncestorOf(one)


def _name(claim) -> str:
    return f"{claim.objectName()} {claim.parent().objectName() if claim.parent() else ''}"


def test_buttons_and_menus_tell_the_same_keys(mlp):
    """What a bar's tooltip promises is what the window's menu has."""
    page, actions = mlp.window.page("autograd"), mlp.bench.actions
    pairs = {
        "forward_step": "autograd.step",
        "backward_back": "autograd.back",
        "backward_step": "autograd.step_backward",
        "backward_run": "autograd.run_backward",
        "backward_out": "autograd.out_backward",
        "backward_back_run": "autograd.run_back",
        "trace_over": "trace.over",
        "trace_back": "trace.back",
        "trace_step": "trace.into",
        "trace_out": "trace.out",
        "trace_line": "trace.line",
        "trace_back_line": "trace.back_line",
    }
    for name, action in pairs.items():
        keys = page.findChild(QWidget, name).toolTip().rpartition("(")[2].rstrip(")").split(", ")
        assert keys[0] == actions[action].shortcut().toString(), name
    starts = {
        "forward_start": "autograd.start",
        "backward_start": "autograd.start_backward",
        "trace_start": "trace.start",
    }
    for name, action in starts.items():
        key = actions[action].shortcut().toString(QKeySequence.SequenceFormat.PortableText)
        assert key in page.findChild(QPushButton, name).toolTip()
