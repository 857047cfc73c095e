"""The batch that a program is written from, and what the live model gives for it."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.exporting import examples
from engine.exporting.examples import (
    calls_of,
    captured,
    cases_of,
    example_of,
    names_of_outputs,
    seconds_of,
    still,
)
from engine.system.errors import LabError
from engine.verifier.values import Case

X = torch.arange(6.0).view(3, 2)


class Net(nn.Module):
    """`body` runs twice; the second time with what no file takes."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.drop = nn.Linear(2, 2), nn.Dropout(0.5)

    def forward(self, x: Tensor, *, factor: Tensor | float = 1.0) -> Tensor:
        return self.drop(self.body(x) + self.body(input=x)) * factor


def test_tensors_without_dimensions_have_no_samples() -> None:
    zero, flags = torch.tensor(3.0), torch.tensor([True, False, True])
    example = example_of((zero, X, [flags]), {"zero": zero})
    assert example.size == 3 and [each is one for each, one in zip(
        example.tensors, (X, flags), strict=True)] == [True, True]  # fmt: skip
    assert [example.has_batch(each) for each in (zero, X, flags, X.t())] == [
        False, True, True, False,
    ]  # fmt: skip
    changed = example.of_size(2)
    assert changed.args[0] is zero and changed.kwargs == {"zero": zero}
    assert torch.equal(changed.args[2][0], flags[:2])


def test_only_numbers_with_a_fraction_are_cast() -> None:
    ids = torch.tensor([1, 2, 3])
    example = example_of((X, (ids, {"m": X > 2})), {"w": X.double(), "name": "a"}).cast(torch.half)
    x, (whole, more) = example.args
    assert type(example.args[1]) is tuple and whole is ids and more["m"].dtype == torch.bool
    assert x.dtype == example.kwargs["w"].dtype == torch.half and torch.equal(x, X.half())
    assert example.size == 3 and example.kwargs["name"] == "a"


@pytest.mark.parametrize("given", [((X, {1}), {}), ((X,), {"more": [object()]})])
def test_arguments_that_no_program_takes_are_refused(given: Any) -> None:
    name = "set" if given[0][1:] else "list"
    with pytest.raises(LabError, match=f"^The model is called with a {name}"):
        example_of(*given)
    with pytest.raises(LabError, match="called without a tensor"):
        example_of((1, torch.tensor(2.0)), {"name": "a"})


def test_the_first_call_of_the_module_is_the_example() -> None:
    seen: list[Tensor] = []

    class Writes(nn.Module):
        def forward(self, x: Tensor, more: list[Tensor], factor: float) -> Tensor:
            seen.append(x)
            return x.mul_(factor)

    net, x = Writes(), X.clone().requires_grad_() * 1

    def run() -> None:
        net(x, [x], factor=2.0)
        net(x[:1], [], factor=3.0)

    example = captured(net, run)
    assert example.size == 3 and example.kwargs == {"factor": 2.0} and len(seen) == 2
    for each in (example.args[0], *example.args[1]):  # as they were before the call
        assert torch.equal(each, X) and not each.requires_grad
    assert not net._forward_pre_hooks
    with pytest.raises(ValueError, match="in the step"):
        captured(net, lambda: int("in the step"))
    assert not net._forward_pre_hooks
    with pytest.raises(LabError, match="does not call the model itself"):
        captured(net, lambda: net.forward(x, [], 1.0))


def test_the_module_itself_stands_still_and_is_as_before() -> None:
    net = Net()
    net.body.bias.requires_grad_(False)
    net.generator = (n for n in range(3))  # pyright: ignore
    own = net.body.weight
    with still(torch.compile(net, backend="eager")) as module:  # pyright: ignore
        assert module is net and module.body.weight is own
        assert not module.training and not module.drop.training
        assert [each.requires_grad for each in module.parameters()] == [True, False]
        own.data.zero_()
    assert net.training and net.drop.training and net.body.weight is own and own.all()
    with still(net, "float16") as module:
        assert module is net and module.body.weight.dtype == torch.float16
        assert [each.requires_grad for each in module.parameters()] == [True, False]
    assert net.training and net.body.weight is own and own.dtype == torch.float32


