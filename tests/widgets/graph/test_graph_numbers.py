"""The numbers in the picture of a graph, and the code beside it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QLabel

from engine.protocol import (
    BackwardSnapshot,
    GradientEdit,
    GraphCut,
    GraphEdge,
    GraphNode,
    GraphNumbersSnapshot,
    GraphSnapshot,
    NextNode,
    NodeNumbers,
    NodeStep,
    SourceLine,
    TensorNumber,
    TensorSpec,
)
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.autograd.autograd_view import AutogradView
from widgets.autograd.code_and_graph import _CODE_PX
from widgets.autograd.graph_code import MOST_LINES, GraphCode, line_of
from widgets.autograd.root_bar import RootBar
from widgets.boxes.numbers import GraphNumbers, Shown, shown, strength
from widgets.graph.view import GraphView
from widgets.layout.nested_layout import layout_nested

CELL = "<cell 1>"
CODE = "x = torch.tensor(1.0, requires_grad=True)\ny = 2 * x\nz = y + 3\nL = z ** 2\n"
_SCALAR = (TensorSpec((), "float32"),)


def _node(place: int, name: str, label: str, line: int = 0) -> GraphNode:
    source = SourceLine(CELL, line, CODE.splitlines()[line - 1]) if line else None
    kind = "operation" if line else "leaf"
    return GraphNode(place, name, label, kind, None, 9 - place, _SCALAR, source=source)


GRAPH = GraphSnapshot(
    nodes=(
        _node(0, "PowBackward0", "L = pow", 4),
        _node(1, "AddBackward0", "z = add", 3),
        _node(2, "MulBackward0", "y = mul", 2),
        _node(3, "AccumulateGrad", "x"),
    ),
    edges=(GraphEdge(0, 1, 0, 0), GraphEdge(1, 2, 0, 0), GraphEdge(2, 3, 0, 0)),
    plan=(0, 1, 2, 3),
    root="L",
    sources={CELL: CODE},
)


def number(*elements: float, shape=()) -> TensorNumber:
    return TensorNumber(shape, sum(e * e for e in elements) ** 0.5, elements)


def at(position: int) -> BackwardSnapshot:
    step = NodeStep(position - 1, (), ()) if position else None
    following = NextNode(position, ()) if position < 4 else None
    return BackwardSnapshot(position=position, step=step, gradients=(), next=following)


def numbers(position: int) -> GraphNumbersSnapshot:
    """Those of the chain rule: forward 1, 2, 5, 25; backward 1, 10, 10, 20."""
    values, gradients = (25.0, 5.0, 2.0, 1.0), (1.0, 10.0, 10.0, 20.0)
    return GraphNumbersSnapshot(
        position=position,
        numbers=tuple(
            NodeNumbers(
                node,
                values=(number(values[node]),),
                incoming=(number(gradients[node]),) if node <= position else (),
                outgoing=(number(gradients[node + 1]),) if node < min(position, 3) else (),
                grad=number(20.0) if node == 3 and position == 4 else None,
            )
            for node in range(4)
        ),
    )


@pytest.fixture
def view(qtbot) -> GraphView:
    made = GraphView()
    qtbot.addWidget(made)
    made.layout_requested.connect(
        lambda visible, *how: made.show_layout(visible, layout_nested(visible.outline, *how))
    )
    made.resize(420, 460)
    made.show()
    made.show_graph(GRAPH)
    qtbot.waitUntil(lambda: made.laid_out)
    return made


def read(view: GraphView) -> tuple[list[str], list[str], list[str]]:
    """The second lines, the gradients at nodes, those on links; top to bottom."""
    facts = view.facts
    assert facts is not None
    boxes = [facts.index_of[f"#{node}"] for node in range(4)]
    links = sorted(range(3), key=lambda link: facts.visible.links[link].source)
    at_nodes = [gradient.text if (gradient := facts.gradient(box)) else "" for box in boxes]
    on_links = [gradient.text if (gradient := facts.link_gradient(link)) else "" for link in links]
    return [facts.second_line(box) for box in boxes], at_nodes, on_links


def test_a_lesson_is_read_off_the_picture(view):
    view.show_backward(at(0))
    view.show_numbers(numbers(0))
    lines = ["L = 25", "z = 5", "y = 2", "leaf = 1"]
    assert read(view) == (lines, ["1", "", "", ""], ["", "", ""])
    view.show_backward(at(2))
    view.show_numbers(numbers(2))
    assert read(view) == (lines, ["1", "10", "10", ""], ["10", "10", ""])
    view.show_backward(at(4))
    view.show_numbers(numbers(4))
    assert read(view) == (lines, ["1", "10", "10", "20"], ["10", "10", "20"])
    box = view.box_of(3)
    assert view.facts.gradient_word(box) == ".grad"
    assert view.facts.spoken(box).endswith(".grad 20")
    assert "Gradient in: 20" in view.tooltip(3) and "Forward gave: 5" in view.tooltip(1)


def test_going_back_hides_gradients_before_the_answer_comes(view):
    view.show_backward(at(4))
    view.show_numbers(numbers(4))
    view.show_backward(at(1))
    assert read(view)[2] == ["10", "", ""] and read(view)[1][2] == ""


def test_numbers_that_come_with_a_step_are_shown_and_not_asked_for(view):
    asked = []
    view.numbers_wanted.connect(asked.append)
    view.fit()
    view.show_backward(at(0))
    assert asked == [(0, 1, 2, 3)]
    view.show_numbers(numbers(0))
    view.show_backward(replace(at(4), numbers=numbers(4).numbers))
    assert read(view)[1:] == (["1", "10", "10", "20"], ["10", "10", "20"])
    assert len(asked) == 1
    view.show_backward(at(0))  # of another pass
    assert len(asked) == 2


def test_numbers_are_asked_for_at_each_step_without_them_and_for_what_is_in_view(view):
    asked = []
    view.numbers_wanted.connect(asked.append)
    view.fit()
    assert asked == []  # no pass yet
    view.show_backward(at(0))
    assert asked == [(0, 1, 2, 3)]
    view.zoom_by(1.02)
    assert len(asked) == 1
    view.show_backward(at(1))
    assert len(asked) == 2
    view.set_view(0.2, 0, 0)  # too small to read
    view.show_backward(at(2))
    assert len(asked) == 2


def test_only_the_nodes_in_view_are_asked_for(view):
    first = view.node_rect(0)
    view.set_view(4.0, first.center().x(), first.top())
    asked = []
    view.numbers_wanted.connect(asked.append)
    view._follow_pass(at(0))
    assert 0 in asked[-1] and 3 not in asked[-1]


def test_tensors_as_texts():
    assert shown(number(22.0, 44.0, shape=(2,))) == ("[22, 44]", None)
    assert shown(number(1.0, 2.0, 3.0, 4.0, shape=(2, 2))) == ("[[1, 2], [3, 4]]", None)
    large = shown(TensorNumber((64, 10), 0.35321))
    assert large == ("0.353", 0.35321) and not large.is_bad
    assert shown(TensorNumber((3,), float("nan"), (float("nan"), 1.0, 2.0))).is_bad
    assert shown(None) is None
    assert [strength(norm) for norm in (0.0, 1e-6, 1e-2, 1e2, 1e9)] == [0, 0, 0.5, 1, 1]
    assert strength(float("inf")) == 1


@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_picture_with_numbers(view, qapp, name):
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    view.show_backward(at(2))
    view.show_numbers(numbers(2))
    view.fit()
    try:
        assert_same_picture(view, f"graph_numbers_{name}")
    finally:
        theme.apply(qapp, theme.LIGHT)


def test_an_edited_node_has_a_mark(view):
    view.show_backward(replace(at(1), edits=(GradientEdit(1, "g * 2"),)))
    assert view._item.edited is not None
    marked = [node for node in range(4) if view._item.edited[view.box_of(node)]]
    assert marked == [1]
    view.show_backward(at(1))
    assert not view._item.edited.any()


def test_an_ordinary_input_is_no_cut(view, qtbot):
    cuts = (GraphCut(1, 1, "input", "data"), GraphCut(2, 1, "detach", "c"))
    view.show_graph(replace(GRAPH, cuts=cuts))
    qtbot.waitUntil(lambda: view.laid_out)
    facts = view.facts
    data, cut = facts.index_of["!1.1"], facts.index_of["!2.1"]
    assert facts.data[data] and not facts.data[cut]
    assert facts.tooltip(data).startswith("Data\n") and facts.tooltip(cut).startswith("Cut:")
    bar = RootBar()
    qtbot.addWidget(bar)
    bar.show_graph(replace(GRAPH, cuts=cuts))
    assert bar.findChild(QLabel, "graph_facts").text().endswith("1 cut")


# -- the code ------------------------------------------------------------------------------------


def test_a_leaf_has_the_line_that_names_it():
    assert [line_of(node, GRAPH.sources) for node in GRAPH.nodes] == [
        (CELL, 4),
        (CELL, 3),
        (CELL, 2),
        (CELL, 1),
    ]
    assert line_of(GRAPH.nodes[3], {CELL: "def f(:"}) is None


@pytest.fixture
def code(qtbot) -> GraphCode:
    made = GraphCode()
    qtbot.addWidget(made)
    made.show_graph(GRAPH)
    return made


def test_the_current_line_is_lit(code):
    assert not code.isHidden() and code.text.toPlainText() == CODE.rstrip("\n")
    seen = []
    for position in range(5):
        code.show_backward(at(position))
        seen.append(code.lit)
    assert seen == [(0, 4), (4, 3), (3, 2), (2, 1), (1, 0)]
    assert [mark.cursor.blockNumber() + 1 for mark in code.text.extraSelections()] == [1]


def test_it_is_as_high_as_its_code_up_to_a_few_lines(code):
    line, frame = code.text.fontMetrics().lineSpacing(), 8 * theme.GRID
    assert code.sizeHint().height() == 4 * line + frame
    assert code.sizeHint().width() == code.layout().sizeHint().width()
    code.show_graph(replace(GRAPH, sources={CELL: CODE + 50 * "pass\n"}))
    assert code.sizeHint().height() == MOST_LINES * line + frame


def test_a_graph_without_cells_has_no_code(code):
    code.show_graph(None)
    assert code.isHidden()


def test_the_code_stands_beside_or_above_the_graph(qtbot):
    view = AutogradView()
    qtbot.addWidget(view)
    view.resize(1500, 700)
    view.show()
    view.show_graph(GRAPH, {})
    assert view.code.isVisible()
    view.columns.setSizes([250, 850, 300])
    assert view.code.geometry().right() < view.graph_pane.geometry().left()
    view.resize(900, 700)
    assert view.code.geometry().bottom() < view.graph_pane.geometry().top()
    assert view.graph_pane.height() > view.code.height()
    middle = view._middle
    for width in (900, 1500):  # it comes with the room that it asks for
        view.resize(width, 700)
        view.show_graph(replace(GRAPH, sources={}), {})
        assert view.code.isHidden()
        view.show_graph(GRAPH, {})
        first = middle.sizes()[0]
        if width == 900:
            assert first == min(view.code.sizeHint().height(), middle.height() // 3)
        else:
            assert first == _CODE_PX
        middle.setSizes([first + 40, 9_999])
        chosen = middle.sizes()
        view.show_graph(GRAPH, {})  # while it is there, it keeps what the reader has chosen
        assert middle.sizes() == chosen


def test_elements_that_do_not_fit_a_node_are_told_by_their_norm_and_in_the_tooltip() -> None:
    small = TensorNumber((4,), 5.0, (22.0, 44.0, 66.0, 88.0))
    wide = TensorNumber((3,), 0.2248, (0.1877, -0.0847, -0.09))
    assert shown(small) == Shown("[22, 44, 66, 88]")
    assert shown(wide) == Shown("0.225", 0.2248)
    numbers = GraphNumbers([NodeNumbers(node=1, values=(wide,))])
    assert numbers.lines(1) == ["Forward gave: [0.1877, -0.0847, -0.09]"]
