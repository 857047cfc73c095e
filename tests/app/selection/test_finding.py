"""What a reference leads to, for the three names that the parts of a subject have."""

from __future__ import annotations

import pytest

from app.selection.finding import (
    blocks_of,
    calls_of,
    expression_of,
    leaf_named,
    lines_of,
    module_box,
    module_of,
    nodes_of,
    parameter_of,
)
from app.selection.known import Known, dotted, leaf_reference, within
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
from app.selection.titles import title_of
from engine.project import edits
from engine.project.document import Project, replace
from engine.project.subject import ConsoleSubject, FileSubject
from engine.protocol import (
    MODEL_FILE,
    GraphEdge,
    GraphNode,
    GraphSnapshot,
    SourceLine,
    StructureSnapshot,
    StructureTotals,
    TraceCall,
    TraceSnapshot,
    WeightRow,
)
from tests.model_snapshots import model_snapshot

CELL = SourceLine("<cell 1>", 2, "y = net(x)")
LOSS = SourceLine("<cell 1>", 3, "loss = y.sum()")


def node(number, name, label, module, source=CELL, block=None, aten=""):
    return GraphNode(
        number, name, label, "operation", block, 9, (), module=module, source=source, aten=aten
    )


def leaf(number, label, module, block):
    return GraphNode(number, "AccumulateGrad", label, "leaf", block, -1, (), module=module)


def graph_of(prefix: str, labels: tuple[str, str], subject_path: str | None, block=None):
    """sum(linear(x)), the Linear being `fc.0` of the subject."""
    inner = f"{prefix}.fc.0" if prefix else "fc.0"
    return GraphSnapshot(
        nodes=(
            node(0, "SumBackward0", "loss = sum", "", LOSS, aten="aten::sum"),
            node(1, "AddmmBackward0", "y, h[0] = addmm", inner, block=block, aten="aten::addmm"),
            leaf(2, labels[0], inner, block),
            node(3, "TBackward0", "t", inner, block=block, aten="aten::t"),
            leaf(4, labels[1], inner, block),
        ),
        edges=(
            GraphEdge(0, 1, 0, 0),
            GraphEdge(1, 2, 0, 0),
            GraphEdge(1, 3, 2, 0),
            GraphEdge(3, 4, 0, 0),
        ),
        plan=(0, 1, 2, 3, 4),
        subject_path=subject_path,
        reply_to=5,
    )


STEP = graph_of("Net", ("fc.0.bias", "fc.0.weight"), "Net")
CONSOLE = graph_of("net", ("net.fc[0].bias", "net.fc[0].weight"), None)
ON_CONSOLE = replace(Project(), subject=ConsoleSubject("net"))
IN_FILE = replace(Project(), subject=FileSubject("net.py", "Net()"))


def test_python_is_read_as_a_dotted_path():
    assert dotted("model") == "model"
    assert dotted(' model.h[0].mlp["c_fc"].weight ') == "model.h.0.mlp.c_fc.weight"
    assert dotted("Net(10)") is dotted("a +") is dotted("xs[i]") is None
    assert within("a.b.c", "a.b") == "c" and within("a.b", "a.b") == ""
    assert within("a.bc", "a.b") is within(None, "a") is within("a", None) is None
    assert within("a.b", "") == "a.b"


@pytest.mark.parametrize("known", [Known(ON_CONSOLE, CONSOLE), Known(IN_FILE, STEP)])
def test_a_parameter_is_its_leaf_whatever_the_graph_calls_it(known):
    weight = Parameter("fc.0.weight")
    assert nodes_of(weight, known) == (4,)
    assert parameter_of(Node(4, 5), known) == "fc.0.weight"
    assert module_of(Node(4, 5), known) == module_of(weight, known) == "fc.0"
    assert lines_of(weight, known) == (Line("<cell 1>", 2),)
    assert nodes_of(Module("fc"), known) == nodes_of(Module("fc.0"), known) == (1, 2, 3, 4)
    assert nodes_of(Module("f"), known) == ()
    labels = [each.label for each in known.graph.nodes if each.kind == "leaf"]
    assert leaf_named(weight, labels, known) == leaf_named(Node(4, 5), labels, known) == labels[1]
    assert leaf_named(Node(1, 5), labels, known) is None
    assert leaf_reference(labels[1], known) == weight


