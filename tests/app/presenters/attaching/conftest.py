"""An engine as it would be on another machine, in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.presenters.attaching.engine_files import EngineFiles
from engine.connecting.engine_place import EnginePlace
from engine.protocol import Command, DoneSnapshot
from engine.session import Session
from tests.app.presenters.attaching.test_place import WELCOME


class Engine:
    """Answers what the window sends, as an engine of another machine would."""

    def __init__(self, link) -> None:
        self._link, self._answered = link, 0
        self._session = Session(link._receive, done=self._done)

    def _done(self, command: Command) -> None:
        self._link._receive(DoneSnapshot(reply_to=command.id))

    def work(self) -> None:
        while self._answered < len(self._link.sent):
            self._answered += 1
            self._session.handle(self._link.sent[self._answered - 1])

    def train(self) -> None:
        """Until the run has ended."""
        while self._session.advance():
            pass

    def close(self) -> None:
        self._session.close()


@pytest.fixture
def engine(link):
    made = Engine(link)
    yield made
    made.close()


@pytest.fixture
def there(bench, link, engine: Engine) -> EngineFiles:
    made = EngineFiles(bench, bench.window)
    bench.files.there = made
    bench.weights.use_there(made)
    made.began.connect(bench.weights.begin_there)
    link.place, link.attached = EnginePlace("ssh me@box"), WELCOME
    link.get_ready()
    engine.work()
    return made


def choose(bench, engine: Engine, act: Callable) -> Callable[[object], str]:
    """In place of the person before the dialog."""

    def answer(dialog) -> str:
        engine.work()
        act(dialog)
        return dialog.path

    bench.dialogs.path_there = answer
    return answer
