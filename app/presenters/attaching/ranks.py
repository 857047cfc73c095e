"""The other ranks of a run whose rank the window is attached to: their curves over those of this
one, holding all of them after the same step, choosing another one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from app.presenters.attaching.attach import AttachPresenter
from app.presenters.attaching.calling import Calling
from app.processes.engine_link import EngineLink
from app.workbench import Workbench
from engine.connecting.greeting import About, Unwelcome
from engine.project.document import Project
from engine.protocol import (
    Command,
    ContinueTrainingCommand,
    HeldSnapshot,
    KeptRunSnapshot,
    LoopSnapshot,
    PauseSignal,
    Snapshot,
    StepColumns,
    StepTrainingCommand,
)
from engine.version import version

if TYPE_CHECKING:
    from engine.connecting.dialing import Call

LOOK_MS = 1000
"""How often ranks that do not listen yet are looked for."""
SHOW_MS = 300
SETTLE_MS = 1000
"""The time that all ranks have to be held, before they are to be held after a later step."""
AHEAD_S = 0.5
"""All ranks are held after a step that none has reached before they all know of it."""
FREE_S = 2.0
"""The time that a rank has to see that a connection has ended."""
LOOK_S = 0.05
MOST_POINTS = 4000
"""Points of a rank's curve; of more, every second one is dropped."""

Overlays = Sequence[tuple[str, KeptRunSnapshot]]


class Member:
    """What is known of one rank."""

    def __init__(self, about: About, link: EngineLink | None = None) -> None:
        self.about, self.link = about, link
        self.step = 0
        self.is_held = self.is_after_step = False
        self._points: list[tuple[int, float, float]] = []  # step, loss, gradient norm

    def take(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, HeldSnapshot):
            self.is_held, self.is_after_step = bool(snapshot.at), snapshot.at == "step"
        elif isinstance(snapshot, LoopSnapshot):
            self.step = snapshot.step
            told = snapshot.steps
            self._points += zip(told.step, told.loss, told.gradient_norm, strict=False)
            if len(self._points) > MOST_POINTS:
                del self._points[1:-1:2]

    def goes_on(self) -> None:
        """It was told to go on. What it says of that may come after what the others say of their
        next step."""
        self.is_held = self.is_after_step = False

    def curve(self) -> StepColumns:
        columns = tuple(zip(*self._points, strict=True)) or ((), (), ())
        return StepColumns(step=columns[0], loss=columns[1], gradient_norm=columns[2])

    @property
    def words(self) -> str:
        state = "held after step" if self.is_after_step else "held in step" if self.is_held else ""
        step = f"{state} {self.step + (self.is_held and not self.is_after_step):,}"
        return f"rank {self.about.rank}: {step if state else f'step {self.step:,}'}"


