"""Every control of every view, as it is first seen, says what it is and what it does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QSlider,
    QTabBar,
    QWidget,
)

from engine.project import catalogue
from tests.words import assert_same_words
from widgets.artifacts.file_view import FileView
from widgets.autograd.autograd_view import AutogradView
from widgets.autograd.mistakes_view import MistakesView
from widgets.canvas.model_canvas import ModelCanvas
from widgets.console.console_view import ConsoleView
from widgets.console.variables_view import VariablesView
from widgets.derivatives.flow_view import FlowView
from widgets.derivatives.view import DerivativeView
from widgets.exporting.export_view import ExportView
from widgets.guide.view import Guide, GuideView
from widgets.memory.alias_map import AliasMapView
from widgets.memory.storage_view import StorageView
from widgets.model.code_view import CodeView
from widgets.model.palette import BlockPalette
from widgets.model.properties import BlockProperties
from widgets.operations.create_form import CreateForm
from widgets.operations.operation_view import OperationView
from widgets.rules.node_page import NodePage
from widgets.rules.rule_card import RuleCard
from widgets.shapes.broadcast_view import BroadcastView
from widgets.shapes.pick_view import PickView
from widgets.shapes.product_view import ProductView
from widgets.shapes.reduction_view import ReductionView
from widgets.structure.view import StructureView
from widgets.trace.view import TraceView
from widgets.training.train_view import TrainView
from widgets.values.values_view import ValuesView


def code_view() -> CodeView:
    """With the editor that it makes for its first code."""
    view = CodeView()
    view.show_code("x = 1", {})
    return view


def guide_view() -> GuideView:
    return GuideView([Guide("first.md", "# First\n\nSome words.\n\n## A part\n\nMore.\n")])


SOME_KINDS = tuple(catalogue.kinds().values())[:12]
VIEWS: tuple[Callable[[], QWidget], ...] = (
    AutogradView, MistakesView, ModelCanvas, ConsoleView, VariablesView, FlowView, DerivativeView,
    ExportView, AliasMapView, StorageView, code_view, lambda: BlockPalette(SOME_KINDS),
    BlockProperties, CreateForm, OperationView, NodePage, RuleCard, BroadcastView, PickView,
    ProductView, ReductionView, FileView, StructureView, TraceView, TrainView, ValuesView,
    guide_view,
)  # fmt: skip
CONTROLS = (QAbstractButton, QAbstractSpinBox, QComboBox, QLineEdit, QSlider)
"""Tables, trees and lists teach by their headings or their rows."""


def controls(view: QWidget) -> list[QWidget]:
    """Without the parts of which Qt makes its own controls."""
    found = [child for child in view.findChildren(QWidget) if isinstance(child, CONTROLS)]
    own = (QComboBox, QAbstractSpinBox, QTabBar, QAbstractItemView, QLineEdit)
    return [c for c in found if c.objectName()[:3] != "qt_" and not isinstance(c.parent(), own)]


def spoken(control: QWidget) -> str:
    """What a screen reader calls it."""
    text = control.text() if isinstance(control, QAbstractButton) else ""
    return control.accessibleName() or text


@pytest.mark.parametrize("make_view", VIEWS)
def test_it_has_a_name_and_a_tooltip(qtbot, make_view) -> None:
    view = make_view()
    qtbot.addWidget(view)
    shown = [control for control in controls(view) if control.isVisibleTo(view)]
    mute = {
        f"{type(control).__name__} {control.objectName()}"
        for control in shown
        if not control.toolTip()
        or not (control.accessibleName() or getattr(control, "text", str)())
    }
    assert mute == set()


@pytest.mark.parametrize("make_view", VIEWS)
def test_its_words_are_as_they_were(qtbot, make_view) -> None:
    view = make_view()
    qtbot.addWidget(view)
    assert_same_words(view, view.objectName() or type(view).__name__)
