"""Messages about code of the user's that is held: at an optimizer step, or at a line."""

from __future__ import annotations

from typing import Literal

from .commands import Command
from .snapshots import Snapshot

HeldAt = Literal["", "step", "update", "line", "call", "backward"]


class HeldSnapshot(Snapshot, frozen=True, kw_only=True):
    """The cell or file `title` is held in `line` of `file`, in the function `function` ("" outside
    of one): after an optimizer step or before its update, before a line, after a call of torch, or
    inside a backward(). With `at` "", it goes on. `after` says in words what a step of Train that
    is stepped by less than a phase has run last.

    `source` is the whole source, or in a very long one the lines around it, after empty ones.
    """

    at: HeldAt = ""
    title: str = ""
    file: str = ""
    function: str = ""
    line: int = 0
    source: str = ""
    after: str = ""

    @property
    def where(self) -> str:
        """In words: "Held at line 7 of train, in cell 3"."""
        if self.after:
            return f"Held {self.after}"
        places = {
            "step": "after the step of",
            "update": "before the update of",
            "backward": "in the backward() of",
        }
        at = places.get(self.at, "at")
        of = f" of {self.function}" if self.function else ""
        return f"Held {at} line {self.line:,}{of}, in {self.file}"


class FarewellSnapshot(Snapshot, frozen=True):
    """The process of the user's that the window is attached to ends by itself, or closes to all
    windows: the last that comes from it. `code` is the exit code that it will have; None if it does
    not know."""

    code: int | None = None


class StepLineCommand(Command, frozen=True, kw_only=True):
    """Let the code that is held run to its next line. `ContinueTrainingCommand` lets it go on,
    `StepTrainingCommand` to the next optimizer step."""


class RunHeldCommand(Command, frozen=True, kw_only=True):
    """Run Python where the code is held, among the variables of its frame -> VariablesSnapshot,
    then CellSnapshot. What it prints comes with the output of the code that is held."""

    handler = "console:run_held"
    while_held = True
    source: str
