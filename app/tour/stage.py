"""The base of the tour's stages, and the album of their pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtWidgets import QAbstractButton, QWidget

from app.application import Application
from app.store import Store
from app.tour.hand import Hand, TourFailure
from engine.project.document import Project
from engine.protocol import ErrorSnapshot, Snapshot

W = TypeVar("W", bound=QWidget)
S = TypeVar("S", bound=Snapshot)


class Album:
    """Saves numbered pictures in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.names: list[str] = []

    def add(self, widget: QWidget, name: str) -> None:
        """Save the picture of a widget as `NN-name.png`. Raises TourFailure if it cannot be
        saved."""
        file_name = f"{len(self.names) + 1:02d}-{name}.png"
        path = self._folder / file_name
        if not widget.grab().save(str(path)):
            raise TourFailure(f"the picture {path} could not be written")
        self.names.append(file_name)


class Stage:
    """One part of the tour: `run` drives the window and fills in `report`."""

    def __init__(
        self, application: Application, hand: Hand, album: Album, out: Path, report: dict[str, Any]
    ) -> None:
        self.application, self.hand, self.album = application, hand, album
        self.out, self.report = out, report

    def run(self) -> None:
        """Raises TourFailure if the window does not do what it should."""
        raise NotImplementedError

    @property
    def store(self) -> Store:
        return self.application.bench.store

    @property
    def project(self) -> Project:
        return self.store.project

    def picture(self, name: str) -> None:
        self.hand.settle()
        self.hand.settle()  # lay out again if the status bar got wider
        self.album.add(self.application.window, name)

    def count(self, key: str) -> None:
        self.report[key] = self.report.get(key, 0) + 1

    def find(self, parent: QWidget, kind: type[W], name: str) -> W:
        """The visible child of this type and object name. Raises TourFailure if there is none."""
        for child in parent.findChildren(kind, name):
            if child.isVisible():
                return child
        raise TourFailure(f"nothing called “{name}” is to be seen")

    def press(self, parent: QWidget, name: str) -> None:
        """Click the visible button of this name."""
        self.hand.click(self.find(parent, QAbstractButton, name))

    def wait_for(self, kind: type[S], condition: Callable[[S], object], what: str) -> S:
        """The newest snapshot of a kind, once it meets the condition. Raises TourFailure if the
        engine reports an error before."""

        def reached() -> bool:
            failed = self.store.newest(ErrorSnapshot)
            if failed is not None:
                raise TourFailure(f"{failed.command}: {failed.error.message}")
            snapshot = self.store.newest(kind)
            return snapshot is not None and bool(condition(snapshot))

        self.hand.until(reached, what)
        snapshot = self.store.newest(kind)
        assert snapshot is not None
        return snapshot
