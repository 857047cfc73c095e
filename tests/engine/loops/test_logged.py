"""Tensors that loops of cells log, against what the same loop reads from torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
import torch

from engine.handlers.training.pictures.looks import read_histograms
from engine.loops import logged
from engine.loops.logged import LoggedTensors, as_logged, histogram, image
from engine.protocol import HistogramKind, HistogramsSnapshot, ReadHistogramsCommand
from tests.engine.drawn import drawn
from tests.engine.loops.test_own_loops import BEGIN, Desk

LOOP = """
torch.manual_seed(1)
kept, drawn = {}, torch.zeros(7)
for step in range(1, 9):
    optimizer.zero_grad()
    out = net(x)
    loss = F.mse_loss(out, y)
    loss.backward()
    drawn += torch.rand(7)
    LOG
    kept[step] = out.detach().clone(), drawn.clone()
    optimizer.step()
after = torch.rand(3)
"""
LOG = "lab.log(out=out, drawn=lab.histogram(drawn), loss=loss)"


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(logged, "SHARE", 1e9)  # each step is looked at, however slow the machine
    desk = Desk()
    yield desk
    desk.session.close()


def histograms(
    desk: Desk, name: str = "", kind: HistogramKind = "logged", of_loop: bool = True
) -> HistogramsSnapshot:
    command = ReadHistogramsCommand(folder="", of_loop=of_loop, name=name, kind=kind)
    (found,) = read_histograms(desk.session.lab, command)
    return found


def assert_counted(found: HistogramsSnapshot, values: list[torch.Tensor]) -> None:
    ends = [(float(each.min()), float(each.max())) for each in values]
    assert list(zip(found.lows, found.highs, strict=True)) == ends
    counts = torch.frombuffer(bytearray(found.counts), dtype=torch.int32).reshape(-1, 64)
    for row, each in zip(counts, values, strict=True):
        assert torch.equal(row.float(), torch.histc(each, 64))


def test_histograms_are_those_of_the_tensors_when_they_were_logged(desk: Desk) -> None:
    loops = desk.run(BEGIN + LOOP.replace("LOG", LOG))
    assert desk.end.ok
    kept = desk.variables["kept"]
    found = histograms(desk, "out")
    assert (found.kind, found.names) == ("logged", ("out", "drawn"))
    assert found.steps == tuple(kept)
    assert_counted(found, [out for out, _ in kept.values()])
    assert_counted(histograms(desk, "drawn"), [drawn for _, drawn in kept.values()])
    assert histograms(desk, "weight").name == "out"
    assert len(drawn(loops, "loss")) == 8
    assert (
        histograms(desk, "net.0.weight", "weights").names[0] == "net.0.weight"
    )  # Train's own are there
    assert not histograms(desk, of_loop=False).names


def test_the_newest_tensor_is_a_copy_that_has_a_name(desk: Desk) -> None:
    desk.run(BEGIN + LOOP.replace("LOG", LOG))
    newest = desk.session.lab.console.namespace.tensor("lab.logged['out']")
    out, _ = desk.variables["kept"][8]
    assert torch.equal(newest, out)
    assert newest.data_ptr() != desk.variables["out"].data_ptr() and newest.grad_fn is None
    assert set(desk.session.lab.console.namespace.lab.logged) == {"out"}


def test_the_loop_computes_the_same_bits_as_without(desk: Desk) -> None:
    desk.run(BEGIN + LOOP.replace("LOG", LOG))
    alone: dict[str, object] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    exec(BEGIN + LOOP.replace("LOG", "pass"), alone)
    for name in ("after", "out", "drawn"):
        assert torch.equal(desk.variables[name], alone[name])  # pyright: ignore[reportArgumentType]


def test_a_loop_that_logs_replaces_what_was_logged_before(desk: Desk) -> None:
    desk.run(BEGIN + LOOP.replace("LOG", LOG))
    desk.run("x = x * 2")
    assert histograms(desk).names == ("out", "drawn")
    desk.run("lab.log(other=x)")
    assert (histograms(desk).names, histograms(desk).steps) == (("other",), (1,))


def test_without_looks_at_parameters_what_is_logged_is_shown(desk: Desk) -> None:
    desk.run("lab.log(x=torch.tensor([1.0, float('nan'), float('inf'), 3.0, 3.0]))")
    found = histograms(desk, kind="gradients")
    assert (found.kind, found.lows, found.highs, found.others) == ("logged", (1.0,), (3.0,), (2,))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("a=torch.zeros(2, dtype=torch.complex64)", "takes real numbers, not torch.complex64"),
        ("a=lab.histogram('x')", "lab.log(a=lab.histogram(...)) takes a tensor, not str"),
        ("a=lab.histogram(object())", "lab.log(a=lab.histogram(...)) takes a tensor, not object"),
    ],
)
def test_what_has_no_histogram_is_refused(desk: Desk, call: str, words: str) -> None:
    desk.run(f"lab.log({call})")
    assert desk.end.error is not None and words in desk.end.error.message


@pytest.mark.parametrize(
    "made",
    [
        "torch.zeros(3, device='meta')",
        "torch.zeros(0)",
        "torch.eye(3).to_sparse()",
        "np.arange(6)",
        "torch.tensor([True, False])",
        "nn.UninitializedParameter() if 0 else torch.randn(3, 4).t()",
        "lab.histogram([1.5, 2.5])",
        "lab.histogram(torch.tensor(2.0))",
    ],
)
def test_any_kind_of_tensor_may_be_logged(desk: Desk, made: str) -> None:
    desk.run(f"lab.log(a={made})")
    assert desk.end.ok


def test_many_steps_and_large_tensors_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged, "SHARE", 1e9)
    monkeypatch.setattr(logged, "MAX_COUNTED", 100)
    monkeypatch.setattr(logged, "MAX_KEPT_BYTES", 1000)
    tensors = LoggedTensors()
    for step in range(1, 1001):
        few, many = histogram(torch.arange(4.0)), histogram(torch.arange(250.0))
        tensors.add({"x": few, "y": many}, step)
    large = as_logged("z", torch.arange(251.0))
    assert large is not None
    tensors.add({"z": large}, 1000)
    fits = as_logged("w", torch.arange(250.0))
    assert fits is not None
    tensors.add({"w": fits}, 1000)
    steps = [row.step for row in tensors.histograms("x")]
    assert len(steps) <= 256 and (steps[0], steps[-1]) == (1, 1000)
    gaps = [after - before for before, after in pairwise(steps)]
    assert max(gaps) <= 16
    every_third = torch.arange(250.0)[::3]
    (row, *_) = tensors.histograms("y")
    assert torch.equal(
        torch.frombuffer(bytearray(row.counts), dtype=torch.int32).float(),
        torch.histc(every_third, 64),
    )
    assert tensors.histograms("z") and list(tensors.newest) == ["w"]


@pytest.mark.parametrize(("made", "limit"), [(histogram, 256), (image, 64)])
def test_beyond_the_most_steps_of_a_name_every_second_stays(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[torch.Tensor], logged.Logged], limit: int
) -> None:
    monkeypatch.setattr(logged, "SHARE", 1e9)
    tensors = LoggedTensors()

    def steps() -> list[int]:
        return [each.step for each in (*tensors.histograms("x"), *tensors.images("x"))]

    for step in range(limit):
        tensors.add({"x": made(torch.eye(2))}, step)
    assert steps() == [*range(limit)]
    tensors.add({"x": made(torch.eye(2))}, limit - 1)
    assert steps() == [*range(limit)]  # a step has the newest
    tensors.add({"x": made(torch.eye(2))}, limit)
    assert len(steps()) == limit // 2 and (steps()[0], steps()[-1]) == (0, limit)
    assert tensors.has_images is (made is image)
    tensors.begin()
    assert steps() and not tensors.has_images


def test_inside_a_transform_of_a_function_nothing_is_looked_at() -> None:
    tensors = LoggedTensors()

    def function(x: torch.Tensor) -> torch.Tensor:
        tensors.add({"x": histogram(x)}, 1)
        return x

    torch.func.vmap(function)(torch.ones(3, 2))
    assert not tensors.histogram_names()
    function(torch.ones(3, 2))
    assert tensors.histogram_names() == ["x"]


@pytest.mark.parametrize("value", [1.0, torch.ones(1), np.ones(1), torch.ones(())])
def test_one_number_is_no_tensor_to_log(value: object) -> None:
    assert as_logged("a", value) is None


def test_of_many_short_steps_a_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look takes a second on this clock, a step a hundredth."""
    now = 0.0

    def clock() -> float:
        return now

    def look(*args: object) -> None:
        nonlocal now
        now += 1.0
        looked.append((args[1], args[3]))

    looked: list[tuple] = []
    monkeypatch.setattr(logged, "perf_counter", clock)
    monkeypatch.setattr(LoggedTensors, "_look", look)
    tensors, each = LoggedTensors(), histogram(torch.zeros(2))
    for step in range(100_000):
        now += 0.01
        tensors.add({"a": each, "b": each}, step)
    free = 2 * logged.FREE_LOOKS
    assert looked[:free] == [(n, i) for i in range(logged.FREE_LOOKS) for n in ("a", "b")]
    share = (len(looked) - free) / (now - free)
    assert 0.8 * logged.SHARE < share < 1.2 * logged.SHARE
    assert {name for name, _ in looked[free : free + 2]} == {"a", "b"}
