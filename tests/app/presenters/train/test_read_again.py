"""Each pane beside Train's plots is read again once its answer is there and the run goes on."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QTimer

from app.presenters.live_reading import LiveReading
from app.presenters.train.elements import ElementPresenter
from app.presenters.train.parameters import ParametersPresenter
from app.presenters.train.pictures.over_time import OverTimePresenter
from app.presenters.train.predictions import PredictionsPresenter
from app.presenters.train.ranks import RanksPresenter
from engine.protocol import (
    Command,
    ReadElementCommand,
    ReadHistogramsCommand,
    ReadImagesCommand,
    ReadModuleNormsCommand,
    ReadParametersCommand,
    ReadPredictionsCommand,
    ReadRanksCommand,
    VariablesSnapshot,
)
from tests.widgets.structure.small_structure import WHOLE
from widgets.training.element_view import ElementView
from widgets.training.train_view import TrainView

ANSWER = VariablesSnapshot(variables=())  # of any kind: what is asked for it is shown


def of_norms(view: TrainView) -> None:
    view.modules.show_norms = lambda found: None
    view.tabs.setCurrentWidget(view.modules)


def of_histograms(view: TrainView) -> None:
    view.histograms.show_histograms = lambda found: None
    view.tabs.setCurrentWidget(view.histograms)


def of_images(view: TrainView) -> None:
    view.images.show_images = lambda found: None
    view.tabs.setCurrentWidget(view.images)


def of_predictions(view: TrainView) -> None:
    view.predictions.show_predictions = lambda found: None
    view.bar.predictions.setChecked(True)


def of_ranks(view: TrainView) -> None:
    view.ranks.show_ranks = lambda found: None
    view.tabs.setTabVisible(view.tabs.indexOf(view.ranks), True)
    view.tabs.setCurrentWidget(view.ranks)


def of_parameters(view: TrainView) -> None:
    view.bar.parameters.setChecked(True)


def of_element(view: ElementView) -> None:
    view.show_element = lambda found: None
    view.choose("0.weight")


@pytest.mark.parametrize(
    ("kind", "look", "command"),
    [
        (OverTimePresenter, of_norms, ReadModuleNormsCommand),
        (OverTimePresenter, of_histograms, ReadHistogramsCommand),
        (OverTimePresenter, of_images, ReadImagesCommand),
        (PredictionsPresenter, of_predictions, ReadPredictionsCommand),
        (RanksPresenter, of_ranks, ReadRanksCommand),
        (ParametersPresenter, of_parameters, ReadParametersCommand),
        (ElementPresenter, of_element, ReadElementCommand),
    ],
)
def test_a_pane_pauses_after_its_answer_and_is_read_again(
    bench, link, qtbot, kind: Any, look: Any, command: type[Command]
) -> None:
    link.get_ready()
    view: Any = ElementView() if kind is ElementPresenter else TrainView()
    qtbot.addWidget(view)
    presenter = kind(bench, view, bench.window)
    view.show()
    look(view)

    def asked() -> int:
        return sum(isinstance(each, command) for each in link.sent)

    before, number = asked(), len(link.sent)
    assert before and isinstance(link.sent[-1], command)
    link.answer(WHOLE if kind is ParametersPresenter else ANSWER, to=number)
    pauses = [
        timer for reading in presenter.findChildren(LiveReading)
        for timer in reading.findChildren(QTimer) if timer.isActive()
    ]  # fmt: skip
    assert len(pauses) == 1 and asked() == before
    link._receive(ANSWER)  # the run goes on
    pauses[0].stop()
    pauses[0].timeout.emit()
    assert asked() == before + 1
