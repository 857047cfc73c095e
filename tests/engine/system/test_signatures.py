"""What is told of the user's classes and functions by their parameters."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.system.signatures import MAX_METHODS, required_parameters, takes_tensors, tensor_methods


class Meta(type):
    __signature__ = 3  # Python's inspect refuses it


class Odd(metaclass=Meta):
    pass


def plain(x, y, z=1): ...


def typed(x: Tensor, *more: int, **options: int): ...


def whole(x: Tensor, count: int): ...


def named(x: torch.Tensor, *, y: Tensor, scale: float = 2.0): ...


def ready(x=None): ...


class Owner:
    def method(self, x): ...

    @classmethod
    def make(cls, x): ...


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (plain, ("x", "y")),
        (typed, ("x",)),
        (named, ("x", "y")),
        (ready, ()),
        (Owner().method, ("x",)),
        (nn.Linear, ("in_features", "out_features")),
        (partial(plain, 1), ("y",)),
        (3, ()),
        (Odd, ()),
    ],
)
def test_the_parameters_without_a_default_are_required(value: Any, names: tuple[str, ...]) -> None:
    assert required_parameters(value) == names


@pytest.mark.parametrize(
    ("value", "takes"),
    [
        (plain, True),
        (typed, True),
        (named, True),
        (whole, False),
        (partial(whole, count=3), True),
        (partial(nn.Linear, 3), False),
        (ready, False),
        (Owner().method, True),
        (Owner.make, False),
        (Owner, False),
        (torch.relu, False),
        (nn.ReLU(), False),
    ],
)
def test_a_function_of_tensors_needs_some_and_nothing_else(value: Any, takes: bool) -> None:
    assert takes_tensors(value) is takes


class Base(nn.Module):
    def encode(self, x): ...

    def forward(self, x): ...

    def _own(self, x): ...


class Model(Base):
    kind = "small"

    def decode(self, z, *, scale=1.0): ...

    def encode(self, x): ...

    def summary(self): ...

    def grow(self, by: int): ...


def test_the_methods_of_a_module_are_those_of_the_users_classes() -> None:
    assert tensor_methods(Model()) == ("decode", "encode")
    assert tensor_methods(nn.Linear(2, 2)) == ()
    many = {f"m{k}": lambda self, x: x for k in range(MAX_METHODS + 1)}
    assert tensor_methods(type("Many", (nn.Module,), many)()) == tuple(many)[:MAX_METHODS]
