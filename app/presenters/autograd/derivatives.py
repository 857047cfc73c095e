"""The tab Derivatives of the Autograd workspace."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.presenters.autograd.console_reading import ConsoleReading, read_of
from app.presenters.autograd.workspace import require_forward
from app.presenters.questions import Questions
from app.workbench import Workbench
from engine.project.document import replace
from engine.protocol import (
    Command,
    DerivativeCommand,
    GradcheckCommand,
    ReadEntryCommand,
    RunExampleCommand,
    VariablesSnapshot,
)
from widgets.derivatives.view import DerivativeView


class DerivativesPresenter(QObject):
    """Signal `run_requested(source)`: run Python in the console."""

    run_requested = Signal(str)

    def __init__(self, bench: Workbench, view: DerivativeView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, view
        self._questions = Questions(bench)
        self._read: ConsoleReading | None = None  # of the newest question; None for an example
        view.asked.connect(self._ask)
        view.run_requested.connect(self.run_requested)
        view.interrupt_requested.connect(self._questions.stop)
        bench.store.on(VariablesSnapshot, self._show_variables)
        bench.store.revision_changed.connect(self._on_revision)
        bench.files.opened.connect(self._forget)
        bench.link.ended.connect(self._forget)
        newest = bench.newest(VariablesSnapshot)
        if newest is not None:
            view.show_variables(newest.variables)

    def _ask(self, command: Command) -> None:
        show = self._view.show_answer
        if isinstance(command, ReadEntryCommand):
            show = self._view.show_entry
        elif isinstance(command, DerivativeCommand | GradcheckCommand) and not command.function:
            # The model is that of the forward pass.
            require_forward(self._bench, self._questions, self._view.show_error)
        else:
            example = self._view.example
            if example is not None and isinstance(command, DerivativeCommand | GradcheckCommand):
                run = RunExampleCommand(source=example.code, tab="derivatives")
                self._questions.ask(run, lambda _: None, self._view.show_error)
                command = replace(command, example="derivatives")
        if isinstance(command, DerivativeCommand | GradcheckCommand):
            self._read = self._reading_of(command)
        self._questions.ask(command, show, self._view.show_error)

    def _reading_of(self, command: DerivativeCommand | GradcheckCommand) -> ConsoleReading | None:
        newest = self._bench.newest(VariablesSnapshot)
        if newest is None or command.example or not command.function:
            return None
        return read_of((command.function, *command.inputs), newest.variables)

    def _show_variables(self, snapshot: VariablesSnapshot) -> None:
        self._view.show_variables(snapshot.variables)
        held = self._bench.store.held  # the variables are those of a frame
        if self._read is not None and held is None and self._read.is_old(snapshot.variables):
            self._view.tell_old()

    def _on_revision(self) -> None:
        if self._view.is_of_model:
            self._forget()

    def _forget(self) -> None:
        """Clear the view: its model or its variables have changed."""
        self._questions.drop()
        self._read = None
        self._view.clear()
