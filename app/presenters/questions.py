"""Questions to the engine: send a command, get its answers, drop those that were superseded.

The answers to a command go to the presenter that sent it, even if the store drops them as outdated.
All other snapshots come from the store; its module describes the whole way.
"""

from __future__ import annotations

from app.processes.link import Answered, Failed, Link
from app.workbench import Workbench
from engine.protocol import Command, ErrorReport


class Questions:
    """Sends commands; of each kind of command only the newest gets its answers. They go to the
    window's engine, or by another link."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._newest: dict[type[Command], tuple[Link, int]] = {}
        self._asked: list[tuple[Link, int]] = []  # also what a newer command has superseded

    def ask(
        self, command: Command, answered: Answered, failed: Failed, link: Link | None = None
    ) -> int:
        """Send a command. `answered(snapshot)` is called for each answer, or `failed(error)`, until
        a command of the same kind is sent. Returns the command's id; 0, and nothing is called, if
        nothing was sent: `Link.unsent` says why."""
        kind = type(command)
        if kind in self._newest:
            before, command_id = self._newest.pop(kind)
            before.drop_answers(command_id)
        if link is None or link is self._bench.link:
            link, command_id = self._bench.link, self._bench.ask(command, answered, failed)
        else:
            command_id = link.ask(self._bench.about_document(command), answered, failed)
        self._newest[kind] = link, command_id
        self._asked = [each for each in self._asked if each[0].awaits(each[1])]
        self._asked.append((link, command_id))
        return command_id

    def stop(self) -> None:
        """Stop what was asked and is not answered yet, and nothing else that runs."""
        for link, command_id in self._asked:
            link.stop_command(command_id)

    def drop(self) -> None:
        """Pass on no more answers."""
        for link, command_id in self._newest.values():
            link.drop_answers(command_id)
        self._newest.clear()


def in_words(error: ErrorReport) -> str:
    """The message and the hint of an error, on one line."""
    return f"{error.message} {error.hint}".strip()
