"""One selection through all workspaces: what is chosen in one view is lit in the others."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication

from app import templates
from app.selection.references import (
    Blocks,
    Call,
    Element,
    Line,
    Module,
    Node,
    Parameter,
    StorageCell,
)
from engine.project import edits
from engine.project.subject import FileSubject, Objective
from engine.protocol import GraphSnapshot, TraceSnapshot, ValueSnapshot, ValuesSnapshot
from tests.engine.subjects import models

WAIT_MS = 30_000
WEIGHT = "transformer.h.1.attn.c_attn.weight"


@pytest.fixture
def blocks(program, qtbot):
    """The MLP template with its backward pass begun, and the Model workspace in front."""
    program.bench.files.new(templates.load_template("mlp"))
    program.bench.link.drain()
    program.workspaces.at_passes().start_backward()
    drawn(program, qtbot)
    program.workspaces.at_model()
    return program


@pytest.fixture
def gpt(program, qtbot, tmp_path, monkeypatch):
    """A GPT of a file as the subject, its structure read and its backward pass begun."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    file = tmp_path / "gpt.py"
    shutil.copy(Path(models.__path__[0]) / "gpt.py", file)
    program.python_files.run(str(file), opening=True)
    program.bench.link.drain()
    program.subject.choose(FileSubject(str(file), "GPT(vocab_size)"))
    objective = Objective(data="loader")
    program.bench.edit("Set the data", lambda p: edits.set_objective(p, objective))
    program.workspaces.at_model()
    qtbot.waitUntil(
        lambda: drained(program) and structure(program).shows_structure, timeout=WAIT_MS
    )
    program.workspaces.at_passes().start_backward()
    drawn(program, qtbot)
    yield program
    sys.modules.pop("gpt", None)


def drained(program) -> bool:
    program.bench.link.drain()
    return True


def is_read(program) -> bool:
    return structure(program).shows_structure


def drawn(program, qtbot) -> None:
    """Wait until the graph is drawn."""
    passes = program.workspaces.autograd
    newest = program.bench.newest
    qtbot.waitUntil(
        lambda: drained(program) and passes.drawn is newest(GraphSnapshot) is not None,
        timeout=WAIT_MS,
    )


def structure(program):
    return program.workspaces.structure.view


def steps(program):
    return program.workspaces.autograd.page.steps


def nodes(program):
    return program.bench.newest(GraphSnapshot).nodes


def leaf(program, name: str) -> int:
    return next(node.id for node in nodes(program) if node.label == name)


def lit(program) -> set[int]:
    """The nodes in the boxes of the graph that are lit."""
    graph = steps(program).graph
    chosen = graph._item.chosen
    return {node for box in chosen.nonzero()[0] for node in graph.facts.nodes_in(int(box))}


def gradient_row(program) -> str:
    table = steps(program).backward.table
    return table.item(table.currentRow(), 1).text()


def choose_gradient(program, name: str) -> None:
    table = steps(program).backward.table
    names = [table.item(row, 1).text() for row in range(table.rowCount())]
    table.setCurrentCell(names.index(name), 1)
    program.bench.link.drain()


# -- blocks --------------------------------------------------------------------------------------


def test_a_block_lights_its_nodes_and_a_parameter_its_block_and_leaf(blocks):
    canvas, model = blocks.window.page("model").canvas, blocks.bench.project.model
    linear = next(block for block in model.blocks if block.name == "linear2")
    canvas.select([linear.id])
    assert blocks.bench.selection.current == Blocks((linear.id,))
    assert lit(blocks) == {node.id for node in nodes(blocks) if node.block == linear.id}
    assert blocks.window.workspace == "model"  # to be lit brings nothing to the front

    choose_gradient(blocks, "linear3.weight")
    assert blocks.bench.selection.current == Parameter("linear3.weight")
    assert lit(blocks) == {leaf(blocks, "linear3.weight")}
    (chosen,) = canvas.selected_blocks()
    assert model.block(chosen).name == "linear3"
    assert blocks.window.page("model").code.editor.extraSelections()

    steps(blocks).graph.select(leaf(blocks, "linear1.bias"))
    assert gradient_row(blocks) == "linear1.bias"
    assert model.block(canvas.selected_blocks()[0]).name == "linear1"


def test_back_and_forward_go_through_what_was_chosen(blocks):
    canvas, selection = blocks.window.page("model").canvas, blocks.bench.selection
    first, second = (block.id for block in blocks.bench.project.model.blocks[1:3])
    canvas.select([first])
    canvas.select([second])
    steps(blocks).graph.select(leaf(blocks, "linear3.bias"))
    blocks.bench.actions["view.back"].trigger()
    assert selection.current == Blocks((second,)) and canvas.selected_blocks() == (second,)
    blocks.bench.actions["view.back"].trigger()
    assert canvas.selected_blocks() == (first,)
    blocks.bench.actions["view.back"].trigger()
    assert canvas.selected_blocks() == (first,)  # nothing was chosen before
    blocks.bench.actions["view.forward"].trigger()
    blocks.bench.actions["view.forward"].trigger()
    assert isinstance(selection.current, Node) and lit(blocks) == {leaf(blocks, "linear3.bias")}


