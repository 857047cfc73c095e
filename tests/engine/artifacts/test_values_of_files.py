"""The views of values ask about tensors of files as about those of the console."""

from __future__ import annotations

import _thread
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from engine.artifacts import state
from engine.artifacts.contents.artifact import Artifact
from engine.handlers import artifacts as files
from engine.protocol import (
    ArtifactSnapshot,
    BitsCommand,
    BitsSnapshot,
    CompareArtifactsCommand,
    ErrorSnapshot,
    LinesCommand,
    LinesSnapshot,
    OpenArtifactCommand,
    ReadValuesCommand,
    Snapshot,
    StatisticsCommand,
    StatisticsSnapshot,
    ValuesSnapshot,
)
from engine.server.session import Session


@pytest.fixture(scope="module")
def ask():
    answers: list[Snapshot] = []
    session = Session(answers.append)

    def ask(command, kind):
        answers.clear()
        session.handle(command)
        (answer,) = (each for each in answers if isinstance(each, kind))
        return answer

    yield ask
    session.close()


@pytest.fixture(scope="module")
def x() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(6, 700_000)


@pytest.fixture(scope="module")
def path(x, tmp_path_factory) -> str:
    found = tmp_path_factory.mktemp("values") / "x.pt"
    torch.save({"x": x}, found)
    return str(found)


def test_a_window_of_numbers(ask, x, path) -> None:
    command = ReadValuesCommand(
        expression="x", file=path, slice="1:, ::2", row_count=2, column_count=2, row_start=1
    )
    answer = ask(command, ValuesSnapshot)
    cells = torch.tensor([[float(cell) for cell in row] for row in answer.cells])
    assert torch.equal(cells, x[1:, ::2][1:3, :2])
    assert answer.edit == "", "a file is not written to"


def test_statistics_are_counted_in_pieces(ask, x, path) -> None:
    answer = ask(StatisticsCommand(expression="x", file=path, restart=True), StatisticsSnapshot)
    while answer.done < answer.total:
        answer = ask(StatisticsCommand(expression="x", file=path), StatisticsSnapshot)
    wide = x.double()
    assert answer.total == x.numel()
    assert answer.minimum == float(wide.min()) and answer.maximum == float(wide.max())
    assert answer.mean == pytest.approx(float(wide.mean()), abs=1e-9)
    assert answer.std == pytest.approx(float(wide.std()))
    assert answer.histogram is not None and sum(answer.histogram.counts) == x.numel()


def test_lines_and_bits(ask, x, path) -> None:
    lines = ask(LinesCommand(expression="x", file=path, restart=True), LinesSnapshot)
    assert (lines.rows, lines.columns) == tuple(x.shape)
    bits = ask(BitsCommand(expression="x", file=path, index=(2, 3)), BitsSnapshot)
    assert torch.tensor(float(bits.text)) == x[2, 3]


def test_a_key_that_is_not_there_is_told(ask, path) -> None:
    error = ask(ReadValuesCommand(expression="y", file=path), ErrorSnapshot).error
    assert error.message == "x.pt has no tensor y."


def test_an_index_of_many_keys_comes_in_parts(tmp_path: Path) -> None:
    state = {f"layers.{n}.attention.projection.weight": torch.empty(2) for n in range(3000)}
    torch.save(state, tmp_path / "many.pt")
    answers: list[Snapshot] = []
    session = Session(answers.append)
    session.handle(OpenArtifactCommand(id=1, path=str(tmp_path / "many.pt")))
    session.close()
    parts = [each for each in answers if isinstance(each, ArtifactSnapshot)]
    assert len(parts) > 1 and [part.left for part in parts] == sorted(
        (part.left for part in parts), reverse=True
    )
    assert [entry.key for part in parts for entry in part.entries] == list(state)
    assert parts[0].totals.elements == 6000 and parts[-1].left == 0


@pytest.fixture
def heeds_sigint() -> Iterator[None]:
    """Tests that were started in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_file_that_takes_too_long_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, heeds_sigint: None
) -> None:
    """Its reader may be in any loop of Python; the session answers the next question."""

    def endless(path: Path) -> Artifact:
        while True:
            pass

    torch.save({"w": torch.zeros(2)}, tmp_path / "fast.pt")
    answers: list[Snapshot] = []
    session = Session(answers.append)
    session.lab.control.interrupt = _thread.interrupt_main
    monkeypatch.setattr(files, "MAX_READ_S", 0.05)
    with monkeypatch.context() as patched:
        patched.setattr(state, "open_artifact", endless)
        patched.setattr(files, "open_artifact", endless)
        session.handle(OpenArtifactCommand(path="slow.pt"))
        session.handle(CompareArtifactsCommand(path="slow.pt", other="fast.pt"))
    assert [type(each) for each in answers] == [ErrorSnapshot, ErrorSnapshot]
    for each in answers:
        assert isinstance(each, ErrorSnapshot)
        assert each.error.message == "slow.pt was not read in 0.05 s."
    monkeypatch.setattr(files, "MAX_READ_S", 30.0)
    session.handle(OpenArtifactCommand(path=str(tmp_path / "fast.pt")))
    assert isinstance(answers[-1], ArtifactSnapshot)
    session.close()
