"""The numbers on the graph's picture, asked for as nodes come into view."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.protocol import GraphNumbersCommand
from widgets.autograd.autograd_view import AutogradView


class GraphNumbersPresenter(QObject):
    def __init__(self, bench: Workbench, view: AutogradView, parent: QObject) -> None:
        super().__init__(parent)
        self._view = view
        self._questions = Questions(bench)
        view.graph.numbers_wanted.connect(self._ask)

    def _ask(self, nodes: tuple[int, ...]) -> None:
        self._questions.ask(
            GraphNumbersCommand(nodes=nodes),
            self._view.graph.show_numbers,
            lambda error: self._view.show_problem(in_words(error)),
        )
