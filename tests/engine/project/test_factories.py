"""Every factory's line against what torch makes of it; faults said at their field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from engine.project.factories import FACTORIES, FieldError, Known, Surroundings, python_line

AROUND = Surroundings(
    tensors={"t": Known((1, 2, 3, 4), "float32"), "i": Known((2,), "int64")},
    arrays={"a": Known((2,), "float64")},
)


def made(key: str, **typed: str | bool) -> torch.Tensor:
    """What torch makes of the line."""
    variables = {
        "torch": torch,
        "np": np,
        "t": torch.ones(1, 2, 3, 4),
        "i": torch.tensor([1, 2]),
        "a": np.array([1.0, 2.0]),
    }
    exec(python_line(key, "x", typed, AROUND), variables)
    return variables["x"]


@pytest.mark.parametrize("key", FACTORIES)
def test_the_initial_line_of_every_factory_runs(key):
    needed = {"input": "t"} if FACTORIES[key].fields[0].kind == "tensor" else {}
    made(key, **needed)


@pytest.mark.parametrize("key", [k for k, f in FACTORIES.items() if "dtype" in f.options])
def test_requires_grad_makes_a_leaf(key):
    needed = {"input": "t"} if FACTORIES[key].fields[0].kind == "tensor" else {}
    x = made(key, dtype="float64", requires_grad=True, **needed)
    assert (x.dtype, x.requires_grad, x.is_leaf) == (torch.float64, True, True)


@pytest.mark.parametrize("key", [k for k, f in FACTORIES.items() if "memory_format" in f.options])
def test_memory_formats_keep_shape_leaf_and_change_strides(key):
    needed = {"input": "t"} if FACTORIES[key].fields[0].kind == "tensor" else {"size": "1, 2, 3, 4"}
    x = made(key, memory_format="channels_last", dtype="float32", requires_grad=True, **needed)
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert (tuple(x.shape), x.is_leaf, x.requires_grad) == ((1, 2, 3, 4), True, True)


@pytest.mark.parametrize(
    ("key", "typed", "expected"),
    [
        ("tensor", {"data": "[[1, 2], [3, 4]]"}, torch.tensor([[1, 2], [3, 4]])),
        ("tensor", {"data": "[1, inf, -inf]"}, torch.tensor([1, torch.inf, -torch.inf])),
        ("tensor", {"data": "[True, False]"}, torch.tensor([True, False])),
        ("tensor", {"data": "3"}, torch.tensor(3)),
        ("tensor", {"data": "[]"}, torch.tensor([])),
        ("zeros", {"size": ""}, torch.zeros(())),
        ("zeros", {"size": "2 x 3", "dtype": "int8"}, torch.zeros(2, 3, dtype=torch.int8)),
        ("ones", {"size": "(4,)"}, torch.ones(4)),
        ("full", {"size": "2", "fill_value": "1+2j"}, torch.full((2,), 1 + 2j)),
        ("eye", {"n": "2", "m": "3"}, torch.eye(2, 3)),
        ("arange", {"end": "5"}, torch.arange(5)),
        ("arange", {"start": "5", "end": "0", "step": "-2"}, torch.arange(5, 0, -2)),
        ("arange", {"end": "1", "step": "0.25"}, torch.arange(0, 1, 0.25)),
        ("linspace", {"start": "-1", "steps": "3"}, torch.linspace(-1, 1, 3)),
        ("logspace", {"base": "2"}, torch.logspace(0, 3, 5, base=2)),
        ("full_like", {"input": "i", "fill_value": "9"}, torch.tensor([9, 9])),
        ("tensor(array)", {"array": "a"}, torch.tensor([1.0, 2.0], dtype=torch.float64)),
    ],
)
def test_what_is_typed_is_what_torch_makes(key, typed, expected):
    x = made(key, **typed)
    assert x.dtype == expected.dtype
    torch.testing.assert_close(x, expected)


def test_a_seed_draws_the_same_numbers():
    assert torch.equal(made("randn", seed="3"), made("randn", seed="3"))
    drawn = made("randn", seed="3")
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.randn(2, 3))


def test_from_numpy_shares_and_tensor_copies():
    variables: dict[str, Any] = {"torch": torch, "np": np}
    exec(python_line("from_numpy", "x", {"array": "[1.0, 2.0]"}, AROUND), variables)
    exec(python_line("tensor(array)", "y", {"array": "[1.0, 2.0]"}, AROUND), variables)
    variables["x_np"][0] = variables["y_np"][0] = 9.0
    assert (variables["x"].tolist(), variables["y"].tolist()) == ([9.0, 2.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("key", "typed", "at", "words"),
    [
        ("tensor", {"data": "[[1, 2], [3]]"}, "data", "Entry 1 is a list of 1"),
        ("tensor", {"data": "[1, 'a']"}, "data", "'a' is not a number"),
        ("tensor", {"data": "[1, f()]"}, "data", "is not a number"),
        ("tensor", {"data": "[1, "}, "data", "nested lists"),
        ("tensor", {"data": "[1]", "requires_grad": True}, "requires_grad", "not int64"),
        ("zeros", {"size": "2, -1"}, "size", "cannot be less than 0"),
        ("zeros", {"size": "two"}, "size", "whole numbers"),
        ("zeros", {"memory_format": "channels_last"}, "memory_format", "this has 2"),
        ("zeros", {"pin_memory": True}, "pin_memory", "no CUDA device"),
        ("rand", {"dtype": "int64"}, "dtype", "choose a float dtype"),
        ("randint", {"low": "3", "high": "3"}, "high", "more than low"),
        ("randn", {"seed": "x"}, "seed", "whole numbers"),
        ("arange", {"step": "0"}, "step", "does not lead"),
        ("arange", {"end": "-3"}, "step", "does not lead"),
        ("arange", {"end": "inf"}, "end", "finite"),
        ("zeros_like", {"input": "nope"}, "input", "There is no tensor nope"),
        ("from_numpy", {"array": "nope"}, "array", "no NumPy array named nope"),
    ],
)
def test_faults_are_told_at_their_field(key, typed, at, words):
    with pytest.raises(FieldError, match=words) as fault:
        python_line(key, "x", typed, AROUND)
    assert fault.value.field_name == at


@pytest.mark.parametrize("name", ["", "1x", "for", "a b", "torch"])
def test_names_that_python_or_the_console_needs_are_refused(name):
    with pytest.raises(FieldError) as fault:
        python_line("zeros", name, {}, AROUND)
    assert fault.value.field_name == "name"
