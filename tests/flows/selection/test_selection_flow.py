"""One selection through all workspaces: what is chosen in one view is lit in the others."""

from __future__ import annotations

import pytest

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
from engine.protocol import TraceSnapshot
from tests.flows.selection.lit import (
    WAIT_MS,
    WEIGHT,
    choose_gradient,
    drained,
    drawn,
    gradient_row,
    leaf,
    lit,
    nodes,
    steps,
    structure,
)

pytestmark = pytest.mark.one_program

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


@pytest.mark.own_program
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
