"""Broadcast and Multiply follow the chosen tensor; cells without data show their index."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLineEdit

from engine.protocol import Cells
from widgets.shapes.broadcast_view import BroadcastView
from widgets.shapes.cells_view import CellsView
from widgets.shapes.product_view import ProductView

SHAPES = [(4, 6), (6,), (2, 3, 4)]


def made(text: str) -> torch.Tensor:
    return torch.zeros([int(n) for n in text.strip("()").split(",") if n.strip()])


@pytest.fixture
def broadcast(qtbot) -> BroadcastView:
    view = BroadcastView()
    qtbot.addWidget(view)
    return view


@pytest.fixture
def product(qtbot) -> ProductView:
    view = ProductView()
    qtbot.addWidget(view)
    return view


@pytest.mark.parametrize("shape", SHAPES)
def test_the_chosen_tensor_is_broadcast_with_a_shape_that_fits(broadcast, shape):
    broadcast.show_expression("x", shape)
    first, second = broadcast.operands.texts()
    assert first == "x"
    assert (torch.zeros(shape) + made(second)).shape == shape


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        *(("matmul", shape) for shape in SHAPES),
        ("mm", (4, 6)),
        ("bmm", (2, 3, 4)),
        ("mv", (4, 6)),
        ("dot", (6,)),
        ("outer", (6,)),
    ],
)
def test_the_chosen_tensor_is_multiplied_by_a_shape_that_fits(product, op, shape):
    product.findChild(QComboBox, "product_op").setCurrentText(op)
    product.show_expression("x", shape)
    first, second = product.operands.texts()
    assert first == "x"
    getattr(torch, op)(torch.zeros(shape), made(second))  # raises where it does not fit


def test_what_is_typed_as_the_second_operand_stays(broadcast):
    second = broadcast.findChild(QLineEdit, "operand_b")
    second.selectAll()
    QTest.keyClicks(second, "(4, 1)")
    broadcast.show_expression("x", (4, 6))
    assert broadcast.operands.texts() == ("x", "(4, 1)")


def test_a_tensor_that_is_an_operand_already_changes_nothing(broadcast):
    broadcast.operands.show_texts(("x", "y"))
    broadcast.show_expression("y", (6,))
    assert broadcast.operands.texts() == ("x", "y")


def test_a_tensor_of_unknown_shape_keeps_the_second_operand(broadcast, product):
    for view in (broadcast, product):
        _, second = view.operands.texts()
        view.show_expression("x.grad")
        assert view.operands.texts() == ("x.grad", second)


@pytest.mark.parametrize(
    ("shape", "last"),
    [((3,), "[2]"), ((2, 3), "[1, 2]"), ((2, 2, 2), "[1, 1, 1]"), ((1, 2, 2, 2), "[…, 1, 1]")],
)
def test_a_cell_without_data_shows_its_index(qtbot, shape, last):
    view = CellsView("cells")
    qtbot.addWidget(view)
    view.show_cells(Cells(shape, (0,) * len(shape), shape, ()), "x")
    assert view._texts()[-1] == last
