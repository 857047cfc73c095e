"""Questions to the engine: send a command, get its answers, drop those that were superseded.

The answers to a command go to the presenter that sent it, even if the store drops them as outdated.
All other snapshots come from the store; its module describes the whole way.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import QObject

from app.processes.link import Link
from app.workbench import Workbench
from engine.protocol import Command, ErrorReport, ErrorSnapshot, Snapshot

Answered = Callable[[Any], object]
Failed = Callable[[ErrorReport], object]


class Questions(QObject):
    """Sends commands; of each kind of command only the newest gets its answers. They go to the
    window's engine, or by another link."""

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._newest: dict[type[Command], tuple[Link, int, Answered, Failed]] = {}
        self._asked: list[tuple[Link, int]] = []  # also what a newer command has superseded
        self._heard = weakref.WeakSet[Link]()
        self._hear(bench.link)

    def _hear(self, link: Link) -> None:
        if link not in self._heard:
            self._heard.add(link)
            link.snapshot.connect(partial(self._on_snapshot, link))

    def ask(
        self, command: Command, answered: Answered, failed: Failed, link: Link | None = None
    ) -> int:
        """Send a command. `answered(snapshot)` is called for each answer, or `failed(error)`, until
        a command of the same kind is sent. Returns the command's id; 0, and nothing is called, if
        nothing was sent: `Link.unsent` says why."""
        link = link or self._bench.link
        self._hear(link)
        is_own = link is self._bench.link
        about = self._bench.about_document
        command_id = self._bench.send(command) if is_own else link.send(about(command))
        self._newest[type(command)] = link, command_id, answered, failed
        unanswered = [each for each in self._asked if each[0].awaits(each[1])]
        self._asked = [*unanswered, (link, command_id)]
        return command_id

    def stop(self) -> None:
        """Stop what was asked and is not answered yet, and nothing else that runs."""
        for link, command_id in self._asked:
            link.stop_command(command_id)

    def drop(self) -> None:
        """Pass on no more answers."""
        self._newest.clear()

    def _on_snapshot(self, link: Link, snapshot: Snapshot) -> None:
        for asked, command_id, answered, failed in tuple(self._newest.values()):
            if asked is link and command_id and snapshot.reply_to == command_id:
                if isinstance(snapshot, ErrorSnapshot):
                    failed(snapshot.error)
                else:
                    answered(snapshot)


def in_words(error: ErrorReport) -> str:
    """The message and the hint of an error, on one line."""
    return f"{error.message} {error.hint}".strip()
