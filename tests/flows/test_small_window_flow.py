"""Every workspace fits a projector of 1024 by 700 pixels, also with larger letters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QRect, QSettings, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPushButton,
    QTabBar,
    QToolButton,
    QWidget,
)

from app import templates
from app.application import Application, build
from app.processes.inline_link import InlineLink
from app.settings import Settings
from engine.project.examples import trace_examples
from tests.gestures import type_text
from widgets import theme

SMALL = (1024, 700)
CONTROLS = QAbstractButton | QLineEdit | QComboBox | QAbstractSpinBox


LARGER, LARGEST = 1.25, 1.4


@pytest.fixture
def letters(request, qapp) -> Iterator[float]:
    """The program's font made larger, as a person may ask of the system: the largest, unless a test
    asks for another. What fits with it fits with the smaller ones."""
    factor = getattr(request, "param", LARGEST)
    before = qapp.font()
    font = qapp.font()
    font.setPointSizeF(font.pointSizeF() * factor)
    qapp.setFont(font)
    theme.apply(qapp, theme.current())
    yield factor
    qapp.setFont(before)


@pytest.fixture
def small(letters, program, qapp):
    """The program in a small window."""
    program.window.resize(*SMALL)
    qapp.processEvents()
    return program


def settle(program) -> None:
    for _ in range(3):
        program.bench.link.drain()
        QApplication.processEvents()


def cut_off(page: QWidget) -> list[str]:
    """The controls of a page that cannot be seen whole, by name. What lies in a list or a scrolled
    page can be scrolled to; a tab bar has arrows."""
    found = []
    for control in page.findChildren(QWidget):
        ours = control.objectName() and not control.objectName().startswith("qt_")
        if not ours or not isinstance(control, CONTROLS) or not control.isVisible():
            continue
        if _scrolls(control, page) or isinstance(control.parentWidget(), QComboBox | QTabBar):
            continue
        inside = control.visibleRegion().boundingRect() == control.rect()
        needed = control.minimumSizeHint() if isinstance(control, QAbstractButton) else None
        if not inside or (needed is not None and control.width() < needed.width()):
            found.append(f"{control.objectName()} {control.size()}")
    return found


def _scrolls(control: QWidget, page: QWidget) -> bool:
    above: QWidget | None = control
    while above is not None and above is not page:
        above = above.parentWidget()
        if isinstance(above, QAbstractScrollArea):
            return True
    return False


def assert_fits(program, page: QWidget) -> None:
    settle(program)
    window = program.window
    needed = window.minimumSizeHint()
    assert (needed.width() <= SMALL[0], needed.height() <= SMALL[1]) == (True, True), needed
    assert (window.width(), window.height()) == SMALL
    assert cut_off(page) == []


def test_start(small):
    page = small.window.page("start")
    assert_fits(small, page)
    for button in page.findChildren(QPushButton):
        right = button.mapTo(page.widget(), button.rect().topRight()).x()
        assert button.minimumSizeHint().width() <= button.width(), button.text()
        assert right < page.viewport().width(), button.text()
    for card in small.window.page("start").findChildren(QWidget):
        if card.objectName().startswith("template_"):
            layout = card.layout()
            assert card.height() >= layout.totalHeightForWidth(card.width())


def test_rail(small):
    for button in small.window.rail.buttons.values():
        words = button.fontMetrics().horizontalAdvance(button.text())
        assert words < button.width() <= small.window.rail.width()


def test_tensors(small):
    small.window.show_workspace("tensors")
    page = small.window.page("tensors")
    for line in ("x = torch.arange(24.).view(4, 6)", "t = x.T", "y = x[1:3, ::2]", "t.view(-1)"):
        page.console.submit(line)
        settle(small)
    small.workspaces.tensors.select("y", (1, 2))
    for place in range(page.tabs.count()):
        page.tabs.setCurrentIndex(place)
        assert_fits(small, page)


def test_model(small):
    small.bench.files.new(templates.load_template("lenet"))
    small.window.show_workspace("model")
    settle(small)
    page = small.window.page("model")
    page.canvas.select([small.bench.store.project.model.blocks[1].id])
    assert_fits(small, page)


def test_train(small):
    small.bench.files.new(templates.load_template("mlp"))
    small.window.show_workspace("train")
    small.workspaces.train.step()
    page = small.window.page("train")
    assert_fits(small, page)
    for pane in (page.bar.runs, page.bar.predictions):
        pane.click()
        assert_fits(small, page)
        pane.click()


def begin(program, qtbot):
    """A batch gone forward and five nodes back; returns the Autograd page."""
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("autograd")
    settle(program)
    page = program.window.page("autograd")
    page.steps.show_more(True)
    program.workspaces.autograd.start_backward()
    program.bench.link.drain()
    qtbot.waitUntil(lambda: page.steps.graph.laid_out, timeout=30_000)
    for _ in range(5):
        program.workspaces.autograd.step_backward()
    settle(program)
    return page


@pytest.mark.parametrize("letters", [LARGER, LARGEST], indirect=True)
def test_autograd(letters, small, qtbot):
    small.window.show_workspace("autograd")
    assert_fits(small, small.window.page("autograd"))
    page = begin(small, qtbot)
    steps = page.steps
    assert_fits(small, page)
    if letters < LARGEST:  # with the largest letters the window grows by some pixels
        fold = steps.backward.findChild(QToolButton, "backward_options_fold")
        fold.click()
        steps.backward.options.gradient.setText("torch.ones(())")
        assert_fits(small, page)
        fold.click()
        steps.backward.next_node.actions_by_key["scale"].trigger()
        assert_fits(small, page)
        steps.backward.next_node.show_applied()
    for tabs in (steps.backward.tabs, steps.backward.findChild(QWidget, "rule_card")):
        for place in range(tabs.count()):
            tabs.setCurrentIndex(place)
            assert_fits(small, page)
    steps.columns.bring_up(steps.forward)
    assert_fits(small, page)


def test_the_other_tabs_of_autograd(small):
    small.bench.files.new(templates.load_template("mlp"))
    small.window.show_workspace("autograd")
    page = small.window.page("autograd")
    page.setCurrentWidget(page.trace)
    page.trace.source.input.set_source(trace_examples()["nan"].code)
    page.trace.start()
    page.trace.moved.emit("origin", -1)
    assert_fits(small, page)
    page.setCurrentWidget(page.derivatives)
    for place in range(page.derivatives.form.kind.count()):
        page.derivatives.form.kind.setCurrentIndex(place)
        assert_fits(small, page)
    page.setCurrentWidget(page.flow)
    assert_fits(small, page)
    page.setCurrentWidget(page.mistakes)
    for row in range(page.mistakes.list.count()):
        page.mistakes.list.setCurrentRow(row)
        assert_fits(small, page)


# -- forward and backward share a place


def test_the_pass_that_moves_is_in_front(program, qtbot):
    page = begin(program, qtbot)
    steps = page.steps
    assert not steps.columns.in_tabs and steps.forward.isVisible()
    program.window.resize(*SMALL)
    settle(program)
    assert steps.columns.in_tabs
    assert steps.backward.isVisible() and not steps.forward.isVisible()
    program.bench.actions["autograd.start"].trigger()
    settle(program)
    assert steps.forward.isVisible() and not steps.backward.isVisible()
    program.bench.actions["autograd.step_backward"].trigger()
    settle(program)
    assert steps.backward.isVisible()
    steps.columns.bring_up(steps.forward)
    qtbot.waitUntil(lambda: steps.graph.laid_out, timeout=30_000)
    steps.graph.select(2)
    assert steps.backward.isVisible()
    program.window.resize(1440, 900)
    settle(program)
    assert not steps.columns.in_tabs
    assert steps.forward.isVisible() and steps.backward.isVisible()
    left = steps.forward.mapTo(steps, steps.forward.rect().topLeft()).x()
    assert left < steps.graph.mapTo(steps, steps.graph.rect().topLeft()).x()


def test_the_field_in_which_one_types_keeps_the_focus(program, qtbot):
    steps = begin(program, qtbot).steps
    steps.backward.findChild(QToolButton, "backward_options_fold").click()
    field = steps.backward.options.gradient
    field.setFocus()
    type_text(field, "torch")
    program.window.resize(*SMALL)
    settle(program)
    assert field.hasFocus() and field.isVisible()
    forward = steps.forward.findChild(QAbstractSpinBox, "forward_batch")
    steps.columns.bring_up(steps.forward)
    forward.setFocus()
    program.window.resize(1440, 900)
    settle(program)
    assert forward.hasFocus()


@pytest.fixture
def open_again(qtbot, tmp_path, answers):
    """Close the program that is open, if one is, and open it on the same settings."""
    opened: list[Application] = []

    def close() -> None:
        program = opened.pop()
        program.window.close()
        program.window.deleteLater()
        program.deleteLater()

    def start() -> Application:
        if opened:
            close()
        path = str(tmp_path / "settings.ini")
        settings = Settings(QSettings(path, QSettings.Format.IniFormat))
        program = build(InlineLink, answers, settings, tmp_path / "recovery")
        opened.append(program)
        program.window.show()
        program.start()
        program.window.show_workspace("autograd")
        settle(program)
        return program

    yield start
    close()


def test_the_columns_are_remembered(open_again):
    program = open_again()
    columns = program.window.page("autograd").steps.columns
    columns.setSizes([400, 500, 468])
    three = columns.sizes()
    program.window.resize(*SMALL)
    settle(program)
    columns.setSizes([430, 516])
    two = columns.sizes()
    assert two[1] > 490
    program = open_again()
    columns = program.window.page("autograd").steps.columns
    program.window.resize(*SMALL)
    settle(program)
    assert columns.in_tabs and columns.sizes() == two
    program.window.resize(1440, 900)
    settle(program)
    assert not columns.in_tabs and columns.sizes() == three


# -- the step bar


def test_the_rarer_moves_fold_into_a_menu(program, qtbot):
    backward = begin(program, qtbot).steps.backward
    bar = backward.findChild(QToolButton, "backward_more").parentWidget()
    program.window.resize(1920, 1080)
    settle(program)
    assert not bar.more.isVisible() and all(b.isVisible() for b in bar.buttons.values())
    bar.setFixedWidth(bar.minimumSizeHint().width())
    settle(program)
    folded = {key for key, button in bar.buttons.items() if not button.isVisible()}
    assert folded == {"reset", "back_run", "leaf", "out", "to", "end"}
    assert bar.more.isVisible() and bar.more.focusPolicy() & Qt.FocusPolicy.TabFocus
    shown = [b for b in (*bar.buttons.values(), bar.more) if b.isVisible()]
    spans = [QRect(b.pos(), b.size()) for b in shown]
    assert not any(a.intersects(b) for a in spans for b in spans if a is not b)
    assert spans[-1].right() < bar.width()
    actions = {action.text(): action for action in bar.more.menu().actions()}
    assert len(actions) == 6
    leaf = actions["Run to the next leaf: a .grad is filled"]
    assert leaf.shortcut().toString() == "Ctrl+Down"
    leaf.trigger()
    settle(program)
    step = program.bench.store.newest(type(backward._snapshot)).step
    assert backward._words.node(step.node).kind == "leaf"
