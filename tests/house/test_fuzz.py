"""A little of `make fuzz`: broken input of each kind is refused in words, or works."""

from __future__ import annotations

import os
import random
import warnings
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fuzz.mutate import CANARY
from tests.fuzz.run import target


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("projects", 150), ("windows", 40), ("weights", 60), ("artifacts", 60), ("runs", 25),
        ("messages", 2000), ("canaries", 240),
    ],
)  # fmt: skip
def test_broken_input_is_refused_in_words_or_works(
    qapp, kind: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcomes: set[str] = set()
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of strange files
        make, attempt = target(kind, random.Random(20), tmp_path, stack)
        for _ in range(count):
            outcomes.add(attempt(make()))
    assert outcomes == {"refused", "opened"}
    assert CANARY not in os.listdir(tmp_path)
