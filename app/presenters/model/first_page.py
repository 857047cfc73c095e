"""The Model page as it is painted first: before the rest of the program is loaded."""

from __future__ import annotations

from PySide6.QtCore import QByteArray

from app.window.model_page import ModelPage
from engine.project import files
from engine.project.document import ViewState
from widgets.canvas.model_canvas import ModelCanvas


def first_page(path: str, docks: QByteArray) -> tuple[ModelPage, ViewState] | None:
    """The page with a project's blocks, its panels as in `docks`, and how the project's canvas was
    left. None if the file cannot be read or shows something else first: the whole program tells or
    shows what. A ModelPresenter makes the page work."""
    try:
        project = files.load(path)
    except files.FileProblem:
        return None
    if project.view.workspace != "model" or project.subject.is_code:
        return None
    page = ModelPage()
    page.restore_docks(docks)
    page.canvas.show_model(project.model)
    return page, project.view


def show_view(canvas: ModelCanvas, view: ViewState) -> None:
    """Show a project's canvas as it was left; all of it the first time."""
    if view.canvas_zoom == 1.0 and view.canvas_center == (0.0, 0.0):
        canvas.fit()
    else:
        canvas.set_view(view.canvas_zoom, *view.canvas_center)
