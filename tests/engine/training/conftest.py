"""Small models and set-ups that train in milliseconds, and a data folder for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from engine.project.document import DataSetup, TrainingSetup


@pytest.fixture(autouse=True)
def data_folder(own_settings: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(own_settings / "lab"))
    return own_settings / "lab"


@pytest.fixture
def moons() -> TrainingSetup:
    """100 moons, 80 of them for training: 3 batches of 32, the last of 16."""
    return TrainingSetup(data=DataSetup("moons", {"samples": 100}), batch_size=32, epochs=3, seed=7)


@pytest.fixture
def make_mlp():
    """Return a function that makes the same MLP from 2 features to 2 classes, with dropout and
    batch norm, so that random numbers and buffers count."""

    def make() -> nn.Sequential:
        torch.manual_seed(1)
        return nn.Sequential(
            nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2)
        )

    return make
