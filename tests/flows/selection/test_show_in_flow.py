"""From what is selected to the views that show it: the menu "Show in", back, and forward."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtCore import QPoint
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication

from app import templates
from app.selection.references import (
    Module,
    Node,
    Parameter,
)
from engine.project import edits
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import GraphSnapshot, ValuesSnapshot
from tests.flows.selection.lit import (
    WAIT_MS,
    WEIGHT,
    choose_gradient,
    drained,
    drawn,
    gradient_row,
    is_read,
    leaf,
    lit,
    nodes,
    steps,
    structure,
)

pytestmark = pytest.mark.one_program


def menu_of(program, view: str) -> dict:
    """The ways from a view to the others, by their titles."""
    return {
        way.title.replace("&", ""): lambda way=way: show(program, way)
        for way in program.show_in.ways_from(view)
    }


def show(program, way) -> None:
    way.show(program.bench.selection.current)
    program.bench.link.drain()


def test_from_a_gradient_of_code_to_its_module_node_values_and_line(gpt, qtbot):
    """The chain from a parameter to all that it is, for a subject of code."""
    choose_gradient(gpt, WEIGHT)
    to = menu_of(gpt, "gradients")
    assert list(to) == ["Model", "Code", "Autograd graph", "Train", "Values", "Storage"]
    to["Model"]()
    view = structure(gpt)
    assert gpt.window.workspace == "model"
    assert [row.name for row in view.weights.chosen] == [WEIGHT]

    to["Autograd graph"]()
    graph = steps(gpt).graph
    qtbot.waitUntil(lambda: drained(gpt) and graph.laid_out, timeout=WAIT_MS)
    assert gpt.window.workspace == "autograd" and lit(gpt) == {leaf(gpt, WEIGHT)}
    assert graph.visible_rect().contains(graph.node_rect(leaf(gpt, WEIGHT)))
    assert gpt.bench.selection.current == Parameter(WEIGHT)

    to["Values"]()
    assert gpt.window.workspace == "tensors"
    assert gpt.workspaces.tensors.expression == ("lab.subject.transformer.h[1].attn.c_attn.weight")
    shown = gpt.bench.newest(ValuesSnapshot)
    model = gpt.bench.link._session.lab.backward.under_way.subject.module
    plain = model.get_parameter(WEIGHT).detach()
    assert (shown.rows, shown.columns) == tuple(plain.shape)
    assert torch.tensor(float(shown.cells[0][0])) == plain[0, 0]
    gpt.workspaces.at_passes()
    to["Code"]()
    assert steps(gpt).code.chosen

    view.tree.module_chosen.emit(view.tree.chosen)  # from the structure
    assert list(menu_of(gpt, "structure")) == ["Code", "Autograd graph"]


def test_from_a_gradient_of_blocks_to_its_block_node_values_and_line(blocks, qtbot):
    """The chain from a parameter to all that it is, for blocks."""
    choose_gradient(blocks, "linear2.weight")
    to = menu_of(blocks, "gradients")
    assert list(to) == ["Model", "Code", "Autograd graph", "Train", "Values", "Storage"]
    page = blocks.window.page("model")
    page.code_dock.hide()
    to["Code"]()
    linear = next(b for b in blocks.bench.project.model.blocks if b.name == "linear2")
    assert page.code_dock.isVisible() and blocks.window.workspace == "model"
    assert page.code.editor.marked_lines() == blocks.bench.known.model.lines[linear.id]
    to["Model"]()
    assert page.canvas.selected_blocks() == (linear.id,)
    to["Values"]()
    assert blocks.window.workspace == "tensors"
    tensors = blocks.window.page("tensors")
    assert tensors.tabs.currentWidget() is tensors.values
    assert blocks.workspaces.tensors.expression == "canvas.model.linear2.weight"
    model = blocks.bench.link._session.lab.models.live.module
    shown = blocks.bench.newest(ValuesSnapshot)
    assert (shown.rows, shown.columns) == model.linear2.weight.shape
    assert float(shown.cells[1][2]) == pytest.approx(model.linear2.weight[1, 2].item())
    to["Storage"]()
    assert tensors.tabs.currentWidget() is tensors.storage


def test_a_module_is_shown_on_the_graph_of_a_new_pass_where_there_is_none(program, qtbot):
    program.bench.files.new(templates.load_template("mlp"))
    program.bench.link.drain()
    canvas = program.workspaces.at_model().page.canvas
    linear = next(b.id for b in program.bench.project.model.blocks if b.name == "linear2")
    canvas.select([linear])
    to = menu_of(program, "canvas")
    assert "Autograd graph" not in to
    program.bench.selection.look_in("graph")
    program.bench.selection.back()
    program.bench.selection.forward()  # to go back to the graph begins no pass
    assert program.bench.link.drain() is None and program.bench.newest(GraphSnapshot) is None

    to["Autograd graph of a new pass"]()
    drawn(program, qtbot)
    graph = steps(program).graph
    qtbot.waitUntil(lambda: drained(program) and graph.laid_out, timeout=WAIT_MS)
    assert program.window.workspace == "autograd"
    assert {nodes(program)[number].block for number in lit(program)} == {linear}
    shown = graph.visible_rect()
    assert any(shown.intersects(graph.node_rect(number)) for number in lit(program))
    ways = menu_of(program, "canvas")
    assert "Autograd graph" in ways and "Autograd graph of a new pass" not in ways


def test_back_goes_to_the_view_of_the_choice(blocks):
    blocks.window.page("model").canvas.select([blocks.bench.project.model.blocks[2].id])
    blocks.workspaces.at_passes()
    steps(blocks).graph.select(0)
    blocks.bench.actions["view.back"].trigger()
    assert blocks.window.workspace == "model"
    blocks.bench.actions["view.forward"].trigger()
    assert blocks.window.workspace == "autograd" and lit(blocks) == {0}


@pytest.mark.own_program
def test_a_context_menu_ends_with_the_ways_and_a_key_opens_them(blocks, qtbot):
    choose_gradient(blocks, "linear2.weight")
    table = steps(blocks).backward.table
    blocks.workspaces.at_passes()
    table.customContextMenuRequested.emit(QPoint(5, 5))
    menu = QApplication.activePopupWidget()
    texts = [action.text() for action in menu.actions() if action.text()]
    assert texts == ["Step through this gradient's own graph", "Show linear2.weight in"]
    ways = [action.text() for action in menu.actions()[-1].menu().actions()]
    assert ways == ["&Model", "&Code", "Autograd &graph", "&Train", "&Values", "&Storage"]
    menu.close()
    blocks.bench.actions["view.show_in"].trigger()
    menu = QApplication.activePopupWidget()
    assert "Gra&dients" in [action.text() for action in menu.actions()]
    menu.close()
    blocks.bench.selection.choose(None)
    blocks.bench.actions["view.show_in"].trigger()
    assert QApplication.activePopupWidget() is None
    assert "No other view" in blocks.window.statusBar().currentMessage()


def test_a_right_click_on_the_graph_chooses_what_it_is_on(blocks, qtbot):
    blocks.workspaces.at_passes()
    graph = steps(blocks).graph
    node = leaf(blocks, "linear1.weight")
    graph.select(node)
    at = graph.point_of(2).toPoint()
    graph.contextMenuEvent(QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, at))
    menu = QApplication.activePopupWidget()
    menu.close()
    assert blocks.bench.selection.current == Node(2, blocks.bench.newest(GraphSnapshot).reply_to)
    assert menu.actions()[-1].text() == "Show addmm in"


def test_from_a_red_layer_of_the_gradient_flow_to_its_block_and_nodes(blocks, qtbot):
    flow = blocks.workspaces.autograd.page.flow
    blocks.workspaces.at_passes()
    blocks.workspaces.autograd.page.setCurrentWidget(flow)
    flow.run.click()
    blocks.bench.link.drain()
    table = flow.columns[0].table
    names = [row[0] for row in table.rows()]
    table.selectRow(names.index("linear2"))
    assert blocks.bench.selection.current == Module("linear2")
    assert {node.block for node in nodes(blocks) if node.id in lit(blocks)} == {
        block.id for block in blocks.bench.project.model.blocks if block.name == "linear2"
    }
    to = menu_of(blocks, "flow")
    assert list(to) == ["Model", "Code", "Autograd graph"]
    to["Model"]()
    (chosen,) = blocks.window.page("model").canvas.selected_blocks()
    assert blocks.bench.project.model.block(chosen).name == "linear2"


def test_to_be_lit_moves_no_focus_no_tab_and_not_the_view_that_is_used(gpt, qtbot):
    gpt.workspaces.at_passes()
    graph, table = steps(gpt).graph, steps(gpt).backward.table
    page, selection = gpt.workspaces.autograd.page, gpt.bench.selection
    graph.open_all()
    qtbot.waitUntil(lambda: drained(gpt) and graph.laid_out, timeout=WAIT_MS)
    gpt.window.activateWindow()
    graph.setFocus()
    qtbot.waitUntil(graph.hasFocus, timeout=WAIT_MS)
    seen = graph.visible_rect()
    first, last = (Parameter(f"transformer.{name}.weight") for name in ("wpe", "ln_f"))
    for parameter in (first, last):
        selection.choose(parameter)
        assert lit(gpt) == {leaf(gpt, parameter.name)}
        assert graph.visible_rect() == seen and graph.hasFocus()
        assert gradient_row(gpt) == parameter.name  # the table is not used: it scrolls
        row = table.visualItemRect(table.item(table.currentRow(), 1))
        assert table.viewport().rect().intersects(row)
    page.setCurrentWidget(page.trace)
    selection.choose(first)
    assert page.currentWidget() is page.trace and gpt.window.workspace == "autograd"
    page.setCurrentWidget(page.steps)
    table.setFocus()
    selection.choose(last)
    selection.choose(first)
    assert graph.visible_rect().intersects(graph.node_rect(leaf(gpt, first.name)))
    assert table.hasFocus()


@pytest.mark.own_program
def test_a_parameter_that_no_gradient_reaches_leads_to_its_module_and_values(program, qtbot):
    program.workspaces.run_python(
        "model = nn.ModuleDict({'used': nn.Linear(2, 1), 'idle': nn.Linear(2, 1)})\n"
        "x = (torch.ones(4, 2), torch.ones(4, 1))\n"
    )
    program.bench.link.drain()
    program.subject.choose(ConsoleSubject("model"))
    step = (
        "def step(batch):\n"
        "    x, y = batch\n"
        "    return nn.functional.mse_loss(model['used'](x), y)\n"
    )
    objective = Objective(data="x", step=step)
    program.bench.edit("Set the data", lambda p: edits.set_objective(p, objective))
    program.workspaces.at_passes().start_backward()
    drawn(program, qtbot)
    choose_gradient(program, "idle.weight")
    assert program.bench.selection.current == Parameter("idle.weight")
    table = steps(program).backward.table
    assert table.item(table.currentRow(), 3).text() == "not used"
    to = menu_of(program, "gradients")
    assert list(to) == ["Model", "Train", "Values", "Storage"]  # no node, so no line
    to["Values"]()
    assert program.workspaces.tensors.expression == "model.idle.weight"
    to["Model"]()
    qtbot.waitUntil(lambda: drained(program) and is_read(program), timeout=WAIT_MS)
    assert [row.name for row in structure(program).weights.chosen] == ["idle.weight"]


def test_a_line_of_the_transcript_is_its_nodes_and_the_other_way_about(program, qtbot):
    program.workspaces.run_python(
        "x = torch.ones(2, requires_grad=True)\ny = x * 3\nloss = y.sum()"
    )
    program.bench.link.drain()
    program.workspaces.show_graph_of("loss")
    drawn(program, qtbot)
    transcript = program.workspaces.tensors.page.console.output
    transcript.line_chosen.emit("<cell 1>", 2)
    assert [nodes(program)[number].name for number in lit(program)] == ["MulBackward0"]
    (product,) = lit(program)
    steps(program).graph.select(0)
    assert [block.text() for block in transcript.lines.lit()] == ["loss = y.sum()"]
    to = menu_of(program, "graph")
    to["Console"]()
    assert program.window.workspace == "tensors"
    assert transcript.textCursor().block().text() == "loss = y.sum()"
    steps(program).graph.select(product)
    assert [block.text() for block in transcript.lines.lit()] == ["y = x * 3"]
    program.bench.selection.choose(None)
    assert transcript.lines.lit() == []
