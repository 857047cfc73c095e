"""Going on from a checkpoint: when the engine is asked for one, and what is done with it."""

from __future__ import annotations

from typing import Any

import pytest

from app.presenters.train.resuming import Resuming
from engine.project import edits
from engine.project.document import replace
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    CellSnapshot,
    CheckpointSnapshot,
    FindCheckpointCommand,
    TrainingSnapshot,
)
from tests.app.conftest import SCRIPT
from widgets.training.train_view import TrainView

CELL = CellSnapshot(ok=True, error=None)


class Desk:
    def __init__(self, bench: Any, link: Any, qtbot: Any) -> None:
        self.bench, self.link = bench, link
        self.view = TrainView()
        qtbot.addWidget(self.view)
        self.run: TrainingSnapshot | None = None
        self.trained: list[tuple[bool, str]] = []
        self.offered: list[str] = []
        self.problems: list[str] = []
        self.view.bar.offer_resume = self.offered.append
        self.view.show_problem = self.problems.append
        self.resuming = Resuming(
            bench, self.view, lambda: self.run,
            lambda paused, path: self.trained.append((paused, path)), bench.window,
        )  # fmt: skip

    @property
    def asked(self) -> int:
        return sum(isinstance(each, FindCheckpointCommand) for each in self.link.sent)

    def use(self, **changes: Any) -> None:
        self.bench.store.set_project(replace(self.bench.project, **changes))


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    made = Desk(bench, link, qtbot)
    bench.store.set_project(edits.add_block(bench.project, "nn.ReLU", 0, 0)[0])
    return made


def test_the_run_that_is_shown_goes_on_from_its_own_checkpoint(desk: Desk, training_snapshot):
    desk.run = training_snapshot(state="finished", checkpoint="/c.pt")
    desk.view.bar.resume_requested.emit()
    desk.resuming.restore()
    desk.run = training_snapshot(state="stopped", checkpoint="/c.pt")
    desk.resuming.restore()
    assert desk.trained == [(False, "/c.pt"), (False, "/c.pt"), (True, "/c.pt")]
    assert desk.asked == 0
    desk.run = training_snapshot(state="stopped", checkpoint="")
    desk.resuming.restore()
    assert len(desk.trained) == 3
    desk.resuming.resume()
    assert desk.asked == 1  # of an earlier start


def test_a_checkpoint_is_sought_where_one_could_fit(desk: Desk, bench, link, training_snapshot):
    desk.resuming.offer()
    assert desk.asked == 1 and desk.offered == [""]
    desk.run = training_snapshot()
    desk.resuming.offer()
    assert desk.asked == 1  # there is a run
    desk.run = None
    desk.use(model=type(bench.project.model)())
    desk.resuming.offer()
    assert desk.asked == 1  # there is no model
    desk.use(subject=ConsoleSubject("net"))
    desk.resuming.offer()
    assert desk.asked == 2
    link.attach_to(SCRIPT)
    link.get_ready()
    desk.resuming.offer()
    assert desk.asked == 2  # it is a script's
    link.close()
    desk.resuming.offer()
    assert desk.asked == 2 and desk.problems == []


def test_what_was_found_is_offered(desk: Desk) -> None:
    desk.resuming.offer()
    desk.link.answer(CheckpointSnapshot(path="/old.pt", step=1200, written_s=0.0))
    assert desk.offered[-1] == (
        "There is a checkpoint of step 1,200, written 01 Jan 1970, 00:00: Resume goes on from"
        " there."
    )
    before = len(desk.offered)
    desk.resuming.offer()
    desk.link.answer(CheckpointSnapshot())
    assert len(desk.offered) == before + 1 and desk.offered[-1] == ""
    desk.link.fail("It broke.")
    assert desk.problems == []


def test_code_is_sought_for_again_until_its_checkpoint_is_known(desk: Desk, bench, link) -> None:
    link._receive(CELL)
    assert desk.asked == 0  # the canvas needs no cell
    desk.use(subject=ConsoleSubject("net"))
    link._receive(CELL)
    link._receive(CELL)
    assert desk.asked == 2
    link.answer(CheckpointSnapshot())
    link._receive(CELL)
    assert desk.asked == 2  # it is known that there is none
    desk.use(subject=ConsoleSubject("other"))
    link._receive(CELL)
    assert desk.asked == 3
    bench.files.opened.emit()
    link._receive(CELL)
    assert desk.asked == 5  # of another project nothing is known


def test_it_goes_on_from_what_was_found(desk: Desk) -> None:
    desk.resuming.resume()
    desk.link.answer(CheckpointSnapshot(path="/old.pt", step=7))
    assert desk.trained == [(False, "/old.pt")]


def test_why_there_is_none_to_go_on_from_is_told(desk: Desk, bench, link) -> None:
    desk.resuming.resume()
    link.answer(CheckpointSnapshot())
    assert bench.window.said == ["There is no checkpoint of this model and set-up to resume from."]
    desk.resuming.resume()
    link.fail("The model cannot run.", "Wire it.")
    assert desk.problems == ["The model cannot run. Wire it."] and desk.trained == []
    link.close()
    desk.resuming.resume()
    assert desk.problems[1:] == [link.unsent]


def test_it_is_sought_among_the_runs_of_the_project(desk: Desk, bench, link, tmp_path) -> None:
    bench.files.path = str(tmp_path / "net.tlab")
    desk.resuming.resume()
    command = link.sent[-1]
    assert command.runs == str(tmp_path / "net.runs") and command.model == bench.project.model
    assert command.training == bench.project.training
