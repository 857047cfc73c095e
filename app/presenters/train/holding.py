"""The phases of a step by hand, and why a run is held."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.train.train import TRAIN, TrainPresenter
from app.selection.references import Module, Parameter
from app.workbench import Workbench
from engine.protocol import Hold, HoldWhenSignal
from widgets import make
from widgets.training.train_view import TrainView


class HoldingPresenter(QObject):
    def __init__(self, bench: Workbench, view: TrainView, train: TrainPresenter) -> None:
        super().__init__(train)
        self._bench, self._view = bench, view
        bench.selection.views[view.hold] = TRAIN
        view.strip.step_requested.connect(train.step)
        view.hold.part_wanted.connect(self._show_part)
        view.hold.divergence_wanted.connect(lambda: train.train(find_divergence=True))
        bench.store.project_changed.connect(lambda *_: self._send_limits())
        bench.link.became_ready.connect(self._send_limits)
        self._send_limits()

    def _send_limits(self) -> None:
        """Loops of the user's own code are held for the same reasons as runs of Train."""
        self._bench.link.signal(HoldWhenSignal(when=self._bench.project.training.hold))

    def _show_part(self, hold: Hold) -> None:
        """Choose the part that the hold is about, and offer the views that show it."""
        part = Parameter(hold.parameter) if hold.parameter else Module(hold.module)
        self._bench.selection.choose(part, TRAIN)
        make.pop_up(make.context_menu(self._view.hold), self._view.hold.below_part)
