"""The views of the workspaces that show what is selected, in the order of the menu "Show in"."""

from __future__ import annotations

from app.presenters.show_in import Destination
from app.selection.finding import (
    blocks_of,
    calls_of,
    expression_of,
    lines_of,
    module_of,
    nodes_of,
    parameter_of,
)
from app.selection.known import Known
from app.selection.references import Reference
from app.workspaces import Workspaces


def ways(to: Workspaces) -> tuple[Destination, ...]:
    return (
        Destination("canvas", "&Model", blocks_of, lambda _: to.at_model().show_chosen()),
        Destination(
            "structure", "&Model", _in_structure, lambda _: to.at_structure().show_chosen()
        ),
        Destination("canvas code", "&Code", blocks_of, lambda _: to.at_model().show_code()),
        Destination("code", "&Code", _beside_graph, lambda _: to.at_chosen().show_lines()),
        Destination("console", "C&onsole", _in_cell, lambda _: to.at_tensors().console.show_line()),
        Destination("graph", "Autograd &graph", nodes_of, lambda _: to.at_chosen().show_nodes()),
        Destination(
            "graph",
            "Autograd &graph of a new pass",
            _in_new_graph,
            lambda _: to.show_in_new_graph(),
            begins=True,
        ),
        Destination(
            "gradients", "Gra&dients", _has_gradient, lambda r: to.at_chosen().show_gradient(r)
        ),
        Destination("parameters", "&Train", parameter_of, lambda _: to.at_parameters().come_up()),
        Destination("trace", "&Forward, op by op", calls_of, lambda _: to.at_trace().show_chosen()),
        Destination("values", "&Values", expression_of, lambda r: to.at_tensors().show_values(r)),
        Destination(
            "storage", "&Storage", expression_of, lambda r: to.at_tensors().show_storage(r)
        ),
    )


def _in_structure(reference: Reference, known: Known) -> bool:
    return known.project.subject.is_code and module_of(reference, known) is not None


def _beside_graph(reference: Reference, known: Known) -> bool:
    sources = known.graph.sources if known.graph is not None else {}
    return any(line.file in sources for line in lines_of(reference, known))


def _in_cell(reference: Reference, known: Known) -> bool:
    files = (line.file for line in lines_of(reference, known))
    return any(file.startswith(("<cell ", "<kept cell ")) for file in files)


def _in_new_graph(reference: Reference, known: Known) -> bool:
    return known.graph is None and module_of(reference, known) is not None


def _has_gradient(reference: Reference, known: Known) -> bool:
    """Whether it is a leaf of the graph, or a parameter of its subject that the graph does not
    reach."""
    if parameter_of(reference, known) is not None:
        return known.graph_path() is not None
    nodes = known.graph.nodes if known.graph is not None else ()
    found = nodes_of(reference, known)
    return bool(found) and all(nodes[node].kind == "leaf" for node in found)
