"""The learning rate over the run to come: when the engine is asked, and what is shown."""

from __future__ import annotations

import pytest

from app.presenters.train.rates import RatesPresenter
from engine.project import edits
from engine.project.document import Schedule, TrainingSetup, replace
from engine.protocol import ErrorReport, ErrorSnapshot, PreviewRatesCommand, RatesSnapshot
from widgets.training.settings.rate_curve import RateCurve

STEPS = Schedule("lr_scheduler.StepLR", {"step_size": 2})


@pytest.fixture
def curve(bench, link, qtbot) -> RateCurve:
    link.get_ready()
    curve = RateCurve()
    qtbot.addWidget(curve)
    curve.presenter = RatesPresenter(bench, curve, bench.window)
    return curve


def use(bench, **changes) -> TrainingSetup:
    training = replace(bench.project.training, **changes)
    bench.store.set_project(edits.set_training(bench.project, training))
    return training


def test_a_schedule_is_asked_for_again_when_something_changes_its_rates(curve, bench, link):
    use(bench, epochs=3)
    assert link.sent == []  # a constant rate has no curve
    training = use(bench, schedule=STEPS)
    (command,) = link.sent
    assert isinstance(command, PreviewRatesCommand) and command.training == training
    found = RatesSnapshot(reply_to=command.id, steps=(1, 2), rates=(0.1, 0.01), total_steps=2)
    link._receive(found)
    assert curve.words == "lr 0.01 to 0.1 over 2 steps"
    use(bench, clip_norm=1.0)
    assert len(link.sent) == 1
    use(bench, epochs=7)
    assert link.sent[-1].training.epochs == 7
    error = ErrorReport("LabError", "StepLR cannot do this.", "")
    answer = ErrorSnapshot(reply_to=link.sent[-1].id, error=error, command="PreviewRatesCommand")
    link._receive(answer)
    assert curve.words == "StepLR cannot do this."


def test_the_engine_answers_for_the_data_set_of_the_canvas():
    from tests.engine.handlers.test_training_handlers import MLP, Client

    client = Client()
    setup = TrainingSetup(epochs=3, batch_size=512, schedule=STEPS)
    client.send(PreviewRatesCommand(id=1, model=MLP, training=setup))
    rates = client.said[-1]
    assert isinstance(rates, RatesSnapshot)
    assert (rates.total_steps, rates.steps) == (9, tuple(range(1, 10)))
    assert rates.rates == pytest.approx([0.001] * 6 + [0.0001] * 3)
    client.session.close()


def test_a_schedule_that_is_there_already_is_asked_for_at_once_and_by_a_new_engine(
    bench, link, qtbot
):
    link.get_ready()
    training = use(bench, schedule=STEPS)
    curve = RateCurve()
    qtbot.addWidget(curve)
    curve.presenter = RatesPresenter(bench, curve, bench.window)
    assert [command.training for command in link.sent] == [training]
    link.get_ready()
    assert [command.training for command in link.sent] == [training] * 2
