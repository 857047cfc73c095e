"""Why a run is held: the reasons reach the engine, and the part is chosen for all views."""

from __future__ import annotations

import pytest

from app.presenters.train.holding import HoldingPresenter
from app.presenters.train.train import TrainPresenter
from app.selection.references import Module, Parameter
from engine.project import edits
from engine.project.document import HoldWhen, replace
from engine.protocol import Hold, HoldWhenSignal
from widgets import make
from widgets.training.train_view import TrainView


@pytest.fixture
def view(bench, link, qtbot) -> TrainView:
    link.get_ready()
    view = TrainView()
    qtbot.addWidget(view)
    HoldingPresenter(bench, view, TrainPresenter(bench, view, bench.window))
    return view


def test_the_reasons_are_sent_at_once_after_each_change_and_to_a_new_engine(view, bench, link):
    first = HoldWhenSignal(when=bench.project.training.hold)
    assert link.signals == [first]
    when = HoldWhen(not_finite=True)
    bench.history.edit(
        edits.set_training(bench.project, replace(bench.project.training, hold=when)), "Hold"
    )
    assert link.signals == [first, HoldWhenSignal(when=when)]
    link.close()
    link.get_ready()
    assert link.signals[2:] == [HoldWhenSignal(when=when)]


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"parameter": "a.weight", "module": "a"}, Parameter("a.weight")),
        ({"module": "a"}, Module("a")),
    ],
)
def test_the_part_that_a_hold_is_about_is_chosen(view, bench, monkeypatch, fields, part):
    hold = Hold(kind="unchanged", step=3, text="It does not move.", hint="", **fields)
    chosen, shown = [], []
    bench.selection.changed.connect(lambda *_: chosen.append(bench.selection.current))
    monkeypatch.setattr(make, "pop_up", lambda menu, below: shown.append(below))
    view.hold.part_wanted.emit(hold)
    assert chosen == [part] and shown == [view.hold.below_part]
