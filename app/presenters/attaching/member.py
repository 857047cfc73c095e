"""The state of one rank of a run whose ranks the window shows together."""

from __future__ import annotations

import math

from app.processes.engine_link import EngineLink
from engine.connecting.greeting import About
from engine.protocol import HeldSnapshot, LoopSnapshot, Snapshot, StepColumns

MOST_POINTS = 4000
"""The most points of a rank's curves. Beyond it every second point is dropped."""

_Point = tuple[int, float | None, float, float | None, dict[str, float]]
"""Step, loss, accuracy, gradient norm, and what the script has logged with it."""


class Member:
    def __init__(self, about: About, link: EngineLink | None = None) -> None:
        self.about, self.link = about, link
        self.step = 0
        self.is_held = self.is_after_step = False
        self._points: list[_Point] = []

    def take(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, HeldSnapshot):
            self.is_held, self.is_after_step = bool(snapshot.at), snapshot.at == "step"
        elif isinstance(snapshot, LoopSnapshot):
            self.step = snapshot.step
            told = snapshot.steps
            names = tuple(told.figures)
            logged = zip(*told.figures.values(), strict=True) if names else [()] * len(told.step)
            rows: list[dict[str, float]] = [dict(zip(names, row, strict=True)) for row in logged]
            columns = told.step, told.loss, told.accuracy, told.gradient_norm, rows
            others = snapshot.line_of_step  # the steps that are not the first optimizer's
            self._points += [p for p in zip(*columns, strict=False) if p[0] not in others]
            if len(self._points) > MOST_POINTS:
                del self._points[1:-1:2]

    def goes_on(self) -> None:
        """The rank was told to go on. It counts as going on from now: its own message may come
        after the messages of the others about their next step."""
        self.is_held = self.is_after_step = False

    def curves(self) -> StepColumns:
        """The curves of its loss and its gradient norm, at the steps of its first optimizer, and of
        what its script has logged: to be drawn over those of the window's own rank."""
        steps, losses, accuracies, norms, rows = tuple(zip(*self._points, strict=True)) or ((),) * 5
        names = dict.fromkeys(name for row in rows for name in row)
        figures = {name: tuple(row.get(name, math.nan) for row in rows) for name in names}
        return StepColumns(
            step=steps, loss=losses, accuracy=accuracies, gradient_norm=norms, figures=figures
        )

    @property
    def words(self) -> str:
        state = "held after step" if self.is_after_step else "held in step" if self.is_held else ""
        step = f"{state} {self.step + (self.is_held and not self.is_after_step):,}"
        return f"rank {self.about.rank}: {step if state else f'step {self.step:,}'}"
