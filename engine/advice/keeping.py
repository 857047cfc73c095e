"""Losses that are kept with their graph."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ..recording.modes import Running, Tell
from ..recording.recording import Place
from .notes import Names, Notes, counted, is_plain

LOOKED_EVERY = 16
"""After so many losses the check looks which of them are still kept."""
MIN_KEPT = 3


class Keeping:
    """Remembers by weak references on which losses backward was called, and looks which of them
    live on in a list, and which were added to a running total."""

    def __init__(self, notes: Notes, names: Names) -> None:
        self._notes = notes
        self._losses: deque[tuple[weakref.ref[Tensor], int]] = deque(maxlen=LOOKED_EVERY)
        self._count = 0
        self._added: dict[Place | None, int] = {}
        self._names = names
        self.told: Mapping[Callable, Tell] = dict.fromkeys(
            (Tensor.add, Tensor.add_, torch.add), self._add
        )

    def saw_loss(self, loss: Tensor) -> None:
        if self._count % LOOKED_EVERY == LOOKED_EVERY - 1:
            self.look()
        self._count += 1
        self._losses.append((weakref.ref(loss), self._notes.steps))

    def look(self) -> None:
        """Tell of a list that holds losses of several steps."""
        alive = [
            (loss, step) for loss, step in ((r(), n) for r, n in self._losses) if loss is not None
        ]
        alive = [(loss, step) for loss, step in alive if loss.grad_fn is not None]
        steps = {step for _, step in alive}
        if len(alive) < MIN_KEPT or (self._notes.steps and len(steps) < MIN_KEPT):
            return
        losses = {id(loss) for loss, _ in alive}
        for holder in gc.get_referrers(alive[0][0]):
            if type(holder) not in (list, deque) or holder is alive:
                continue
            held = sum(id(each) in losses for each in holder)
            if held >= MIN_KEPT:
                name = self._notes.name_of(holder, "")
                self._tell_kept(name, held, len(holder))
                return

    def _tell_kept(self, name: str, held: int, size: int) -> None:
        self._notes.find(
            "kept_graph",
            f"`{name or 'A list'}` holds losses with their graphs: each keeps the nodes of its"
            " whole forward pass alive, and memory grows with every step.",
            (
                f"{held} of the last {len(self._losses)} losses that were looked at are"
                f" in the list of {counted(size, 'element')}, with their grad_fn",
            ),
            f"{name or 'losses'}.append(loss.item())  # or loss.detach()",
            what=name,
        )

    def _add(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        if not is_plain(result) or result.ndim or not result.requires_grad or not self._losses:
            return
        last = self._losses[-1][0]()
        if last is None or len(args) != 2 or args[1] is not last:
            return
        place = self._notes.place()
        count = self._added[place] = self._added.get(place, 0) + 1
        if count == MIN_KEPT:
            name = self._notes.name_of(last, "loss")
            self._notes.find(
                "kept_graph",
                f"A running total adds up `{name}` with its graph after backward: it keeps the"
                " graphs of all steps alive, and memory grows with every step.",
                (
                    f"`{self._notes.source(place)}` ran {count} times with a loss on which backward"
                    " had been called; the sum has a grad_fn",
                ),
                f"total += {name}.item()  # or {name}.detach()",
                place,
            )
