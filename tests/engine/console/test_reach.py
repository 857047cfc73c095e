"""Which tensors the console's variables lead to, and that every name found reads the object."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from engine.console.resolve import resolve
from engine.tensors.reach import MAX_ITEMS, MAX_LOOKED_AT, reach


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear1 = nn.Linear(2, 3)
        self.body = nn.Sequential(nn.Conv2d(1, 1, 1), nn.ModuleList([nn.Linear(1, 1)]))
        self.named = nn.ModuleDict({"a b": nn.Linear(1, 1), "plain": nn.BatchNorm1d(2)})
        self.many = nn.ParameterList([nn.Parameter(torch.ones(1))])
        self.keyed = nn.ParameterDict({"w": nn.Parameter(torch.ones(1))})
        self.register_parameter("class", nn.Parameter(torch.ones(1)))
        self.unregistered = torch.ones(1)
        self.in_list = [torch.ones(1)]


def test_every_expression_reads_the_object_it_was_found_for() -> None:
    net = Net()
    net.linear1(torch.ones(1, 2)).sum().backward()
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    variables = {
        "net": net,
        "x": x,
        "xs": [torch.ones(1), (np.ones(2), {"w": torch.ones(1), 3: torch.ones(2), True: x})],
        "state": net.state_dict(),
        "array": np.ones(3),
        "lazy": nn.LazyLinear(2),
        "sparse": torch.eye(2).to_sparse(),
    }
    found = reach(variables)
    assert found.cut == ""
    for expression, value in found.held.items():
        assert resolve(expression, variables) is value, expression
    names = set(found.held)
    assert {
        "net.linear1.weight", "net.linear1.weight.grad", "net.linear1.bias.grad",
        "net.body[0].weight", "net.body[1][0].bias", "net.named['a b'].weight",
        "net.named.plain.running_mean", "net.many[0]", "net.keyed.w",
        "net._parameters['class']", "net.unregistered", "net.in_list[0]",
        "x", "x.grad", "xs[0]", "xs[1][0]", "xs[1][1]['w']", "xs[1][1][3]", "xs[1][1][True]",
        "state['linear1.weight']", "array", "lazy.weight", "sparse",
    } <= names  # fmt: skip
    # All that torch itself lists is there.
    reached = {id(value) for value in found.held.values()}
    assert {id(t) for t in (*net.parameters(), *net.buffers())} <= reached
    assert list(found.held)[:3] == ["x", "array", "sparse"]


def test_one_object_in_two_places_has_two_names_and_circles_end() -> None:
    t = torch.ones(1)
    inner = [t]
    circle: list = [inner, t]
    circle.append(circle)
    found = reach({"a": circle, "b": inner, "_private": [t]})
    assert list(found.held) == ["a[1]", "b[0]"]
    assert all(value is t for value in found.held.values())


def test_no_code_of_the_users_runs() -> None:
    class Trap(dict):
        def items(self):
            raise AssertionError

        def __iter__(self):
            raise AssertionError

        def __len__(self):
            raise AssertionError

    class Lined(list):
        def __getitem__(self, key):
            raise AssertionError

        def __iter__(self):
            raise AssertionError

        def __len__(self):
            raise AssertionError

    class Holder(nn.Module):
        @property
        def shown(self):
            raise AssertionError

    variables = {"d": Trap(w=torch.ones(1)), "s": Lined([torch.ones(1)]), "h": Holder()}
    assert list(reach(variables).held) == ["d['w']", "s[0]"]


def test_no_gradient_is_asked_of_a_tensor_that_keeps_none(recwarn) -> None:
    x = torch.ones(1, requires_grad=True)
    kept = x * 2
    kept.retain_grad()
    (kept * 3).sum().backward()
    found = reach({"kept": kept, "lost": x * 2})
    assert list(found.held) == ["kept", "lost", "kept.grad"]
    assert not recwarn.list


@pytest.mark.parametrize(
    ("value", "count", "words"),
    [
        ([torch.ones(1)] * (MAX_ITEMS + 1), MAX_ITEMS, "`many` only the first 1,000 items"),
        ([[torch.ones(1)] * 900] * 40, 900, ""),
        ([[torch.ones(1)] * 900 for _ in range(40)], None, "first 20,000 objects"),
    ],
)
def test_the_walk_is_bounded_and_says_so(value, count, words) -> None:
    found = reach({"many": value, "last": torch.ones(1)})
    assert "last" in found.held
    assert len(found.held) <= MAX_LOOKED_AT
    assert words in found.cut and bool(words) == bool(found.cut)
    assert count is None or len(found.held) == count + 1
