"""What a kernel on a GPU would assert is told before the call, as the CPU tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.recording import kernel_asserts
from engine.recording.kernel_asserts import (
    CHECKS,
    checks,
    know_limits,
    known_limits,
    limits_but_ignored,
)
from engine.recording.light.light_recorder import LightRecorder
from tests.engine.advice.desk import Desk

SCORES, TABLE = torch.zeros(4, 3), torch.zeros(5, 2)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tensors of the CPU count as on a GPU, which this machine has."""
    monkeypatch.setattr(kernel_asserts, "is_on_gpu", lambda t: True)
    monkeypatch.setattr("engine.recording.light.light_recorder.checks", lambda: CHECKS)
    yield


def labels(*values: int) -> Tensor:
    return torch.tensor(values)


def told(call: Callable[[], object]) -> str:
    """The error of a call, as text; "" if it raises none."""
    try:
        call()
    except (IndexError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize(
    ("func", "args", "kwargs"),
    [
        (F.cross_entropy, (SCORES, labels(0, 1, 2, 2)), {}),
        (F.cross_entropy, (SCORES, labels(0, 1, 3, 2)), {}),
        (F.cross_entropy, (SCORES, labels(0, -1, 1, 2)), {}),
        (F.cross_entropy, (SCORES, labels(0, -100, 1, 2)), {}),
        (F.cross_entropy, (SCORES, labels(0, 9, 1, 2)), {"ignore_index": 9}),
        (F.cross_entropy, (SCORES, labels(9, 7, 1, 2)), {"ignore_index": 9}),
        (F.cross_entropy, (SCORES, torch.full((4, 3), 1 / 3)), {}),
        (F.cross_entropy, (SCORES[0], torch.tensor(2)), {}),
        (F.cross_entropy, (SCORES[0], torch.tensor(3)), {}),
        (F.cross_entropy, (torch.zeros(2, 3, 4), torch.full((2, 4), 3)), {}),
        (F.cross_entropy, (), {"input": SCORES, "target": labels(0, 1, 5, 2)}),
        (F.nll_loss, (SCORES, labels(0, 1, 2, 3)), {}),
        (F.embedding, (labels(0, 4), TABLE), {}),
        (F.embedding, (labels(0, 5), TABLE), {}),
        (F.embedding, (labels(-1, 2), TABLE), {}),
        (F.binary_cross_entropy, (torch.tensor([0.0, 1.0]), torch.ones(2)), {}),
        (F.binary_cross_entropy, (torch.tensor([0.5, 1.5]), torch.ones(2)), {}),
        (F.binary_cross_entropy, (torch.tensor([-0.5, 1.0]), torch.ones(2)), {}),
    ],
)
def test_it_is_refused_when_and_as_the_cpu_refuses_it(gpu: None, func, args, kwargs) -> None:
    expected = told(lambda: func(*args, **kwargs))
    found = told(lambda: CHECKS[func](args, kwargs))
    assert found.partition(": ")[0] == expected.partition(": ")[0]
    assert found == expected[: len(found)]


def test_numbers_are_read_once_for_each_version(gpu: None, monkeypatch) -> None:
    reads = []
    aminmax = torch.aminmax
    monkeypatch.setattr(torch, "aminmax", lambda t: reads.append(t) or aminmax(t))
    target = labels(0, 1, 2, 2)
    for _ in range(3):
        CHECKS[F.cross_entropy]((SCORES, target), {})
    assert len(reads) == 1
    target[0] = 3
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        CHECKS[F.cross_entropy]((SCORES, target), {})
    assert len(reads) == 2


def test_on_the_cpu_no_number_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "aminmax", lambda t: pytest.fail("read"))
    for func, args in (
        (F.cross_entropy, (SCORES, labels(0, 1, 2, 7))),
        (F.embedding, (labels(9), TABLE)),
        (F.binary_cross_entropy, (torch.tensor([2.0]), torch.ones(1))),
    ):
        CHECKS[func](args, {})
    assert (dict(checks()) == {}) is not torch.cuda.is_available()


@pytest.mark.parametrize(
    ("func", "call"),
    [
        (F.cross_entropy, lambda: F.cross_entropy(SCORES, labels(0, 1, 2, 2))),
        (F.cross_entropy, lambda: nn.CrossEntropyLoss()(SCORES, labels(0, 1, 2, 2))),
        (F.nll_loss, lambda: nn.NLLLoss()(SCORES, labels(0, 1, 2, 2))),
        (F.embedding, lambda: nn.Embedding(5, 2)(labels(0, 4))),
        (F.embedding, lambda: nn.Sequential(nn.Embedding(5, 2), nn.ReLU())(labels(0, 4))),
        (F.binary_cross_entropy, lambda: nn.BCELoss()(torch.ones(2), torch.ones(2))),
    ],
)
def test_a_recorded_call_is_checked_before_it_runs(monkeypatch, func, call) -> None:
    class Refused(Exception):
        pass

    def refuse(args: tuple, kwargs: dict) -> None:
        raise Refused

    monkeypatch.setattr("engine.recording.light.light_recorder.checks", lambda: {func: refuse})
    recorder = LightRecorder()
    with pytest.raises(Refused), recorder:
        call()
    assert not [call for call in recorder.recording.calls if call.name == func.__name__]


def test_a_cell_is_told_the_label_and_the_classes(gpu: None, monkeypatch) -> None:
    desk = Desk()
    cell = "scores = torch.zeros(4, 3, requires_grad=True)\n{}(scores, torch.tensor([0, 1, 7, 2]))"
    for criterion in ("F.cross_entropy", "nn.CrossEntropyLoss()"):
        desk.run(cell.format(criterion), ends_well=False)
        error = desk.said[-1].error
        assert (error.type, error.line) == ("IndexError", 2)
        assert error.message == "Target 7 is out of bounds."
        assert "kernel_asserts" not in error.traceback
        assert "scores of 3 classes, numbered 0 to 2" in error.operands.text
        assert error.operands.text.endswith("holds the label 7.")
    right = "net = nn.Sequential(nn.Embedding(5, 2), nn.Linear(2, 3))\nfor _ in range(12):\n"
    right += "    scores = net(torch.tensor([0, 4]))\n"
    right += "    nn.CrossEntropyLoss(ignore_index=-1)(scores, torch.tensor([-1, 2])).backward()"
    desk.run(right)


def test_gradients_and_numbers_are_those_of_plain_torch(gpu: None) -> None:
    scores, target = torch.randn(8, 3, requires_grad=True), torch.arange(8) % 3
    plain = F.cross_entropy(scores, target)
    (expected,) = torch.autograd.grad(plain, scores)
    with LightRecorder():
        loss = nn.CrossEntropyLoss()(scores, target)
        loss.backward()
    assert scores.grad is not None
    assert torch.equal(loss, plain) and torch.equal(scores.grad, expected)


def test_the_limits_of_a_copy_are_read_from_its_source() -> None:
    none = (inf, -inf)
    for source, limits, others in (
        (labels(3, -100, 7), (-100, 7), (3, 7)),
        (labels(3, 1, 7), (1, 7), none),
        (labels(-100, -100), (-100, -100), none),
        (labels(5, -101).int(), (-101, 5), none),
        (torch.tensor([1.0]), None, none),
        (labels(), None, none),
        (torch.tensor([True]), None, none),
    ):
        copy = source.clone()
        know_limits(copy, source)
        assert known_limits(copy) == limits and limits_but_ignored(copy) == others
        assert known_limits(source) is None
        copy += 0 if copy.dtype != torch.bool else False
        assert known_limits(copy) is None