def test_another_graph_takes_away_the_nodes_of_the_last_and_keeps_blocks(blocks, qtbot):
    canvas = blocks.window.page("model").canvas
    steps(blocks).graph.select(0)
    blocks.workspaces.autograd.start_backward()
    drawn(blocks, qtbot)
    assert steps(blocks).graph._item.chosen is None
    relu = next(b.id for b in blocks.bench.project.model.blocks if b.name == "relu2")
    canvas.select([relu])
    blocks.workspaces.autograd.start_backward()
    drawn(blocks, qtbot)
    assert lit(blocks) == {node.id for node in nodes(blocks) if node.block == relu}


# -- a subject of code ---------------------------------------------------------------------------


def test_a_parameter_of_code_is_lit_in_structure_graph_and_gradients(gpt):
    view = structure(gpt)
    choose_gradient(gpt, WEIGHT)
    assert gpt.bench.selection.current == Parameter(WEIGHT)
    assert lit(gpt) >= {leaf(gpt, WEIGHT)}
    assert view.tree.chosen.path == "transformer.h.1.attn.c_attn"
    assert [row.name for row in view.weights.chosen] == [WEIGHT]
    assert gpt.window.workspace == "autograd"

    tied = "transformer.wte.weight"
    gpt.window.show_workspace("model")
    view.tree.choose("lm_head")
    view.tree.module_chosen.emit(view.tree.chosen)
    assert gpt.bench.selection.current == Module("lm_head")
    view.weights.choose("lm_head.weight")
    assert gpt.bench.selection.current == Parameter("lm_head.weight")
    assert leaf(gpt, tied) in lit(gpt) and gradient_row(gpt) == tied


def test_a_module_is_one_box_of_the_graph_and_a_row_of_the_tree(gpt, qtbot):
    view, graph = structure(gpt), steps(gpt).graph
    view.tree.choose("transformer.ln_f")
    view.tree.module_chosen.emit(view.tree.chosen)
    inside = {n.id for n in nodes(gpt) if n.module == "GPT.transformer.ln_f"}
    assert inside and lit(gpt) >= inside
    graph.open_all()
    qtbot.waitUntil(lambda: drained(gpt) and graph.laid_out, timeout=WAIT_MS)
    box = graph.facts.visible.boxes[graph.selected_box]
    assert box.key == "GPT.transformer.ln_f" and box.open
    assert lit(gpt) == inside

    gpt.workspaces.at_passes()
    block = graph.facts.index_of["GPT.transformer.h.0.attn"]
    graph.select_box(block)
    assert gpt.bench.selection.current == Module("transformer.h.0.attn")
    assert view.tree.chosen.path == "transformer.h.0.attn"


# -- a trace -------------------------------------------------------------------------------------


def test_a_call_of_the_trace_lights_its_nodes_and_a_node_its_call(program, qtbot):
    program.workspaces.run_python(
        "model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())\nx = torch.ones(1, 2)"
    )
    program.bench.link.drain()
    program.workspaces.at_passes()
    page = program.workspaces.autograd.page
    page.show_code("y = model(x)\nloss = (y * y).sum()")
    program.bench.link.drain()
    program.workspaces.show_graph_of("loss")
    drawn(program, qtbot)
    trace = program.bench.newest(TraceSnapshot)
    tanh = next(n for n, c in enumerate(trace.calls) if c.name == "aten::tanh" and c.nodes)
    page.trace.tree.call_chosen.emit(tanh)
    program.bench.link.drain()
    assert program.bench.selection.current == Call(tanh, trace.reply_to)
    (node,) = lit(program)
    assert nodes(program)[node].name == "TanhBackward0"
    multiplied = next(n.id for n in nodes(program) if n.name == "MulBackward0")
    page.steps.graph.select(multiplied)
    (call,) = page.trace.tree.calls.chosen
    assert trace.calls[call].name == "aten::mul.Tensor"
    assert page.trace.tree.calls.position == tanh  # the trace itself stays where it is


# -- tensors, cells of storage, lines ------------------------------------------------------------

CELL = """w = torch.ones(2, 3, requires_grad=True)
h = w * 2
loss = h.sum()"""


@pytest.fixture
def console(program, qtbot):
    """The graph of a loss of the console, whose cell stands beside it."""
    program.workspaces.run_python(CELL)
    program.bench.link.drain()
    program.workspaces.show_graph_of("loss")
    drawn(program, qtbot)
    return program