def test_the_box_of_a_module_has_the_graphs_own_name_for_it():
    assert module_box(Module("fc.0"), Known(IN_FILE, STEP)) == "Net.fc.0"
    assert module_box(Module("fc.0"), Known(ON_CONSOLE, CONSOLE)) == "net.fc.0"
    assert module_box(Module(""), Known(IN_FILE, STEP)) == "Net"
    assert module_box(Parameter("fc.0.bias"), Known(IN_FILE, STEP)) == ""


def test_of_another_graph_or_subject_nothing_is_found():
    known = Known(ON_CONSOLE, CONSOLE)
    assert nodes_of(Node(4, 6), known) == nodes_of(Node(9, 5), known) == ()
    assert parameter_of(Node(4, 6), known) is module_of(Node(4, 6), known) is None
    other = Known(replace(Project(), subject=ConsoleSubject("other")), CONSOLE)
    assert nodes_of(Parameter("fc.0.weight"), other) == ()
    assert module_of(Node(4, 5), other) is module_of(Node(1, 5), other) is None
    assert leaf_reference("net.fc[0].weight", other) == Element("net.fc[0].weight")
    assert nodes_of(Element("net.fc[0].weight"), other) == (4,)
    made = Known(replace(Project(), subject=ConsoleSubject("Net(3)")), CONSOLE)
    assert nodes_of(Module("fc"), made) == ()
    assert nodes_of(None, known) == lines_of(None, known) == calls_of(None, known) == ()


def test_tied_parameters_are_one():
    rows = [
        WeightRow(name, "parameter", (2,), "float32", "cpu", 2, 8, True, shared_with=(other,))
        for name, other in (("head.weight", "fc.0.weight"), ("fc.0.weight", "head.weight"))
    ]
    totals = StructureTotals(1, 2, 2, 8, 0, 0)
    known = Known(
        IN_FILE, STEP, structure=StructureSnapshot(title="", totals=totals, weights=tuple(rows))
    )
    assert nodes_of(Parameter("head.weight"), known) == (4,)
    assert (
        leaf_named(Parameter("head.weight"), ["fc.0.bias", "fc.0.weight"], known) == "fc.0.weight"
    )


def test_a_tensor_of_the_console_is_its_node_and_its_python():
    known = Known(ON_CONSOLE, CONSOLE)
    assert nodes_of(Element("h[0]"), known) == nodes_of(Element("y", (0, 1)), known) == (1,)
    assert nodes_of(Element("net.fc[0].bias"), known) == (2,)
    assert nodes_of(StorageCell("loss", 3), known) == (0,)
    assert nodes_of(Element("y + 1"), known) == nodes_of(Element("z"), known) == ()
    assert expression_of(Node(0, 5), known) == "loss"
    assert expression_of(Node(1, 5), known) == "y"
    assert expression_of(Node(4, 5), known) == "net.fc[0].weight"
    assert expression_of(Node(3, 5), known) == expression_of(Module("fc"), known) == ""
    assert expression_of(Parameter("fc.0.weight"), known) == "net.fc[0].weight"
    assert parameter_of(Element("net.fc[0].weight"), known) == "fc.0.weight"
    assert parameter_of(Element("net.fc"), known) is parameter_of(Element("y"), known) is None


def test_a_module_without_a_name_in_the_console_is_reached_through_lab_subject():
    weight = Parameter("fc.0.weight")
    in_file = Known(IN_FILE, STEP)
    assert expression_of(weight, in_file) == "lab.subject.fc[0].weight"
    assert parameter_of(Element("lab.subject.fc[0].weight"), in_file) == "fc.0.weight"
    called = Known(replace(Project(), subject=ConsoleSubject("Net(3)")))
    assert expression_of(weight, called) == "lab.subject.fc[0].weight"
    totals = StructureTotals(1, 0, 0, 0, 0, 0)
    for made, of in ((False, "net"), (True, "lab.subject")):  # a class, which was called
        structure = StructureSnapshot(title="", totals=totals, made=made)
        known = Known(ON_CONSOLE, structure=structure)
        assert expression_of(weight, known) == f"{of}.fc[0].weight"


