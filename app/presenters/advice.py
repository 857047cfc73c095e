"""Findings of advice in the user's code: shown quietly, unless its kind is muted."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from app.workbench import Workbench
from engine.protocol import Finding, FindingSnapshot
from widgets.advice.kinds import KINDS

_ACTION = "tensors.show_muted_advice"


class AdvicePresenter(QObject):
    """`show(finding, beside_run)` shows a note: beside the run of Train, or in the console.
    `drop(kind)` removes all notes of a kind."""

    def __init__(
        self,
        bench: Workbench,
        show: Callable[[Finding, bool], None],
        drop: Callable[[str], None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._bench, self._show, self._drop = bench, show, drop
        bench.store.on(FindingSnapshot, self._take)
        self._show_action()

    def _take(self, snapshot: FindingSnapshot) -> None:
        finding = snapshot.finding
        if finding.kind not in self._bench.settings.muted_advice:
            self._show(finding, bool(snapshot.run))

    def mute(self, kind: str) -> None:
        settings = self._bench.settings
        settings.muted_advice = (*settings.muted_advice, kind)
        self._show_action()
        self._bench.say(f"Notes about {KINDS[kind]} are muted.")
        self._drop(kind)

    def unmute_all(self) -> None:
        self._bench.settings.muted_advice = ()
        self._show_action()
        self._bench.say("Notes of all kinds are shown again.")

    def _show_action(self) -> None:
        self._bench.actions[_ACTION].setEnabled(bool(self._bench.settings.muted_advice))
