"""A run in words, and its numbers where JSON has none."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pytest

from app.commands.runs import _plain, words_of
from engine.protocol import EpochRow, RunRow
from engine.protocol.training.runs import TrialRow

BEGAN_S = datetime(2026, 3, 4, 5, 6).timestamp()
HEAD = "one  2026-03-04 05:06, MLP, finished, step 1,234"


def row(**fields: Any) -> RunRow:
    told: dict[str, Any] = {"folder": "/runs/one", "title": "MLP", "state": "finished"}
    return RunRow(**told | {"began_s": BEGAN_S, "step": 1234} | fields)


def epoch(loss: float = math.nan, accuracy: float = math.nan) -> EpochRow:
    return EpochRow(2, 1234, 0.5, 0.25, loss, accuracy)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, HEAD),
        ({"loss": 0.123456}, f"{HEAD}, loss 0.1235"),
        ({"loss": math.nan}, HEAD),
        ({"epoch": epoch(), "epochs": 9}, f"{HEAD}, epoch 2 of 9"),
        (
            {"epoch": epoch(0.75, 0.125), "epochs": 9, "loss": 1.0},
            f"{HEAD}, loss 1, epoch 2 of 9, validation loss 0.75, accuracy 12.5%",
        ),
        ({"epoch": epoch(accuracy=0.5), "epochs": 9}, f"{HEAD}, epoch 2 of 9, accuracy 50.0%"),
        (
            {"trial": TrialRow("s", 3, "lr 0.1", "", None)},
            HEAD.replace("one  ", "one  trial 3 (lr 0.1), "),
        ),
        ({"note": "a\nb", "error": "c"}, f"{HEAD}\n    a\n    b\n    c"),
        (
            {"problem": "d", "no_script": "Too large."},
            f"{HEAD}\n    d\n    It has no train.py. Too large.",
        ),
        ({"state": "damaged", "problem": "no run.json", "note": "x"}, "one  damaged: no run.json"),
    ],
)
def test_a_run_is_one_line_and_its_words_are_others(fields: dict[str, Any], words: str) -> None:
    assert words_of(row(**fields)) == words


def test_numbers_that_json_does_not_have_are_nothing_or_a_text() -> None:
    value = {"a": [1.5, math.nan], "b": (math.inf, {"c": -math.inf}), "d": "nan", "e": None}
    assert _plain(value) == {"a": [1.5, None], "b": ["inf", {"c": "-inf"}], "d": "nan", "e": None}