def test_a_line_is_the_nodes_that_it_made():
    known = Known(IN_FILE, STEP)
    assert nodes_of(Line("<cell 1>", 2), known) == (1, 3)
    assert nodes_of(Line("<cell 1>"), known) == (0, 1, 3)
    assert nodes_of(Line("<cell 2>", 2), known) == ()
    assert lines_of(Node(0, 5), known) == (Line("<cell 1>", 3),)
    assert lines_of(Module("fc"), known) == (Line("<cell 1>", 2),)


def test_a_block_of_the_canvas_is_a_module_by_its_name():
    project, block = edits.add_block(Project(), "nn.Linear", 0, 0)
    project = edits.rename(project, block, "fc")
    known = Known(project, graph_of("", ("fc.0.bias", "fc.0.weight"), "", block))
    assert module_of(Blocks((block,)), known) == module_box(Blocks((block,)), known) == "fc"
    assert blocks_of(Parameter("fc.0.weight"), known) == blocks_of(Node(1, 5), known) == (block,)
    assert blocks_of(Module("fc.0"), known) == blocks_of(Blocks((block, "gone")), known) == (block,)
    assert blocks_of(Node(0, 5), known) == blocks_of(Module(""), known) == ()
    assert nodes_of(Blocks((block,)), known) == (1, 2, 3, 4)
    on_console = Known(replace(project, subject=ConsoleSubject("net")), known.graph)
    assert blocks_of(Module("fc"), on_console) == ()
    of_code = Known(replace(project, subject=ConsoleSubject("net")))
    assert blocks_of(Blocks((block,)), of_code) == blocks_of(Module("fc"), of_code) == ()


def test_every_reference_has_a_title():
    project, block = edits.add_block(Project(), "nn.Linear", 0, 0)
    project, other = edits.add_block(project, "nn.ReLU", 0, 0)
    known = Known(project, CONSOLE)
    titles = {
        Blocks((block,)): project.model.blocks[0].name,
        Blocks((block, other)): "2 blocks",
        Blocks(()): "0 blocks",
        Module("fc"): "fc",
        Module(""): "the subject",
        Parameter("fc.weight"): "fc.weight",
        Node(0, 5): "loss = sum",
        Node(0, 6): "this node",
        Call(1, 8): "this call",
        Element("h"): "h",
        Element("h", (0, 1)): "h[0, 1]",
        StorageCell("h", 3): "cell 3",
        Line("<cell 2>", 7): "line 7 of cell 2",
        Line("/code/net.py", 7): "line 7 of net.py",
        Line("net.py"): "net.py",
        Parameter("a" * 20 + "b" * 20): "a" * 20 + "b" * 20,
        Parameter("a" * 20 + "b" * 21): "a" * 19 + "…" + "b" * 20,
    }
    assert {each: title_of(each, known) for each in titles} == titles


def test_a_line_of_the_models_file_is_its_block():
    project, block = edits.add_block(Project(), "nn.Linear", 0, 0)
    known = Known(project, model=model_snapshot(lines={block: (7, 9)}))
    assert blocks_of(Line(MODEL_FILE, 9), known) == (block,)
    assert blocks_of(Line(MODEL_FILE, 8), known) == blocks_of(Line("<cell 1>", 9), known) == ()
    assert blocks_of(Line(MODEL_FILE, 9), Known(project)) == ()


@pytest.mark.parametrize(
    ("source", "rule", "path"),
    [("", "", ""), ("y = net(x)", "", "net"), ("", "MulBackward0", "net")],
)
def test_only_a_trace_of_the_batch_calls_the_subject_by_no_name(source, rule, path):
    trace = TraceSnapshot(calls=(), source=source, rule=rule)
    assert Known(ON_CONSOLE, trace=trace).trace_path() == path
    assert Known(ON_CONSOLE).trace_path() is None