def test_other_numbers_are_moved_and_made_smaller_and_the_first_sample_is_another() -> None:
    ids, flags = torch.tensor([[1, 2], [3, 4], [5, 6]]), torch.tensor([True, False, True])
    example = example_of((X, ids), {"flags": flags, "whole": torch.ones(7)})
    assert example.other(0) is example
    other = example.of_size(4, 1).other(1)
    rows = [1, 2, 0, 1]
    assert torch.equal(other.args[0], X[rows].flip(1) / 2)
    assert torch.equal(other.args[1], ids[rows].flip(1))
    assert torch.equal(other.kwargs["flags"], flags[rows])
    assert torch.equal(other.kwargs["whole"], torch.ones(7))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_numbers_are_the_same_cast_before_or_after(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    example = example_of((torch.randn(64, 16),), {})
    for number in range(examples.INPUTS):
        after, before = example.other(number).cast(dtype), example.cast(dtype).other(number)
        assert torch.equal(after.args[0], before.args[0]), number


def test_a_case_of_each_size_that_the_module_takes() -> None:
    class Pairs(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            if len(x) == 2:
                raise ValueError("two are too few")
            drawn = torch.zeros(int(torch.randint(1, 99, ()))) if len(x) == 5 else torch.rand(1)
            return x + 1, drawn, x / 0

    torch.manual_seed(3)
    state = torch.get_rng_state()
    cases = cases_of(Pairs(), example_of((X,), {}))
    assert torch.equal(torch.get_rng_state(), state)
    assert [case.batch_size for case in cases] == [1, 3, 3, 3, 5]
    assert torch.equal(cases[1].args[0], X)
    for case in cases:
        (x,) = case.args
        assert torch.equal(case.outputs[0], x + 1)
        assert case.drawn == [False, True, False]  # 0 / 0 is the same NaN twice
        torch.manual_seed(case.seed)
        expected = Pairs()(x)[1]
        assert torch.equal(case.outputs[1], expected)
    with pytest.raises(ValueError, match="two are too few"):
        cases_of(Pairs(), example_of((X[:2],), {}))


def test_the_outputs_are_plain_tensors_of_their_own() -> None:
    class Same(nn.Module):
        weight: nn.Parameter

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, bool]:
            x.add_(1)
            return x, x * self.weight, torch.is_grad_enabled()

    net, x = Same(), X.clone()
    net.weight = nn.Parameter(torch.ones(1))
    case = next(case for case in cases_of(net, example_of((x,), {})) if case.batch_size == 3)
    assert torch.equal(x, X) and torch.equal(case.args[0], X)  # though the model writes into it
    assert not case.outputs[1].requires_grad and not case.outputs[2]


def test_the_names_of_outputs() -> None:
    class Gives(nn.Module):
        def __init__(self, given: Any) -> None:
            super().__init__()
            self.given = given

        def forward(self, x: Tensor, y: Tensor) -> Any:
            x.zero_()
            return self.given

    call = example_of((X.clone(),), {"y": X})
    for given, expected in (
        ({"a": X, 3: X}, ["a", "3"]), (X, ["output"]), ([X], ["output"]),
        ({"a": X, "b": [X, X]}, ["output_0", "output_1", "output_2"]),
        ((X, X), ["output_0", "output_1"]), ({"a": 2}, ["output"]),
    ):  # fmt: skip
        assert names_of_outputs(Gives(given), call) == expected
    assert torch.equal(call.args[0], X)


def test_the_shortest_of_some_calls_is_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 29.0, 30.0, 33.0, 40.0, 44.0])
    monkeypatch.setattr(examples, "perf_counter", lambda: next(clock))
    modes: list[bool] = []

    class Counts(nn.Module):
        def forward(self, x: Tensor, factor: float) -> None:
            modes.append(torch.is_grad_enabled())
            random.seed(torch.rand(1).item() + factor)

    state = torch.get_rng_state()
    assert seconds_of(Counts(), Case(3, (X,), {"factor": 2.0}, [], [])) == 2.0
    assert modes == [False] * examples.TIMED_CALLS and next(clock, None) is None
    assert torch.equal(torch.get_rng_state(), state)


def test_every_call_of_a_module_inside_as_it_ends() -> None:
    net = Net()
    case = Case(3, (X,), {"factor": torch.tensor(2.0)}, [], [], seed=4)
    state = torch.get_rng_state()
    calls = calls_of(torch.compile(net, backend="eager"), case)  # pyright: ignore[reportArgumentType]
    assert torch.equal(torch.get_rng_state(), state)
    assert [(each.path, each.number) for each in calls] == [
        ("body", 0), ("body", 1), ("drop", 0), ("", 0),
    ]  # fmt: skip
    assert calls[0].args[0] is X and calls[1].args == () and calls[1].kwargs["input"] is X
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(4)
        body = net.body(X)
        dropped = net.drop(body * 2)
    for call, expected in zip(calls, (body, body, dropped, dropped * 2), strict=True):
        (found,) = call.outputs
        assert torch.equal(found, expected) and not found.requires_grad
    assert not any(module._forward_hooks for module in net.modules())


def test_a_call_with_what_no_file_takes_is_left_out() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by_place, self.by_name, self.plain = nn.Identity(), nn.Identity(), nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            self.by_place({1})
            self.by_name(input={1})
            return self.plain(self.by_place(x))

    calls = calls_of(Odd(), Case(3, (X,), {}, [], []))
    assert [(each.path, each.number) for each in calls] == [
        ("by_place", 1), ("plain", 0), ("", 0),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_a_module_of_torchscript_is_seen_from_outside() -> None:
    """TorchScript runs what is inside of it without Python."""
    script = torch.jit.script(nn.Sequential(nn.ReLU()))
    whole = nn.Sequential(script, nn.Tanh())
    case = Case(3, (X - 3,), {}, [], [])
    (call,) = calls_of(script, case)
    assert call.path == "" and torch.equal(call.outputs[0], (X - 3).relu())
    assert [each.path for each in calls_of(whole, case)] == ["1", ""]
    assert torch.equal(captured(script, lambda: script(X)).args[0], X)
    assert not script._forward_hooks and not script._forward_pre_hooks
