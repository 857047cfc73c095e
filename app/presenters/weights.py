"""Weights of a file, loaded into the subject."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.weights import shown_name
from app.workbench import Workbench
from engine.project.document import replace
from engine.protocol import ErrorReport, FitSnapshot, LoadWeightsCommand, Snapshot

if TYPE_CHECKING:
    from app.window.weights_panel import WeightsPanel

_BANNER = "weights"


class WeightsPresenter(QObject):
    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._questions = Questions(bench)
        self._asked: LoadWeightsCommand | None = None
        bench.files.opened.connect(self._forget)
        bench.link.ended.connect(self._forget)
        bench.store.revision_changed.connect(self._on_revision)

    @cached_property
    def panel(self) -> WeightsPanel:
        """Made for the first weights."""
        from app.window.weights_panel import WeightsPanel

        panel = WeightsPanel(self._bench.window)
        panel.load_requested.connect(self._load_what_fits)
        self._bench.files.opened.connect(panel.hide)
        self._bench.link.ended.connect(panel.hide)
        return panel

    def load(self, path: str, group: str = "", branches: Mapping[str, str] | None = None) -> None:
        """Load the weights if all tensors of the subject are in the file, by their names; else
        show what fits, and ask. With `group`, only tensors whose keys begin so; `branches` name
        the branches of the file for modules that have other names there."""
        project = self._bench.project
        self._send(
            LoadWeightsCommand(
                model=project.model,
                training=project.training,
                subject=project.subject,
                path=str(Path(path).absolute()),
                group=group,
                branches=dict(branches or {}),
            )
        )

    def _load_what_fits(self) -> None:
        if self._asked is not None:
            self._send(replace(self._asked, agreed=True))

    def _send(self, command: LoadWeightsCommand) -> None:
        self._bench.window.banners.dismiss(_BANNER)
        self._asked = command
        name = shown_name(Path(command.path))
        if self._questions.ask(command, self._show, self._fail):
            self._bench.say(f"Reading {name} …")
        else:
            self._bench.say(f"{name} was not loaded. {self._bench.link.unsent}")

    def _show(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, FitSnapshot):
            self._bench.say("")
            self.panel.show_fit(snapshot)

    def _fail(self, error: ErrorReport) -> None:
        assert self._asked is not None
        name = shown_name(Path(self._asked.path))
        self._bench.window.banners.show_banner(
            _BANNER, "error", f"{name} was not loaded. {in_words(error)}", detail=error.traceback
        )

    def _on_revision(self) -> None:
        """Take back the offer to load into a subject that is no longer worked on."""
        asked = self._asked
        if asked is not None and asked.subject != self._bench.project.subject:
            self.panel.hide()

    def _forget(self) -> None:
        """The subject that was asked about is gone."""
        self._questions.drop()
        self._asked = None
