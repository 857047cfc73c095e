"""Which operation gave the first number that is not finite."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.training.objectives.objective import Outcome
from engine.training.watchpoints.origin import Origin, origin_of_gradient, origin_of_loss


class Net(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.head = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.head(x)
        if self.how == "log":
            return torch.log(y - 1e4)
        if self.how == "mask":
            hidden = torch.full_like(y, -torch.inf).triu(1)
            return F.softmax(y + hidden, -1).log()  # log of 0: -inf, and only the loss makes NaN
        if self.how == "exp":
            return (y + 200).exp() / (y + 200).exp()
        if self.how == "sqrt":
            return (y * 0).sqrt()
        if self.how == "inf":
            return y.abs() / (y - y.detach()).abs().sum()
        return y


def run(net: Net, x: Tensor) -> Outcome:
    return Outcome(net(x).sum(), len(x))


def found(how: str, x: Any = None) -> Origin | None:
    torch.manual_seed(0)
    net, x = Net(how), torch.ones(2, 3) if x is None else x
    return origin_of_loss(net, (x,), lambda: run(net, x))


def line_of(text: str) -> int:
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if text in line)


@pytest.mark.parametrize(
    ("how", "op", "source"),
    [
        ("log", "torch.log", "torch.log(y"),
        ("exp", "Tensor.div", "(y + 200).exp() / "),
    ],
)
def test_forward(how: str, op: str, source: str) -> None:
    origin = found(how)
    assert origin is not None
    assert f"`{op}` in the model ({__file__}, line {line_of(source)})" in origin.text
    assert (origin.file, origin.line) == (__file__, line_of(source))
    assert origin.hint


def test_a_loss_that_is_infinite_and_not_nan() -> None:
    origin = found("inf")
    assert origin is not None
    assert "`Tensor.div` in the model" in origin.text
    assert "the first to give an infinite number" in origin.text
    assert "division by 0" in origin.hint


def test_the_input_and_the_first_infinite_number_are_told() -> None:
    origin = found("log")
    assert origin is not None
    torch.manual_seed(0)
    y = Net("").head(torch.ones(2, 3)).detach() - 1e4
    assert f"reaches from {float(y.min()):.4g} to {float(y.max()):.4g}" in origin.text
    origin = found("exp")
    assert origin is not None
    assert "The first infinite number came from `Tensor.exp` in the model" in origin.text


def test_an_infinite_number_that_is_meant_is_not_blamed_for_a_nan() -> None:
    torch.manual_seed(0)
    net, x = Net("mask"), torch.ones(3, 3)

    def loss() -> Outcome:
        rows = net(x)
        return Outcome((rows * 0).sum(), 3)

    origin = origin_of_loss(net, (x,), loss)
    assert origin is not None and "`Tensor.mul` in the loss" in origin.text.replace(
        "__mul__", "mul"
    )


def test_numbers_of_the_model_and_of_the_batch_come_first() -> None:
    x = torch.ones(4, 3)
    x[2, 1] = torch.nan
    origin = found("", x)
    assert origin is not None and "in sample 2." in origin.text
    net = Net("")
    with torch.no_grad():
        net.head.bias[1] = torch.inf
    origin = origin_of_loss(net, (x,), lambda: run(net, x))
    assert origin is not None
    assert "`head.bias` has 1 number" in origin.text
    assert (origin.module, origin.parameter) == ("head", "head.bias")


def test_nothing_is_told_of_a_finite_loss() -> None:
    assert found("") is None


def test_backward_names_the_node_and_the_call_of_it() -> None:
    torch.manual_seed(0)
    net, x = Net("sqrt"), torch.ones(2, 3)
    assert torch.isfinite(run(net, x).loss)
    origin = origin_of_gradient(net, lambda: run(net, x))
    assert origin is not None
    assert "SqrtBackward0 of `Tensor.sqrt` in the model" in origin.text
    assert (origin.file, origin.line) == (__file__, line_of("(y * 0).sqrt()"))
    assert "add a small number" in origin.hint
    assert all(p.grad is None for p in net.parameters())


def test_a_graph_of_many_ways_is_walked_once() -> None:
    weight = nn.Parameter(torch.zeros(2))

    def outcome() -> Outcome:
        y = weight.sqrt()
        for _ in range(60):  # 2**60 ways from the loss to the root
            y = y + y
        return Outcome((y * 0).sum(), 1)

    holder = nn.Module()
    holder.weight = weight
    origin = origin_of_gradient(holder, outcome)
    assert origin is not None and "SqrtBackward0 of `Tensor.sqrt`" in origin.text


def test_a_module_of_torch_is_named_by_its_path() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Softplus(), nn.LogSoftmax(1))
    with torch.no_grad():
        net[0].weight.fill_(3e38)
    x = torch.ones(1, 2) * 10
    origin = origin_of_loss(net, (x,), lambda: Outcome(net(x).sum(), 1))
    assert origin is not None
    assert "In forward, `F.log_softmax` in `2` (" in origin.text
    assert "The first infinite number came from `F.linear` in `0` (" in origin.text
    assert (origin.module, origin.line) == ("2", line_of("Outcome(net(x).sum(), 1))"))


def test_a_loss_that_is_finite_has_no_origin_though_a_mask_is_not() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.tensor([0.0, 0.0, -torch.inf])
            return F.softmax(self.head(x) + hidden, -1)

    net, x = Masked(), torch.ones(2, 3)
    assert origin_of_loss(net, (x,), lambda: Outcome(net(x).sum(), 2)) is None
    nan = torch.tensor(float("nan"))
    assert origin_of_loss(net, (x,), lambda: Outcome(nan, 2)) is None  # no call has made it