def test_calls_of_a_trace_and_the_nodes_that_they_made():
    calls = (
        TraceCall(-1, "line", "", line=0, nodes=2),
        TraceCall(0, "module", "Linear", "net.fc.0", line=0, nodes=2),
        TraceCall(1, "op", "aten::t", "net.fc.0", line=0, nodes=1),
        TraceCall(1, "op", "aten::addmm", "net.fc.0", line=0, nodes=1),
        TraceCall(-1, "line", "", line=1, nodes=1),
        TraceCall(4, "op", "aten::sum", line=1, nodes=1),
        TraceCall(4, "op", "aten::detach", line=1),
    )
    trace = TraceSnapshot(calls=calls, lines=(CELL, LOSS), source="y = net(x)", reply_to=8)
    known = Known(ON_CONSOLE, CONSOLE, trace=trace)
    assert [nodes_of(Call(n, 8), known) for n in range(7)] == [
        (1, 3), (1, 3), (3,), (1,), (0,), (0,), (),
    ]  # fmt: skip
    assert nodes_of(Call(3, 9), known) == calls_of(Call(3, 9), known) == ()
    assert calls_of(Node(1, 5), known) == (3,) and calls_of(Node(0, 5), known) == (5,)
    assert calls_of(Parameter("fc.0.weight"), known) == calls_of(Module("fc.0"), known) == (1,)
    assert calls_of(Line("<cell 1>", 3), known) == (4,)
    assert module_of(Call(2, 8), known) == "fc.0"
    assert lines_of(Call(5, 8), known) == (Line("<cell 1>", 3),)


def test_a_call_of_an_outer_module_has_the_nodes_of_those_inside():
    calls = tuple(
        TraceCall(-1, "module", kind, module, line=0, nodes=2)
        for kind, module in (("Sequential", "net.fc"), ("Linear", "net.fc.0"), ("ReLU", "net.fc.1"))
    )
    trace = TraceSnapshot(calls=calls, lines=(CELL,), source="y = net(x)", reply_to=8)
    known = Known(ON_CONSOLE, CONSOLE, trace=trace)
    assert [nodes_of(Call(n, 8), known) for n in range(3)] == [(1, 3), (1, 3), ()]


def test_a_parameter_is_reached_by_the_python_that_the_structure_tells():
    def row(name: str, code: str) -> WeightRow:
        return WeightRow(name, "parameter", (2,), "float32", "cpu", 2, 8, True, code=code)

    rows = (row("a.weight", ".get('a').weight"), row("b.0.c", ".b[0]['c']"))
    totals = StructureTotals(1, 0, 0, 0, 0, 0)
    known = Known(ON_CONSOLE, structure=StructureSnapshot(title="", totals=totals, weights=rows))
    assert expression_of(Parameter("b.0.c"), known) == "net.b[0]['c']"
    assert expression_of(Parameter("a.weight"), known) == "net.get('a').weight"
    assert expression_of(Parameter("b.1.c"), known) == "net.b[1].c"


@pytest.mark.parametrize(
    "reference",
    [
        Node(0, 5),
        Module("fc"),
        Parameter("fc.0.weight"),
        Call(0, 8),
        Element("x"),
        Element("net.fc[0].weight"),
        StorageCell("net.fc[0].weight", 0),
        Blocks(("b",)),
    ],
)
def test_without_snapshots_a_reference_leads_nowhere(reference):
    known = Known(ON_CONSOLE)
    assert lines_of(reference, known) == ()
    assert nodes_of(reference, known) == ()
    assert calls_of(reference, known) == ()
    assert blocks_of(reference, known) == ()
    assert module_box(reference, known) == ""


def test_a_node_of_an_older_graph_leads_nowhere():
    known = Known(ON_CONSOLE, CONSOLE)
    for old in (Node(0, 4), Node(99, 5)):
        assert nodes_of(old, known) == lines_of(old, known) == calls_of(old, known) == ()
        assert parameter_of(old, known) is module_of(old, known) is None
        assert expression_of(old, known) == ""
