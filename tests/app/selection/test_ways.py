"""Which views of the workspaces can show what is selected."""

from __future__ import annotations

from app import ways
from app.selection.known import Known
from app.selection.references import Element, Line, Module, Node, Parameter
from engine.project.document import Project, replace
from tests.app.selection.test_finding import CONSOLE, IN_FILE, ON_CONSOLE, STEP


def test_the_structure_shows_modules_of_code() -> None:
    assert ways._in_structure(Module("fc"), Known(IN_FILE))
    assert not ways._in_structure(Module("fc"), Known(Project()))
    assert not ways._in_structure(Line("a.py", 3), Known(IN_FILE))


def test_lines_are_shown_beside_a_graph_that_has_their_file() -> None:
    graph = replace(CONSOLE, sources={"<cell 1>": "x = 1"})
    assert ways._beside_graph(Node(0, 5), Known(ON_CONSOLE, graph))
    assert ways._beside_graph(Line("<cell 1>", 2), Known(ON_CONSOLE, graph))
    assert not ways._beside_graph(Line("<cell 2>", 2), Known(ON_CONSOLE, graph))
    assert not ways._beside_graph(Line("<cell 1>", 2), Known(ON_CONSOLE))
    assert not ways._beside_graph(Node(0, 5), Known(ON_CONSOLE, CONSOLE))


def test_the_console_shows_lines_of_cells() -> None:
    known = Known(ON_CONSOLE, CONSOLE)
    assert ways._in_cell(Line("<cell 3>", 1), known) and ways._in_cell(Node(0, 5), known)
    assert ways._in_cell(Line("<kept cell 3>", 1), known)
    assert not ways._in_cell(Line("cell.py", 1), known)
    assert not ways._in_cell(Module("none"), known)


def test_gradients_are_those_of_parameters_and_leaves() -> None:
    on_console, in_file = Known(ON_CONSOLE, CONSOLE), Known(IN_FILE, STEP)
    for known in (on_console, in_file):
        assert ways._has_gradient(Parameter("fc.0.weight"), known)
        assert ways._has_gradient(Parameter("not.reached"), known)
        assert ways._has_gradient(Node(4, 5), known)
        assert not ways._has_gradient(Node(0, 5), known)
        assert not ways._has_gradient(Module("fc"), known)  # not its leaves alone
        assert not ways._has_gradient(Module("none"), known)
    assert not ways._has_gradient(Parameter("fc.0.weight"), Known(IN_FILE))
    assert not ways._has_gradient(Element("x"), Known(ON_CONSOLE))
    leaf = replace(CONSOLE.nodes[2], label="data")
    other = replace(CONSOLE, nodes=(*CONSOLE.nodes[:2], leaf, *CONSOLE.nodes[3:]))
    assert ways._has_gradient(Element("data"), Known(ON_CONSOLE, other))
