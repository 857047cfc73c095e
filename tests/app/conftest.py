"""A workbench without engine and window: the test gives the presenters the engine's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from PySide6.QtCore import QPoint, QSettings
from PySide6.QtCore import Signal as QtSignal
from PySide6.QtWidgets import QWidget

from app.actions import Actions
from app.files import ProjectFiles
from app.history import History
from app.processes.link import Link
from app.selection.selection import Selection
from app.settings import Settings
from app.store import Store
from app.weights import Weights
from app.window.banners import BannerArea
from app.window.dialogs import Dialogs, UnsavedAnswer
from app.workbench import Workbench
from engine.connecting.dialing import Call
from engine.connecting.greeting import About, Welcome
from engine.project.document import replace
from engine.protocol import (
    AnySignal,
    Command,
    Device,
    DoneSnapshot,
    ErrorReport,
    ErrorSnapshot,
    ReadySnapshot,
    Snapshot,
    StepColumns,
    TrainingSnapshot,
)

SCRIPT = Welcome(About(name="train.py", pid=4711), "steer")
"""What a script says that the window attaches to."""


class AnsweringLink(Link):
    """A link that keeps the commands that are sent; the test answers them."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Command] = []
        self.signals: list[AnySignal] = []
        self.calls: list[Call] = []

    def start(self) -> None:
        self._set_state("starting")

    def attach(self, call: Call) -> None:
        self.calls.append(call)
        self.attach_to(call.welcome)

    def attach_to(self, welcome: Welcome) -> None:
        self.close()
        self.attached = welcome
        self._set_state("starting")

    def get_ready(self) -> None:
        """Start, and say that torch has loaded."""
        self.start()
        cpu = Device(name="cpu", title="CPU of 8 cores", memory_bytes=0)
        ready = ReadySnapshot(
            torch_version="2.13.0", python_version="3.11", pid=1, devices=(cpu,), torch_threads=1
        )
        self._receive(ready)

    def send(self, command: Command) -> int:
        if self.state == "lost":
            return 0
        self.sent.append(replace(command, id=len(self.sent) + 1))
        self._sent(len(self.sent), command)
        return len(self.sent)

    def signal(self, signal: AnySignal) -> None:
        self.signals.append(signal)

    def answer(self, snapshot: Snapshot, to: int = 0) -> None:
        """Answer the command of this id, or the newest."""
        self._receive(replace(snapshot, reply_to=to or len(self.sent)))

    def fail(self, message: str, hint: str = "", to: int = 0) -> None:
        command = type(self.sent[(to or len(self.sent)) - 1]).__name__
        error = ErrorReport(type="LabError", message=message, hint=hint)
        self.answer(ErrorSnapshot(command=command, error=error), to)

    def finish(self, to: int = 0) -> None:
        self.answer(DoneSnapshot(), to)

    def close(self) -> None:
        self._forget()
        self._set_state("lost")

    def _give_up(self) -> None:
        self.signals.clear()


class Layouts:
    """Lays out at once, in this process."""

    def submit(self, slot: str, function: Callable, *arguments, then, otherwise=None) -> None:
        then(function(*arguments))


class Frame(QWidget):
    """Replaces the main window: it keeps what it is asked to show."""

    rank_chosen = QtSignal(int)

    def __init__(self) -> None:
        super().__init__()
        self.banners = BannerArea(self)
        self.said: list[str] = []
        self.engine: tuple[str, str] = ("", "")
        self.totals = self.workspace = ""
        self.insertions: list[tuple[Callable[[str], None], QPoint]] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def show_engine(self, state: str, text: str) -> None:
        self.engine = state, text

    def show_workspace(self, name: str) -> None:
        self.workspace = name

    def show_ranks(self, text: str, tip: str, ranks) -> None:
        self.ranks = text, [words for _, words, _ in ranks]

    def show_totals(self, text: str) -> None:
        self.totals = text

    def ask_for_block(self, chosen: Callable[[str], None], where: QPoint) -> None:
        self.insertions.append((chosen, where))


class Person(Dialogs):
    """Answers the dialogs in place of a person; `asked` has their titles and questions."""

    def __init__(self) -> None:
        super().__init__(native=False)
        self.path, self.agrees = "", True
        self.leave: UnsavedAnswer = "discard"
        self.asked: list[str] = []

    def open_path(self, parent, title, start, name_filter) -> str:
        self.asked.append(title)
        return self.path

    def save_path(self, parent, title, start, name_filter) -> str:
        self.asked.append(f"{title} {start}")
        return self.path

    def unsaved(self, parent, name, lost, kept="") -> UnsavedAnswer:
        self.asked.append(name)
        return self.leave

    def confirm(self, parent, question, yes) -> bool:
        self.asked.append(question)
        return self.agrees


@pytest.fixture
def bench(qtbot, tmp_path: Path) -> Iterator[Workbench]:
    frame, person, store, link = Frame(), Person(), Store(), AnsweringLink()
    qtbot.addWidget(frame)
    history = History(store)
    settings = Settings(QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))
    weights = Weights(store, link)
    link.snapshot.connect(store.take)
    link.ended.connect(store.end_engine)
    yield Workbench(
        window=cast(Any, frame),
        actions=Actions(frame),
        store=store,
        history=history,
        selection=Selection(),
        link=link,
        layout=cast(Any, Layouts()),
        settings=settings,
        dialogs=person,
        files=ProjectFiles(frame, store, history, settings, person, weights),
        weights=weights,
    )


@pytest.fixture
def link(bench: Workbench) -> AnsweringLink:
    assert isinstance(bench.link, AnsweringLink)
    return bench.link


@pytest.fixture
def training_snapshot() -> Callable[..., TrainingSnapshot]:
    """Make the snapshot of a run at its first step of two, with any fields changed."""
    begun = TrainingSnapshot(
        run="r",
        state="running",
        step=1,
        total_steps=2,
        epoch=1,
        epochs=1,
        steps_per_second=1.0,
        remaining_s=None,
        steps=StepColumns(),
        epoch_rows=(),
        device="cpu",
    )
    return lambda **changes: replace(begun, **changes)