class RanksPresenter(QObject):
    """`show_overlays(runs)` draws curves over those of Train."""

    def __init__(
        self,
        bench: Workbench,
        attaching: AttachPresenter,
        show_overlays: Callable[[Overlays], object],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._bench, self._attaching, self._show_overlays = bench, attaching, show_overlays
        self._members: dict[int, Member] = {}
        self._own: Member | None = None
        self._left: list[EngineLink] = []  # their threads may not have ended yet
        self._calling: dict[int, Calling] = {}
        self._seen = (0.0, 0)  # when this rank was at which step
        self._rate = 0.0  # its steps a second
        self._is_wanted = False  # that all are held
        self._tries = 0
        self._settle_timer = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._settle_timer.timeout.connect(self._settle)
        self._look_timer = QTimer(self, interval=LOOK_MS)
        self._look_timer.timeout.connect(self.look)
        self._show_timer = QTimer(self, interval=SHOW_MS, singleShot=True)
        self._show_timer.timeout.connect(self._show)
        bench.link.state_changed.connect(self._on_state)
        bench.link.steered.connect(self._pass_on)
        bench.store.snapshot.connect(self._on_snapshot)
        bench.window.rank_chosen.connect(self.choose)

    # -- which ranks there are -------------------------------------------------------------------

    def _on_state(self) -> None:
        script = self._bench.link.script
        about = script.about if script is not None and script.about.world_size > 1 else None
        if about == (self._own.about if self._own else None):
            return
        self._leave()
        if about is not None:
            self._own = self._members[about.rank] = Member(about)
            self._bench.link.pause_at = self._common_step
            self._look_timer.start()
            self.look()
            self._show_timer.start()

    def look(self) -> None:
        """Call the ranks that listen on this machine and are not called yet."""
        from engine.connecting.places import listening  # the window shows before it is needed

        own = self._own
        if own is None or len(self._members) >= own.about.world_size:
            self._look_timer.stop()
            return
        with suppress(OSError, Unwelcome):  # Start says so
            for about, socket in listening():
                is_other = about.group == own.about.group and about.rank not in self._members
                if is_other and about.group and about.rank not in self._calling:
                    calling = self._calling[about.rank] = Calling(self)
                    calling.answered.connect(partial(self._add, about.rank))
                    calling.failed.connect(partial(self._forget, about.rank))
                    calling.call(partial(_call, str(socket)))

    def _add(self, rank: int, call: Call) -> None:
        self._forget(rank)
        if self._own is None or call.welcome.about.group != self._own.about.group:
            call.connection.close()
            return
        link = EngineLink(self)
        member = self._members[rank] = Member(call.welcome.about, link)
        link.snapshot.connect(partial(self._take, member))
        link.lost.connect(lambda _: self._drop(member))
        link.attach(call)
        self._show_timer.start()

    def _forget(self, rank: int, _why: object = None) -> None:
        calling = self._calling.pop(rank, None)
        if calling is not None:
            calling.deleteLater()

    def _drop(self, member: Member) -> None:
        self._members.pop(member.about.rank, None)
        self._show_timer.start()

    def _leave(self) -> None:
        for member in self._members.values():
            if member.link is not None:
                member.link.close()
                member.link.deleteLater()
                self._left.append(member.link)
        for calling in self._calling.values():
            calling.deleteLater()
        had_any = bool(self._members)
        self._members.clear()
        self._calling.clear()
        self._own, self._rate = None, 0.0
        self._bench.link.pause_at = lambda: 0
        self._is_wanted = False
        for timer in (self._look_timer, self._show_timer, self._settle_timer):
            timer.stop()
        if had_any:
            self._bench.window.show_ranks("", "", ())
            self._show_overlays(())

    def close(self) -> None:
        self._leave()
        while self._left:
            self._left.pop().wait_closed()

    def choose(self, rank: int) -> None:
        """Show this rank in the window; the one that it shows now becomes one of the others."""
        member = self._members.get(rank)
        if member is not None and member is not self._own:
            address = str(member.about.pid)
            self._leave()
            self._attaching.attach(address, way=partial(_call, address))

    # -- what they say ---------------------------------------------------------------------------

    def _on_snapshot(self, snapshot: Snapshot) -> None:
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
        """All are held, but not after the same step: those behind go on to that of the first. What
        they wait for in a collective operation, the first has done."""
        members = self._members.values()
        if not (self._is_wanted and all(member.is_after_step for member in members)):
            return
        self._settle_timer.stop()
        last = max(member.step for member in members)
        for member in members:
            if member.step < last:
                self._hold_after(member, last)

    def _settle(self) -> None:
        """Some are held and others wait for them in a collective operation, for they had passed the
        step when they were told: all are to be held after a later one."""
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
        others = [m for m in members if m is not own and m.step]
        self._show_overlays(
            [
                (
                    f"rank {m.about.rank}",
                    KeptRunSnapshot(folder="", steps=m.curve(), project=Project()),
                )
                for m in others
            ]
        )


def _call(address: str) -> Call:
    """Call a rank that another connection of this window has just left: once its process has seen
    that, this one steers. Raises Unwelcome."""
    from engine.connecting.dialing import dial

    late_s = time.monotonic() + FREE_S
    while True:
        call = dial(address, version())
        if call.welcome.role == "steer" or time.monotonic() > late_s:
            return call
        call.connection.close()
        time.sleep(LOOK_S)


def _state(members: Sequence[Member], own: Member) -> tuple[str, str]:
    """Where the ranks are, in a few words and in more."""
    of = f"rank {own.about.rank} of {own.about.world_size}"
    held = [m for m in members if m.is_held]
    running = [m for m in members if not m.is_held]
    missing = own.about.world_size - len(members)
    tip = "The ranks of this run. Choose the one that the window shows; Pause, Step and Continue"
    tip += " are for all."
    if missing:
        tip += f" {missing} of them {'does' if missing == 1 else 'do'} not listen on this machine."
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
