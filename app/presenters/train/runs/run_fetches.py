"""Runs of an engine on another machine, and folders written from them, copied to this one: where
to, progress, stop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePath

from PySide6.QtCore import QObject

from app.other_files import Stop
from app.workbench import Workbench
from widgets.runs.run_pane import RunPane


class RunFetches(QObject):
    def __init__(self, bench: Workbench, pane: RunPane, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._pane = bench, pane
        self._left: list[str] = []
        self._copied: list[str] = []
        self._words = ""
        self._stop: Stop | None = None  # while one is copied
        pane.fetch_requested.connect(self._ask)
        pane.stop_requested.connect(lambda: self._stop and self._stop())
        bench.link.state_changed.connect(self._show_machine)
        self._show_machine()

    def _show_machine(self) -> None:
        self._pane.show_machine(self._bench.files.there.machine)

    def _ask(self, folders: tuple[str, ...]) -> None:
        bench = self._bench
        chosen = bench.dialogs.open_folder(
            bench.window, "Copy runs to a folder of this machine", ""
        )
        if chosen:
            self.copy(folders, Path(chosen))

    def copy(self, folders: Sequence[str], into: Path, words: str = "") -> None:
        """Copy folders of the engine's machine; at the end `words` are told, too."""
        self._left, self._copied, self._words = list(folders), [], words
        self._next(into)

    def _next(self, chosen: Path) -> None:
        if not self._left:
            self._tell(f"Copied into {chosen}: {', '.join(self._copied)}. {self._words}".rstrip())
            return
        folder = self._left.pop(0)
        target = chosen / PurePath(folder).name
        if target.exists():
            self._fail(f"{target} is there already.")
            return
        self._pane.show_writing(f"Copying {target.name} into {chosen}…")
        # A run is whole, or not there.
        beside = target.with_name(f"{target.name}.part")
        done = partial(self._on_copied, beside, target)
        self._stop = self._bench.files.there.fetch(folder, beside, done)

    def _on_copied(self, beside: Path, target: Path, failure: str) -> None:
        self._stop = None
        if not failure:
            try:
                beside.rename(target)
            except OSError as error:
                failure = f"{target}: {error.strerror or error}."
        if failure:
            self._fail(f"{target.name} was not copied. {failure}")
            return
        self._copied.append(target.name)
        self._next(target.parent)

    def _fail(self, words: str) -> None:
        copied = f" Copied before: {', '.join(self._copied)}." if self._copied else ""
        self._tell("")
        self._pane.show_problem(words + copied)

    def _tell(self, words: str) -> None:
        self._bench.files.there.clear()
        self._pane.show_writing("")
        self._pane.show_told(words)
