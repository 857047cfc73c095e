"""What the model predicts, beside a run of Train, the engine in this process."""

from __future__ import annotations

import pytest
import torch

from app import templates
from engine.project.document import replace
from engine.protocol import PredictionsSnapshot, TrainingSnapshot
from tests.labels import said

pytestmark = pytest.mark.one_program


@pytest.fixture
def mlp(program):
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("train")
    program.bench.link.drain()
    return program


def test_predictions_follow_the_run_and_a_cell_is_looked_into(mlp):
    view, link = mlp.workspaces.train.view, mlp.bench.link
    seen: list[PredictionsSnapshot] = []
    link.snapshot.connect(lambda s: seen.append(s) if isinstance(s, PredictionsSnapshot) else None)
    view.bar.predictions.click()
    link.drain()
    assert len(seen) == 1 and said(view.predictions, "predictions_facts").startswith("After step 0")
    assert mlp.bench.settings.train_predictions
    setup = replace(mlp.bench.project.training, epochs=1)
    view.form.setup_edited.emit(setup, "Set epochs to 1")
    view.bar.train_requested.emit()
    link.drain()
    view.predictions.asked.emit()
    link.drain()
    run = mlp.bench.store.newest(TrainingSnapshot)
    assert seen[-1].step == run.step == 23
    assert seen[-1].accuracy == pytest.approx(run.epoch_rows[-1].validation_accuracy)
    counts = torch.tensor(seen[-1].counts)
    actual, predicted = divmod(int((counts * (1 - torch.eye(10).long())).argmax()), 10)
    view.predictions.matrix.cell_chosen.emit((actual, predicted))
    link.drain()
    assert seen[-1].matching == counts[actual, predicted] == len(view.predictions.cards.cards)
    view.bar.predictions.click()
    count = len(seen)
    view.bar.train_requested.emit()
    link.drain()
    assert len(seen) == count
