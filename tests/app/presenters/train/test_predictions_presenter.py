"""The predictions beside the plots of Train: what is forgotten when something changes."""

from __future__ import annotations

import pytest

from app.presenters.train.predictions import PredictionsPresenter
from engine.project import edits
from engine.project.document import DataSetup, replace
from engine.project.subject import ConsoleSubject, Objective
from widgets.training.train_view import TrainView


@pytest.fixture
def view(bench, link, qtbot) -> TrainView:
    link.get_ready()
    view = TrainView()
    qtbot.addWidget(view)
    view.presenter = PredictionsPresenter(bench, view, bench.window)
    return view


def test_a_chosen_cell_is_of_one_model_one_data_set_and_one_subject(bench, view):
    pane, training = view.predictions, bench.project.training
    for change, forgets in (
        (lambda p: edits.set_training(p, replace(training, batch_size=7)), False),
        (lambda p: edits.set_training(p, replace(training, data=DataSetup("iris"))), True),
        (lambda p: edits.add_block(p, "nn.ReLU", 0, 0)[0], True),
        (lambda p: edits.set_subject(p, ConsoleSubject("model")), True),
        (lambda p: edits.set_objective(p, Objective(data="loader")), True),
    ):
        pane.cell, pane.first = (1, 2), 24
        bench.store.set_project(change(bench.project))
        assert (pane.cell, pane.first) == ((None, 0) if forgets else ((1, 2), 24))
