"""What the tests of the selection do and read in the program."""

from __future__ import annotations

from engine.protocol import GraphSnapshot

WAIT_MS = 30_000
WEIGHT = "transformer.h.1.attn.c_attn.weight"


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
