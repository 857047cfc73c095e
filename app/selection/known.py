"""The snapshots that the window has already, and the names of the subject's parts in them.

A part has three names: that of `named_parameters()` (`0.weight`), that of a recording of its step
(`Net.0`), and the Python of the console (`model[0].weight`). All are compared as dotted paths.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from msgspec import Struct

from app.selection.references import Element, Node, Parameter, Reference
from engine.project.document import Project
from engine.project.subject import CanvasSubject, ConsoleSubject
from engine.protocol import (
    GraphNode,
    GraphSnapshot,
    ModelSnapshot,
    StructureSnapshot,
    TraceSnapshot,
)

LAB_SUBJECT = "lab.subject"
"""The subject's module in a cell, whatever the subject is."""


class Known(Struct, frozen=True):
    """The document and the newest snapshots that references lead into."""

    project: Project
    graph: GraphSnapshot | None = None
    model: ModelSnapshot | None = None
    structure: StructureSnapshot | None = None
    trace: TraceSnapshot | None = None

    @property
    def expression(self) -> str:
        """The subject's module in the Python of the console."""
        made = self.structure is not None and self.structure.made
        match self.project.subject:
            case ConsoleSubject(expression=expression) if dotted(expression) and not made:
                return expression.strip()
            case CanvasSubject():
                return "canvas.model"
        return LAB_SUBJECT

    @property
    def console_path(self) -> str | None:
        """`expression` as a dotted path."""
        return dotted(self.expression)

    def node(self, reference: Node) -> GraphNode | None:
        """The node, if its graph is still the newest."""
        graph = self.graph
        if graph is None or graph.reply_to != reference.graph or reference.id >= len(graph.nodes):
            return None
        return graph.nodes[reference.id]

    def graph_path(self) -> str | None:
        """The name of the subject's module in the graph's nodes."""
        if self.graph is None:
            return None
        path = self.graph.subject_path
        return self.console_path if path is None else path

    def trace_path(self) -> str | None:
        """The name of the subject's module in the trace's calls."""
        if self.trace is None:
            return None
        of_canvas = not self.trace.source and not self.trace.rule
        return "" if of_canvas else self.console_path


@lru_cache(maxsize=20_000)
def dotted(expression: str) -> str | None:
    """`model[0].mlp["fc"].weight` as `model.0.mlp.fc.weight`; None for any other expression."""
    try:
        node = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError:
        return None
    parts: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            parts.append(str(node.slice.value))
        else:
            return None
        node = node.value
    return ".".join([node.id, *reversed(parts)])


def within(path: str | None, outer: str | None) -> str | None:
    """A path as seen from the one around it, "" for that itself; None if it is not inside."""
    if path is None or outer is None:
        return None
    if path == outer:
        return ""
    start = f"{outer}." if outer else ""
    return path[len(start) :] if path.startswith(start) else None


def leaf_reference(label: str, known: Known) -> Reference:
    """The parameter of this label in the graph, or the console's tensor."""
    name = name_of_label(label, known)
    return Element(label) if name is None else Parameter(name)


def name_of_label(label: str, known: Known) -> str | None:
    """The name of a leaf in the subject; None if the subject does not hold it."""
    if known.graph is None or not label:
        return None
    if known.graph.subject_path is not None:
        return label
    return within(dotted(label), known.console_path) or None


def names_of(parameter: str, known: Known) -> set[str]:
    """All names of a parameter: tied ones have several."""
    rows = known.structure.weights if known.structure is not None else ()
    found = {row.name: row.shared_with for row in rows}
    return {parameter, *found.get(parameter, ())}
