"""How two files differ, against torch."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import safetensors.torch
import torch

from engine.artifacts.comparing import _difference, compare
from engine.artifacts.opening import open_artifact
from engine.protocol import (
    ArtifactDifference,
    ArtifactDifferenceSnapshot,
    CompareArtifactsCommand,
    Snapshot,
)
from engine.server.session import Session
from engine.system.errors import LabError
from engine.tensors.values import statistics


def differences(first: Path, second: Path) -> dict[str, ArtifactDifference]:
    rows = compare(open_artifact(first), open_artifact(second))
    return {row.key: row for row in rows if row is not None}


def test_every_way_in_which_a_key_can_differ(tmp_path: Path) -> None:
    x = torch.tensor([[1.0, -2.0], [math.nan, 4.0]])
    y = torch.tensor([[1.5, -2.0], [math.nan, 2.0]])
    a, b = tmp_path / "a.pt", tmp_path / "b.pt"
    shared = {"same": x, "empty": torch.empty(0, 2), "n": 3}
    torch.save(
        {**shared, "w": x, "s": torch.ones(2), "d": torch.ones(2), "i": torch.tensor([2**60]),
         "inf": torch.tensor([math.inf, 0.0]), "a": x, "m": torch.empty(2, device="meta"), "e": 1,
         "z": torch.tensor([3.0, 1 + 1j])},
        a,
    )  # fmt: skip
    torch.save(
        {**shared, "w": y, "s": torch.ones(3), "d": torch.ones(2).double(),
         "i": torch.tensor([2**60 + 1]), "inf": torch.tensor([math.inf, math.nan]), "b": x,
         "m": torch.empty(2, device="meta"), "e": 2, "z": torch.tensor([3.0, 1 - 3j])},
        b,
    )  # fmt: skip
    found = differences(a, b)
    assert {key: row.verdict for key, row in found.items()} == {
        "same": "equal", "empty": "equal", "n": "equal", "w": "different", "s": "shape",
        "d": "dtype", "i": "different", "inf": "different", "a": "only first", "b": "only second",
        "m": "unread", "e": "different", "z": "different",
    }  # fmt: skip
    apart = (x - y).abs()
    assert found["w"].absolute == apart.nan_to_num(0).max() == 2.0
    assert found["w"].relative == (apart / y.abs()).nan_to_num(0).max() == 1.0
    assert (found["d"].absolute, found["d"].relative) == (0.0, 0.0)
    assert found["i"].absolute == 1.0, "float64 does not tell 2**60 from 2**60 + 1"
    assert found["inf"].absolute == math.inf
    assert found["z"].absolute == 4.0 and found["z"].relative == pytest.approx(4 / 10**0.5)
    assert (found["s"].first, found["s"].second) == ("(2,) float32", "(3,) float32")
    assert (found["e"].first, found["e"].second) == ("1", "2")


def test_what_cannot_be_read_says_why(tmp_path: Path, monkeypatch) -> None:
    paths = [tmp_path / "a.pt", tmp_path / "b.pt"]
    meta, ones = torch.empty(2, device="meta"), torch.ones(2)
    torch.save({"m": meta, "n": ones, "w": ones, "l": torch.ones(4)}, paths[0])
    torch.save({"m": ones, "n": meta, "w": ones, "l": torch.ones(4)}, paths[1])
    first, second = map(open_artifact, paths)
    note = {entry.key: entry.note for entry in first.entries}["m"]
    assert note

    def fail(key: str) -> torch.Tensor:
        raise LabError(f"The numbers of {key} are gone.")

    monkeypatch.setattr("engine.artifacts.comparing.MAX_ELEMENTS", 3)
    monkeypatch.setattr(type(second), "tensor", lambda artifact, key: fail(key))
    found = {row.key: row for row in compare(first, second) if row is not None}
    sides = "(2,) float32", "(2,) float32"
    assert found == {
        "m": ArtifactDifference("m", "unread", *sides, note=note),
        "n": ArtifactDifference("n", "unread", *sides, note=note),
        "w": ArtifactDifference("w", "unread", *sides, note="The numbers of w are gone."),
        "l": ArtifactDifference(
            "l", "unread", "(4,) float32", "(4,) float32", note="it is too large"
        ),
    }
    assert [row and row.key for row in compare(first, second)] == ["m", "n", "w", "l"]


def test_keys_come_in_the_order_of_the_first_file_then_those_of_the_other(tmp_path: Path) -> None:
    paths = [tmp_path / "a.pt", tmp_path / "b.pt"]
    torch.save({"x": torch.ones(1), "a": torch.ones(2), "n": 3, "t": True}, paths[0])
    torch.save({"b": torch.ones(3), "x": torch.ones(1), "n": 3.0, "t": True, "o": 5}, paths[1])
    first, second = map(open_artifact, paths)
    rows = list(compare(first, second))
    assert rows[:2] == [None, ArtifactDifference("x", "equal", *["(1,) float32"] * 2, 0.0, 0.0)]
    assert rows[2:] == [
        ArtifactDifference("a", "only first", "(2,) float32"),
        ArtifactDifference("n", "different", "3", "3.0"),
        ArtifactDifference("t", "equal", "True", "True"),
        ArtifactDifference("b", "only second", "", "(3,) float32"),
        ArtifactDifference("o", "only second", "", "5"),
    ]


@pytest.mark.parametrize(
    ("one", "two", "absolute", "relative"),
    [
        ([1.0, 0.0], [1.0, 0.0], 0.0, 0.0),
        ([1.0], [0.0], 1.0, math.inf),
        ([0.0], [2.0], 2.0, 1.0),
        ([3, 5], [3, 4], 1.0, 0.25),
        ([math.nan], [1.0], math.inf, math.inf),
        ([math.inf], [-math.inf], math.inf, math.inf),
        ([True, False], [True, True], 1.0, 1.0),
        ([1 + 1j], [1.0], 1.0, 1.0),
        ([2**60], [float(2**60)], 0.0, 0.0),
    ],
)
def test_how_far_two_tensors_are_apart(one, two, absolute: float, relative: float) -> None:
    assert _difference(torch.tensor(one), torch.tensor(two)) == (absolute, relative)


def test_large_tensors_are_compared_in_pieces(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("engine.artifacts.comparing.CHUNK", 7)
    assert statistics.CHUNK != 7
    torch.manual_seed(0)
    x = torch.randn(5, 3, 11)
    y = x + 0.01 * torch.randn(5, 3, 11)
    torch.save({"w": x}, tmp_path / "a.pt")
    safetensors.torch.save_file({"w": y}, tmp_path / "b.safetensors")
    row = differences(tmp_path / "a.pt", tmp_path / "b.safetensors")["w"]
    apart = (x.double() - y.double()).abs()
    assert row.absolute == float(apart.max())
    assert row.relative == float((apart / y.double().abs()).max())


@pytest.mark.parametrize("count", [0, 5000])
def test_a_comparison_of_many_keys_comes_in_parts(count: int, tmp_path: Path) -> None:
    torch.save({f"layers.{n}.some.long.name.weight": n for n in range(count)}, tmp_path / "a.pt")
    answers: list[Snapshot] = []
    session = Session(answers.append)
    path = str(tmp_path / "a.pt")
    session.handle(CompareArtifactsCommand(id=1, path=path, other=path))
    session.close()
    parts = [each for each in answers if isinstance(each, ArtifactDifferenceSnapshot)]
    rows = [row for part in parts for row in part.rows]
    assert len(rows) == count and all(row.verdict == "equal" for row in rows)
    assert parts[-1].left == 0 and parts[-1].done == count
    assert len(parts) > 1 or not count
