"""The form for parameters: typing, checking, committing, and resetting."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QToolButton

from engine.project import catalogue
from engine.project.catalogue import Param
from widgets.fields import CheckField, ChoiceField, TextField, tooltip
from widgets.forms import ParamForm

PARAMS = (
    Param("in_features", "int", required=True, initial=64, minimum=1, doc="size of each sample"),
    Param("p", "float", default=0.5, minimum=0, maximum=1),
    Param("lr", "float", default=0.001, minimum=0),
    Param("kernel_size", "ints", default=3, minimum=1),
    Param("shape", "shape", default=(1, 8, 8)),
    Param("betas", "floats", default=(0.9, 0.999)),
    Param("bias", "bool", default=True),
    Param("mode", "choice", default="mean", choices=("mean", "sum")),
    Param("kdim", "int", default=None, optional=True),
)


@pytest.fixture
def form(qtbot) -> ParamForm:
    widget = ParamForm()
    qtbot.addWidget(widget)
    widget.show_params(PARAMS, {})
    widget.show()
    return widget


@pytest.fixture
def edits(form) -> list[tuple[str, object]]:
    told: list[tuple[str, object]] = []
    form.value_edited.connect(lambda name, value: told.append((name, value)))
    return told


def line_edit(form: ParamForm, name: str):
    field = form.field(name)
    assert isinstance(field, TextField)
    return field.lineEdit()


def retype(form: ParamForm, name: str, text: str, *, enter: bool = True) -> None:
    edit = line_edit(form, name)
    edit.selectAll()
    QTest.keyClicks(edit, text) if text else QTest.keyClick(edit, Qt.Key.Key_Delete)
    if enter:
        QTest.keyClick(form.field(name), Qt.Key.Key_Return)


def test_defaults_and_starting_values_are_shown(form):
    shown = {
        name: line_edit(form, name).text()
        for name in ("in_features", "p", "lr", "kernel_size", "shape", "betas", "kdim")
    }
    assert shown == {
        "in_features": "64",
        "p": "0.5",
        "lr": "0.001",
        "kernel_size": "3",
        "shape": "(1, 8, 8)",
        "betas": "(0.9, 0.999)",
        "kdim": "None",
    }
    assert form.field("bias").isChecked()
    assert form.field("mode").currentText() == "mean"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("in_features", "128", 128),
        ("p", "0.25", 0.25),
        ("lr", "3e-4", 3e-4),
        ("kernel_size", "(3, 5)", (3, 5)),
        ("kernel_size", "5", 5),
        ("shape", "3, 16, 16", (3, 16, 16)),
        ("betas", "0.5, 0.9", (0.5, 0.9)),
        ("kdim", "7", 7),
    ],
)
def test_a_typed_value_is_told_once_on_enter(form, edits, name, text, value):
    retype(form, name, text)
    assert edits == [(name, value)]
    assert type(edits[0][1]) is type(value)
    line_edit(form, name).clearFocus()
    assert len(edits) == 1


def test_leaving_the_field_commits(form, edits, qtbot):
    form.activateWindow()
    qtbot.waitUntil(form.isActiveWindow)
    form.field("in_features").setFocus()
    retype(form, "in_features", "32", enter=False)
    assert edits == []
    QTest.keyClick(form.field("in_features"), Qt.Key.Key_Tab)
    assert edits == [("in_features", 32)]
    assert form.field("p").hasFocus()


@pytest.mark.parametrize(
    ("name", "text"),
    [("in_features", "two"), ("in_features", "0"), ("p", "1.5"), ("in_features", "")],
)
def test_a_fault_is_said_while_typing_and_nothing_is_lost(form, edits, name, text):
    retype(form, name, text, enter=False)
    label = form.findChild(QLabel, f"param_{name}_error")
    assert label.isVisible() and name in label.text() and label.text() == form.error(name)
    assert form.field(name)._faulty
    QTest.keyClick(form.field(name), Qt.Key.Key_Return)
    assert edits == []
    assert line_edit(form, name).text() == text
    retype(form, name, "1", enter=False)
    assert not label.isVisible()


def test_other_parameters_take_the_place_of_those_before(form, qapp):
    before = [form.field(param.name) for param in PARAMS]
    form.show_params(PARAMS[:2], {}, of="another")
    qapp.processEvents()
    assert not any(field.isVisible() for field in before)
    assert [field.isVisible() for field in map(form.field, ("in_features", "p"))] == [True, True]
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(form.findChildren(TextField)) == 2


def test_a_fault_is_outlined_at_once(form, qapp):
    field = form.field("p")
    qapp.processEvents()
    without = field.grab().toImage()
    painted = []

    class Watch(QObject):
        def eventFilter(self, _watched, event) -> bool:
            if event.type() == QEvent.Type.Paint:
                painted.append(event)
            return False

    watch = Watch()
    field.installEventFilter(watch)
    for faulty in (True, False):
        painted.clear()
        field.set_faulty(faulty)
        qapp.processEvents()
        assert painted
        assert (field.grab().toImage() != without) == faulty


def test_escape_takes_back_what_was_typed(form, edits):
    retype(form, "in_features", "two", enter=False)
    QTest.keyClick(form.field("in_features"), Qt.Key.Key_Escape)
    assert line_edit(form, "in_features").text() == "64"
    assert form.error("in_features") == "" and not form.field("in_features")._faulty
    assert edits == []


def test_arrows_step_within_the_bounds(form, edits):
    QTest.keyClick(form.field("in_features"), Qt.Key.Key_Up)
    QTest.keyClick(form.field("p"), Qt.Key.Key_Down)
    assert edits == [("in_features", 65), ("p", 0.45)]
    form.show_params(PARAMS, {"in_features": 1})
    QTest.keyClick(form.field("in_features"), Qt.Key.Key_Down)
    assert len(edits) == 2


def test_the_wheel_changes_nothing(form, edits):
    for name in ("in_features", "mode"):
        field = form.field(name)
        at = QPointF(field.rect().center())
        event = QWheelEvent(
            at,
            field.mapToGlobal(at),
            QPoint(),
            QPoint(0, 120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(field, event)
    assert edits == []


def test_check_box_and_choice_commit_at_once(form, edits):
    check, choice = form.field("bias"), form.field("mode")
    assert isinstance(check, CheckField) and isinstance(choice, ChoiceField)
    QTest.mouseClick(check, Qt.MouseButton.LeftButton, pos=QPoint(8, check.height() // 2))
    QTest.keyClick(choice, Qt.Key.Key_Down)
    assert edits == [("bias", False), ("mode", "sum")]


def test_a_value_that_is_not_the_default_is_marked_and_can_be_reset(form, edits):
    reset = form.findChild(QToolButton, "param_lr_reset")
    assert not reset.isVisible()
    form.show_params(PARAMS, {"lr": 0.1})
    assert reset.isVisible()
    QTest.mouseClick(reset, Qt.MouseButton.LeftButton)
    assert edits == [("lr", 0.001)]
    assert line_edit(form, "lr").text() == "0.001"
    assert not reset.isVisible()


def test_a_value_that_is_not_the_default_is_bold_from_the_first(qtbot):
    form = ParamForm()
    qtbot.addWidget(form)
    form.show_params(PARAMS, {"lr": 0.1})
    form.show()
    bold = {label.text() for label in form.findChildren(QLabel) if label.font().bold()}
    assert bold == {"lr"}
    form.show_params(PARAMS, {"p": 0.1})
    bold = {label.text() for label in form.findChildren(QLabel) if label.font().bold()}
    assert bold == {"p"}


def test_a_new_report_leaves_what_is_being_typed(form):
    retype(form, "in_features", "12", enter=False)
    form.show_params(PARAMS, {"p": 0.1})
    assert line_edit(form, "in_features").text() == "12"
    assert line_edit(form, "p").text() == "0.1"
    form.show_params(PARAMS, {}, of="another block")
    assert line_edit(form, "in_features").text() == "64"


def test_undo_of_a_shown_value_is_shown(form, edits):
    retype(form, "in_features", "128")
    form.show_params(PARAMS, {"in_features": 128})
    form.show_params(PARAMS, {"in_features": 64})
    assert line_edit(form, "in_features").text() == "64"


def test_tooltips_teach(form):
    tip = form.field("in_features").toolTip()
    assert "size of each sample" in tip and "At least 1" in tip
    assert "Default: 0.001" in form.field("lr").toolTip()


@pytest.mark.parametrize(
    ("param", "lines"),
    [
        (Param("n", "int", required=True, minimum=1), ["At least 1."]),
        (Param("p", "float", default=0.5, maximum=0.75), ["Default: 0.5", "At most 0.75."]),
        (
            Param("seed", "int", default=0, minimum=0, maximum=2**32 - 1),
            ["Default: 0", "Between 0 and 4,294,967,295."],
        ),
        (
            Param("k", "ints", required=True, choices=("same",), doc="The window."),
            ["The window.", "One number for all dimensions, or one each: 3 or (3, 5).",
             "Or one of same."],
        ),
        (Param("s", "shape", required=True), ["Sizes with commas, such as 1, 8, 8."]),
        (Param("b", "floats", required=True), ["Numbers with commas, such as 0.9, 0.999."]),
        (Param("m", "choice", required=True, choices=("mean", "sum")), []),
        (
            Param("d", "int", optional=True),
            ["Default: None", "None, or empty, leaves it out."],
        ),
    ],
)  # fmt: skip
def test_a_tooltip_says_the_meaning_the_bounds_and_how_to_type(param, lines):
    assert tooltip(param).split("\n") == [param.name, *(lines or [""])]


def test_every_parameter_of_the_catalogue_takes_its_own_default_back(qtbot):
    """What a field shows for a default must be read as that default."""
    form = ParamForm()
    qtbot.addWidget(form)
    told: list[tuple[str, object]] = []
    form.value_edited.connect(lambda name, value: told.append((name, value)))
    for key, kind in catalogue.kinds().items():
        form.show_params(kind.params, {}, of=key)
        for param in kind.params:
            field = form.field(param.name)
            if isinstance(field, TextField):
                QTest.keyClick(field, Qt.Key.Key_Return)
                assert form.error(param.name) == "", (key, param.name)
    assert told == []