def test_a_line_lights_the_nodes_that_it_made_and_a_node_its_line(console):
    view, selection = steps(console), console.bench.selection
    assert view.code.isVisible()
    view.code.text.clicked.emit(2)
    assert selection.current == Line("<cell 1>", 2)
    (node,) = lit(console)
    assert nodes(console)[node].name == "MulBackward0" and view.code.chosen == (2,)
    choose_gradient(console, "w")
    assert selection.current == Element("w") and view.code.chosen == (2,)  # it is used there
    view.graph.select(0)
    assert view.code.chosen == (3,)
    console.workspaces.at_tensors()
    assert console.workspaces.tensors.expression == "loss"  # the root's result


def test_the_file_of_a_subject_stands_beside_its_graph(gpt):
    choose_gradient(gpt, WEIGHT)
    view = steps(gpt).code
    text = view.text.toPlainText().splitlines()
    assert [text[line - 1].strip() for line in view.chosen] == [
        "q, k, v = self.c_attn(x).split(C, dim=2)"
    ]


def test_an_element_a_cell_and_a_variable_are_chosen_and_gone_back_to(console):
    page, tensors = console.window.page("tensors"), console.workspaces.tensors
    selection, link = console.bench.selection, console.bench.link
    console.workspaces.at_tensors()
    page.variables.variable_selected.emit("h")
    link.drain()
    assert selection.current == Element("h")
    assert nodes(console)[lit(console).pop()].name == "MulBackward0"
    page.tabs.setCurrentWidget(page.storage)
    link.drain()
    page.storage._on_cell(4)  # a click on the strip
    link.drain()
    assert selection.current == Element("h", (1, 1)) and tensors.element == (1, 1)
    page.bar.expression_entered.emit("h[0]")
    link.drain()
    page.storage._on_cell(5)
    link.drain()
    assert selection.current == StorageCell("h[0]", 5)  # h[0] does not read it
    console.window.show_workspace("autograd")
    steps(console).graph.select(0)
    link.drain()
    assert tensors.expression == "loss"
    for _ in range(3):
        selection.back()
    assert (tensors.expression, tensors.element) == ("h", (1, 1))


def test_a_workspace_in_use_keeps_its_tensor(console):
    console.workspaces.at_tensors()
    console.window.page("tensors").variables.variable_selected.emit("h")
    steps(console).graph.select(0)
    assert console.workspaces.tensors.expression == "h"


# -- show in -------------------------------------------------------------------------------------


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
    assert list(to) == ["Model", "Code", "Autograd graph", "Values"]
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
    shown = gpt.bench.newest(ValueSnapshot)
    model = gpt.bench.link._session.lab.backward.under_way.subject.module
    plain = dict(model.named_parameters())[WEIGHT].detach()
    assert (shown.of, shown.key) == ("parameter", WEIGHT)
    assert shown.values[0].summary.mean == pytest.approx(plain.double().mean().item())
    to["Code"]()
    assert steps(gpt).code.chosen

    view.tree.module_chosen.emit(view.tree.chosen)  # from the structure
    assert list(menu_of(gpt, "structure")) == ["Code", "Autograd graph"]


def test_from_a_gradient_of_blocks_to_its_block_node_values_and_line(blocks, qtbot):
    """The chain from a parameter to all that it is, for blocks."""
    choose_gradient(blocks, "linear2.weight")
    to = menu_of(blocks, "gradients")
    assert list(to) == ["Model", "Code", "Autograd graph", "Values", "Storage"]
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


def test_back_goes_to_the_view_of_the_choice(blocks):
    blocks.window.page("model").canvas.select([blocks.bench.project.model.blocks[2].id])
    blocks.workspaces.at_passes()
    steps(blocks).graph.select(0)
    blocks.bench.actions["view.back"].trigger()
    assert blocks.window.workspace == "model"
    blocks.bench.actions["view.forward"].trigger()
    assert blocks.window.workspace == "autograd" and lit(blocks) == {0}


def test_a_context_menu_ends_with_the_ways_and_a_key_opens_them(blocks, qtbot):
    choose_gradient(blocks, "linear2.weight")
    table = steps(blocks).backward.table
    blocks.workspaces.at_passes()
    table.customContextMenuRequested.emit(QPoint(5, 5))
    menu = QApplication.activePopupWidget()
    texts = [action.text() for action in menu.actions() if action.text()]
    assert texts == ["Step through this gradient's own graph", "Show linear2.weight in"]
    ways = [action.text() for action in menu.actions()[-1].menu().actions()]
    assert ways == ["&Model", "&Code", "Autograd &graph", "&Values", "&Storage"]
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
