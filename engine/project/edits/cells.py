"""Edits of the console's cells that the project remembers."""

from __future__ import annotations

from ..document import Cell, Project, replace
from ..names import fresh_name


def record_cell(project: Project, source: str) -> Project:
    """Add a cell that was run, so that it can be run again in a new engine."""
    cell = Cell(id=fresh_name("c", {cell.id for cell in project.cells}), source=source)
    return replace(project, cells=(*project.cells, cell))


def forget_cells(project: Project) -> Project:
    return replace(project, cells=())
