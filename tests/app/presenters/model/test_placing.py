"""The places of added blocks: never over another block, aligned with their neighbours."""

from __future__ import annotations

from itertools import combinations

import pytest
from PySide6.QtCore import QRectF

from app.presenters.model import placing
from engine.project import edits
from engine.project.document import Project
from widgets.layout import block_size


def boxes(project: Project) -> dict[str, QRectF]:
    return {b.id: QRectF(b.x, b.y, *block_size(b)) for b in project.model.blocks}


def clear(project: Project) -> bool:
    return not any(a.intersects(b) for a, b in combinations(boxes(project).values(), 2))


@pytest.fixture
def line() -> tuple[Project, list[str]]:
    """Input, Linear and Output, wired, each close to the next."""
    project, ids = Project(), []
    for kind in ("Input", "nn.Linear", "Output"):
        if ids:
            before = project.model.block(ids[-1])
            project, added = placing.add_after(project, kind, before)
        else:
            project, added = placing.add_clear(project, kind, 0, 0)
        ids.append(added)
    return project, ids


def test_a_block_stands_where_it_was_wanted_or_as_far_below_as_it_needs():
    project, first = placing.add_clear(Project(), "nn.Linear", 64, 128)
    assert (project.model.block(first).x, project.model.block(first).y) == (64, 128)
    project, second = placing.add_clear(project, "nn.Linear", 64, 128)
    below = project.model.block(second)
    assert below.x == 64 and clear(project)
    box = boxes(project)[first]
    assert 0 <= below.y - box.bottom() <= 32


def test_a_block_after_another_stands_to_its_right_and_is_wired(line):
    project, (source, middle, end) = line
    xs = [project.model.block(block).x for block in (source, middle, end)]
    assert xs == [0, 304, 608] and {b.y for b in project.model.blocks} == {0}
    ends = [(wire.source, wire.target) for wire in project.model.wires]
    assert ends == [(source, middle), (middle, end)] and clear(project)


def test_a_block_without_an_input_is_not_wired(line):
    project, (_, _, end) = line
    wires = project.model.wires
    project, added = placing.add_after(project, "Input", project.model.block(end))
    assert project.model.wires == wires
    assert project.model.block(added).x == 3 * 304


def test_a_block_on_a_wire_with_room_stands_there_and_moves_nothing(line):
    project, (source, middle, end) = line
    wire = project.model.wires[1]
    project = edits.move_blocks(project, {end: (1200, 0)})
    after, added = placing.insert(project, "nn.ReLU", wire, 800, 0)
    assert after.model.block(added).x == 800 and clear(after)
    for block in (source, middle, end):
        assert after.model.block(block) == project.model.block(block)
    ends = {(w.source, w.target) for w in after.model.wires}
    assert ends == {(source, middle), (middle, added), (added, end)}


def test_a_block_on_a_wire_without_room_moves_what_comes_after(line):
    project, (source, middle, end) = line
    project, aside = edits.add_block(project, "nn.ReLU", 304, 600)  # no wire leads to it
    wire = next(w for w in project.model.wires if w.source == source)
    after, added = placing.insert(project, "nn.ReLU", wire, 280, 0)
    at = {block: after.model.block(block).x for block in (source, added, middle, end, aside)}
    assert at == {source: 0, added: 304, middle: 608, end: 912, aside: 304}
    assert clear(after)
