"""The other ranks of a run whose rank the window is attached to: their curves over those of this
one, holding all of them after the same step, choosing another one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from app.presenters.attaching.attach import AttachPresenter
from app.presenters.attaching.member import Member
from app.presenters.attaching.siblings import Siblings, way_to
from app.processes.engine_link import EngineLink
from app.workbench import Workbench
from engine.project.document import Project
from engine.protocol import (
    Command,
    ContinueTrainingCommand,
    HeldSnapshot,
    KeptRunSnapshot,
    LoopSnapshot,
    PauseSignal,
    Snapshot,
    StepTrainingCommand,
    WatchCommand,
)

if TYPE_CHECKING:
    from engine.connecting.dialing import Call

SHOW_MS = 300
SETTLE_MS = 1000
"""If not all ranks are held after this time, they are told to hold after a later step."""
AHEAD_S = 0.5
"""Ranks are told to hold after a step that the fastest one reaches in this time at the earliest: by
then all have been told."""

Overlays = Sequence[tuple[str, KeptRunSnapshot]]


class RanksPresenter(QObject):
    """`show_overlays(runs)` draws curves over those of Train; `show_links(rank, links)` gets the
    rank that the window shows, and what leads to the others."""

    def __init__(
        self,
        bench: Workbench,
        attaching: AttachPresenter,
        show_overlays: Callable[[Overlays], object],
        parent: QObject,
        show_links: Callable[[int, Mapping[int, EngineLink]], object] = lambda rank, links: None,
    ) -> None:
        super().__init__(parent)
        self._bench, self._attaching, self._show_overlays = bench, attaching, show_overlays
        self._show_links = show_links
        self._links: dict[int, EngineLink] = {}
        self._watched: WatchCommand | None = None  # what all ranks watch of their modules
        self._members: dict[int, Member] = {}
        self._own: Member | None = None
        self._left: list[EngineLink] = []  # their threads may not have ended yet
        self._ended: list[Member] = []
        self._is_drawn = False  # whether curves of other ranks are drawn
        self._siblings = Siblings(self)
        self._siblings.called.connect(self._add)
        self._seen = (0.0, 0)  # (time, step) of this rank's newest step
        self._rate = 0.0  # its steps a second
        self._is_wanted = False  # whether all ranks are to be held
        self._tries = 0
        self._settle_timer = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._settle_timer.timeout.connect(self._settle)
        self._show_timer = QTimer(self, interval=SHOW_MS, singleShot=True)
        self._show_timer.timeout.connect(self._show)
        bench.link.state_changed.connect(self._on_state)
        bench.link.steered.connect(self._pass_on)
        bench.store.on((HeldSnapshot, LoopSnapshot), self._take_own)
        bench.window.rank_chosen.connect(self.choose)

    # -- which ranks there are -------------------------------------------------------------------

    def _on_state(self) -> None:
        script = self._bench.link.script
        about = script.about if script is not None and script.about.world_size > 1 else None
        is_same = about == (self._own.about if self._own else None)
        if not is_same:
            self._leave()
        if about is None and self._bench.link.state != "lost":
            self._draw(())  # the curves of a run that has ended stay until then
        if about is not None and not is_same:
            self._own = self._members[about.rank] = Member(about)
            self._bench.link.pause_at = self._common_step
            if self._attaching.is_here:
                self._siblings.find(about)
            self._show_timer.start()

    def _add(self, call: Call) -> None:
        link = EngineLink(self)
        about = call.welcome.about
        member = self._members[about.rank] = Member(about, link)
        link.snapshot.connect(partial(self._take, member))
        link.lost.connect(lambda _: self._drop(member))
        link.attach(call)
        if self._watched is not None:
            link.send(self._watched)
        self._show_timer.start()

    def _drop(self, member: Member) -> None:
        self._members.pop(member.about.rank, None)
        self._ended.append(member)
        self._show_timer.start()

    def _leave(self) -> None:
        if self._own is not None:
            self._draw(self._curves())
        for member in (*self._members.values(), *self._ended):
            if member.link is not None:
                member.link.close()
                member.link.deleteLater()
                self._left.append(member.link)
        self._siblings.forget()
        self._watched = None
        if self._links:
            self._links = {}
            self._show_links(0, {})
        had_any = bool(self._members)
        self._members.clear()
        self._ended.clear()
        self._own, self._rate = None, 0.0
        self._bench.link.pause_at = lambda: 0
        self._is_wanted = False
        for timer in (self._show_timer, self._settle_timer):
            timer.stop()
        if had_any:
            self._bench.window.show_ranks("", "", ())

    def close(self) -> None:
        self._leave()
        while self._left:
            self._left.pop().wait_closed()

    def choose(self, rank: int) -> None:
        """Show this rank in the window; the one that it shows now becomes one of the others."""
        member = self._members.get(rank)
        if member is not None and member is not self._own:
            pid = member.about.pid
            self._leave()
            self._attaching.attach(str(pid), way=way_to(pid))

    # -- what they say ---------------------------------------------------------------------------

    def _take_own(self, snapshot: HeldSnapshot | LoopSnapshot) -> None:
        if self._own is None:
            return
        self._take(self._own, snapshot)
        if isinstance(snapshot, LoopSnapshot):
            now_s = time.monotonic()
            then_s, step = self._seen
            self._seen = now_s, snapshot.step
            if step < snapshot.step and 0 < now_s - then_s < 10:
                self._rate = (snapshot.step - step) / (now_s - then_s)

    def _take(self, member: Member, snapshot: Snapshot) -> None:
        if isinstance(snapshot, HeldSnapshot | LoopSnapshot):
            member.take(snapshot)
            self._even_out()
            if not self._show_timer.isActive():
                self._show_timer.start()

    # -- together --------------------------------------------------------------------------------

    def _common_step(self) -> int:
        """A step that no rank has reached yet."""
        if len(self._members) < 2:
            return 0
        newest = max(member.step for member in self._members.values())
        since_s = min(time.monotonic() - self._seen[0], AHEAD_S)
        return newest + math.ceil(since_s * self._rate) + self._margin()

    def _pass_on(self, message: Command | PauseSignal) -> None:
        """Tell the other ranks what the user has told this one. Ranks that are held after the same
        step all take the next one; they need not settle on a later step."""
        if isinstance(message, WatchCommand):
            self._watched = message
            for member in self._members.values():
                if member.link is not None:
                    member.link.send(message)
            return
        self._tries = 0
        self._is_wanted = not isinstance(message, ContinueTrainingCommand)
        members = self._members.values()
        are_even = all(m.is_after_step for m in members) and len({m.step for m in members}) == 1
        if self._is_wanted and not (are_even and isinstance(message, StepTrainingCommand)):
            self._settle_timer.start()
        else:
            self._settle_timer.stop()
        for member in members:
            if isinstance(message, PauseSignal):
                if member.link is not None:
                    member.link.signal(message)
            elif member.is_held:
                member.goes_on()
                if member.link is not None:
                    member.link.send(message)

    def _even_out(self) -> None:
        """All ranks are held, but not after the same step: those behind go on to the step of the
        foremost. They need not wait for it in a collective operation, because it has done those
        steps already."""
        members = self._members.values()
        if not (self._is_wanted and all(member.is_after_step for member in members)):
            return
        self._settle_timer.stop()
        last = max(member.step for member in members)
        for member in members:
            if member.step < last:
                self._hold_after(member, last)

    def _settle(self) -> None:
        """Some ranks are held, and others wait for them in a collective operation: these had passed
        the step when they were told. All are told to hold after a later step."""
        members = self._members.values()
        if not self._is_wanted or all(member.is_held for member in members):
            return
        if any(member.is_after_step for member in members):
            self._tries += 1
            last = max(member.step for member in members)
            step = last + self._margin() * 2**self._tries
            for member in sorted(members, key=lambda member: member.is_held):
                if member.is_after_step or not member.is_held:
                    self._hold_after(member, step)
        self._settle_timer.start()

    def _hold_after(self, member: Member, step: int) -> None:
        link = member.link or self._bench.link
        is_held = member.is_held
        member.goes_on()
        link.go_to_step(step, is_held)

    def _margin(self) -> int:
        return max(2, math.ceil(self._rate * AHEAD_S))

    # -- showing ---------------------------------------------------------------------------------

    def _show(self) -> None:
        own = self._own
        if own is None:
            return
        members = [self._members[rank] for rank in sorted(self._members)]
        text, tip = _state(members, own)
        rows = [(m.about.rank, m.words, m is own) for m in members]
        self._bench.window.show_ranks(text, tip, rows)
        links = {m.about.rank: m.link for m in members if m.link is not None}
        if links != self._links:
            self._links = links
            self._show_links(own.about.rank, links)
        self._draw(self._curves())

    def _curves(self) -> Overlays:
        """The curves of the other ranks, also of those that have ended."""
        others = [(f"rank {m.about.rank}", m) for m in self._members.values() if m is not self._own]
        others += [(f"rank {m.about.rank} (ended)", m) for m in self._ended]
        others.sort(key=lambda other: other[1].about.rank)
        return [
            (title, KeptRunSnapshot(folder="", steps=m.curves(), project=Project()))
            for title, m in others
            if m.step
        ]

    def _draw(self, curves: Overlays) -> None:
        if curves or self._is_drawn:
            self._is_drawn = bool(curves)
            self._show_overlays(curves)


def _state(members: Sequence[Member], own: Member) -> tuple[str, str]:
    """Where the ranks are, in a few words and in more."""
    of = f"rank {own.about.rank} of {own.about.world_size}"
    held = [m for m in members if m.is_held]
    running = [m for m in members if not m.is_held]
    missing = own.about.world_size - len(members)
    tip = "The ranks of this run. Choose the one that the window shows; Pause, Step and Continue"
    tip += " are for all."
    if missing:
        verb, them = ("does", "it") if missing == 1 else ("do", "them")
        tip += (
            f" {missing} of them {verb} not listen on this machine: this window cannot show or hold"
            f" {them}. A rank is found once it has called tensorlab.watch here."
        )
    if held and not running and len({m.step for m in held}) == 1 and not missing:
        return f"{of} · all held after step {own.step:,}", tip
    if held and running:
        holders = ", ".join(str(m.about.rank) for m in held)
        waiting = ", ".join(str(m.about.rank) for m in running)
        verb = "waits" if len(running) == 1 else "wait"
        tip += (
            f" Rank {holders} is held. Rank {waiting} {verb} for it in the next collective"
            " operation, until it goes on or the operation's time limit (30 minutes, if the script"
            " sets no other) is over."
        )
        return f"{of} · rank {waiting} {verb} for rank {holders}", tip
    return of, tip
