"""References where a part of what the window knows is missing, or where lines are not known."""

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
from app.selection.known import Known, name_of_label, names_of
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
from engine.project.document import Project, replace
from engine.protocol import (
    MODEL_FILE,
    SourceLine,
    StructureSnapshot,
    StructureTotals,
    TraceCall,
    TraceSnapshot,
)
from tests.app.selection.test_finding import CELL, CONSOLE, IN_FILE, LOSS, ON_CONSOLE, STEP
from tests.model_snapshots import model_snapshot


def trace_of(*calls: TraceCall, lines: tuple[SourceLine, ...] = (CELL, LOSS)) -> TraceSnapshot:
    return TraceSnapshot(calls=calls, lines=lines, source="y = net(x)", reply_to=8)


def test_a_call_leads_nowhere_without_its_trace() -> None:
    known = Known(ON_CONSOLE, CONSOLE)
    call = Call(0, 8)
    assert nodes_of(call, known) == lines_of(call, known) == calls_of(call, known) == ()
    assert module_of(call, known) is None and module_box(call, known) == ""
    known = Known(ON_CONSOLE, CONSOLE, trace=trace_of(TraceCall(-1, "line", "", line=0, nodes=1)))
    assert module_of(Call(0, 9), known) is None and lines_of(Call(0, 9), known) == ()


def test_an_operator_of_no_known_line_is_found_by_its_name_and_module() -> None:
    calls = (
        TraceCall(-1, "op", "aten::addmm", "net.fc.0", nodes=1),
        TraceCall(-1, "op", "aten::addmm", "net.fc.1", nodes=1),
        TraceCall(-1, "op", "aten::addmm", "net.fc.0"),
        TraceCall(-1, "op", "aten::mm", "net.fc.0", nodes=1),
        TraceCall(-1, "module", "aten::addmm", "net.fc.0", nodes=1),
    )
    known = Known(ON_CONSOLE, CONSOLE, trace=trace_of(*calls))
    assert calls_of(Node(1, 5), known) == (0,)
    assert nodes_of(Call(0, 8), known) == (1,) and lines_of(Call(0, 8), known) == ()
    assert nodes_of(Call(1, 8), known) == nodes_of(Call(2, 8), known) == ()


def test_calls_of_a_line_are_those_of_all_lines_of_a_file_without_a_number() -> None:
    lines = (CELL, LOSS, SourceLine("<cell 2>", 3, "z = 1"))
    calls = tuple(TraceCall(-1, "line", "", line=number, nodes=1) for number in range(3))
    known = Known(ON_CONSOLE, CONSOLE, trace=trace_of(*calls, lines=lines))
    assert calls_of(Line("<cell 1>"), known) == (0, 1)
    assert calls_of(Line("<cell 1>", 3), known) == (1,)
    assert calls_of(Line("<cell 3>"), known) == ()


def test_a_node_of_a_leaf_is_called_by_its_module() -> None:
    calls = (
        TraceCall(-1, "module", "Linear", "net.fc.0", line=0, nodes=2),
        TraceCall(0, "op", "aten::t", "net.fc.0", line=0, nodes=1),
        TraceCall(-1, "module", "Linear", "net.fc.1", line=0, nodes=2),
    )
    known = Known(ON_CONSOLE, CONSOLE, trace=trace_of(*calls))
    assert calls_of(Node(4, 5), known) == (0,)
    assert calls_of(Element("y"), known) == ()


def test_the_subject_itself_is_the_module_of_no_path() -> None:
    known = Known(ON_CONSOLE, CONSOLE)
    assert module_of(Element("net"), known) == "" and module_of(Element("other"), known) is None
    assert module_box(Module(""), known) == "net"
    assert module_box(Module(""), Known(ON_CONSOLE)) == ""
    assert parameter_of(Element("net"), known) is None


def test_several_blocks_are_in_no_one_module_or_box() -> None:
    project = Project()
    for _ in range(2):
        project = edits.add_block(project, "nn.Linear", 0, 0)[0]
    first, second = (block.id for block in project.model.blocks)
    known = Known(project, replace(STEP, subject_path=""))
    both = Blocks((first, second))
    assert module_of(both, known) is None and module_box(both, known) == ""
    assert blocks_of(both, known) == (first, second)
    assert module_of(Blocks(("gone",)), known) is None
    assert module_box(Blocks(("gone",)), known) == ""
    assert module_box(Blocks((first,)), known) == project.model.blocks[0].name
    assert module_box(Blocks((first,)), Known(project)) == ""


def test_a_line_of_the_model_s_file_that_several_blocks_share_is_of_the_first() -> None:
    project = Project()
    for _ in range(2):
        project = edits.add_block(project, "nn.Linear", 0, 0)[0]
    first, second = (block.id for block in project.model.blocks)
    known = Known(project, model=model_snapshot(lines={first: (3,), second: (3, 4)}))
    assert blocks_of(Line(MODEL_FILE, 3), known) == (first,)
    assert blocks_of(Line(MODEL_FILE, 4), known) == (second,)


@pytest.mark.parametrize("known", [Known(IN_FILE, STEP), Known(ON_CONSOLE, CONSOLE)])
def test_a_leaf_without_a_name_is_nothing_of_the_subject(known: Known) -> None:
    assert name_of_label("", known) is None
    assert leaf_named(Element("x"), [""], known) is None
    assert leaf_named(Parameter("fc.0.weight"), [], known) is None


def test_a_tensor_among_leaves_is_named_by_its_own_python() -> None:
    known = Known(ON_CONSOLE, CONSOLE)
    assert leaf_named(Element('d["w"]'), ["x", "d['w']"], known) == "d['w']"
    assert leaf_named(Element("a + b"), ["a + b"], known) is None
    assert leaf_named(None, ["x"], known) is None


def test_a_parameter_that_shares_nothing_has_one_name() -> None:
    totals = StructureTotals(1, 0, 0, 0, 0, 0)
    known = Known(ON_CONSOLE, structure=StructureSnapshot(title="", totals=totals))
    assert names_of("w", known) == names_of("w", Known(ON_CONSOLE)) == {"w"}


def test_a_tensor_is_its_own_python_and_a_block_s_weight_one_of_the_canvas() -> None:
    for known in (Known(ON_CONSOLE), Known(ON_CONSOLE, CONSOLE), Known(Project())):
        assert expression_of(Element("a + b", (0,)), known) == "a + b"
        assert expression_of(StorageCell("x.grad", 3), known) == "x.grad"
        assert expression_of(None, known) == expression_of(Line("net.py"), known) == ""
    assert expression_of(Parameter("fc.weight"), Known(Project())) == "canvas.model.fc.weight"
    canvas = Known(Project(), CONSOLE)
    assert (
        module_of(Element("canvas.model"), canvas) == "" and canvas.graph_path() == "canvas.model"
    )


def test_an_operator_on_another_line_made_another_node() -> None:
    calls = tuple(TraceCall(-1, "op", "aten::addmm", "net.fc.0", line=n, nodes=1) for n in range(2))
    known = Known(ON_CONSOLE, CONSOLE, trace=trace_of(*calls, lines=(LOSS, CELL)))
    assert calls_of(Node(1, 5), known) == (1,)
    assert [nodes_of(Call(n, 8), known) for n in range(2)] == [(), (1,)]
    assert lines_of(Call(0, 8), known) == (Line("<cell 1>", 3),)
