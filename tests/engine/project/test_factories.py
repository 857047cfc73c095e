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
        ("randint", {"low": "3", "high": "3"}, "high", "greater than low"),
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


@pytest.mark.parametrize(
    ("key", "typed", "line"),
    [
        ("zeros", {"size": ""}, "x = torch.zeros(())"),
        ("zeros", {"size": "[2, 3]"}, "x = torch.zeros(2, 3)"),
        ("zeros", {"size": "2×3"}, "x = torch.zeros(2, 3)"),
        ("zeros", {"size": "0"}, "x = torch.zeros(0)"),
        ("zeros", {"size": "2 3"}, "x = torch.zeros(2, 3)"),
        ("zeros", {"size": "2, 3,"}, "x = torch.zeros(2, 3)"),
        ("full", {"size": "2"}, "x = torch.full((2,), 7.0)"),
        ("full", {"size": "(2,)"}, "x = torch.full((2,), 7.0)"),
        ("randint", {"size": ""}, "x = torch.randint(0, 10, ())"),
        ("randint", {"low": "-3", "high": "-2"}, "x = torch.randint(-3, -2, (2, 3))"),
        ("eye", {}, "x = torch.eye(3)"),
        ("eye", {"n": "0", "m": "0"}, "x = torch.eye(0, 0)"),
        ("arange", {}, "x = torch.arange(12)"),
        ("arange", {"start": "1"}, "x = torch.arange(1, 12)"),
        ("arange", {"step": "2"}, "x = torch.arange(0, 12, 2)"),
        ("arange", {"start": "12"}, "x = torch.arange(12, 12)"),
        ("linspace", {"steps": "0"}, "x = torch.linspace(0, 1, 0)"),
        ("logspace", {}, "x = torch.logspace(0, 3, 5)"),
        ("logspace", {"base": "2"}, "x = torch.logspace(0, 3, 5, base=2)"),
        ("full_like", {"input": "t", "fill_value": "nan"}, "x = torch.full_like(t, torch.nan)"),
        ("randint_like", {"input": "i"}, "x = torch.randint_like(i, 0, 10)"),
        ("tensor", {"data": "(1, 2)"}, "x = torch.tensor((1, 2))"),
        ("tensor", {"data": "[[-inf], [nan]]"}, "x = torch.tensor([[-torch.inf], [torch.nan]])"),
        ("from_numpy", {"array": "a"}, "x = torch.from_numpy(a)"),
        ("from_numpy", {"array": "a", "requires_grad": True},
         "x = torch.from_numpy(a).requires_grad_()"),
        ("from_numpy", {"array": "[inf]"}, "x_np = np.array([np.inf])\nx = torch.from_numpy(x_np)"),
        ("tensor(array)", {"array": "a", "requires_grad": True},
         "x = torch.tensor(a, requires_grad=True)"),
        ("randn", {"seed": " 7 "}, "torch.manual_seed(7)\nx = torch.randn(2, 3)"),
        ("zeros", {"device": "cuda:0"}, 'x = torch.zeros(2, 3, device="cuda:0")'),
        ("zeros", {"dtype": "", "device": "", "memory_format": ""}, "x = torch.zeros(2, 3)"),
        ("empty", {"size": "1, 1, 1, 1", "memory_format": "channels_last", "requires_grad": True},
         "x = torch.empty(1, 1, 1, 1, memory_format=torch.channels_last, requires_grad=True)"),
        ("ones_like", {"input": "t", "memory_format": "channels_last"},
         "x = torch.ones_like(t, memory_format=torch.channels_last)"),
        ("zeros", {"size": "1, 1, 1, 1, 1", "memory_format": "channels_last_3d"},
         "x = torch.zeros(1, 1, 1, 1, 1).to(memory_format=torch.channels_last_3d)"),
        ("zeros", {"size": "1 1 1 1", "memory_format": "channels_last", "requires_grad": True},
         "x = torch.zeros(1, 1, 1, 1).to(memory_format=torch.channels_last).requires_grad_()"),
        ("ones", {"requires_grad": True, "dtype": "bfloat16"},
         "x = torch.ones(2, 3, dtype=torch.bfloat16, requires_grad=True)"),
        ("ones", {"requires_grad": False, "pin_memory": False}, "x = torch.ones(2, 3)"),
        ("ones", {"low": "3", "wings": "2"}, "x = torch.ones(2, 3)"),
    ],
)  # fmt: skip
def test_the_line_word_for_word(key, typed, line):
    assert python_line(key, "x", typed, AROUND) == line


@pytest.mark.parametrize(
    ("key", "typed", "floats"),
    [
        ("zeros", {}, True),
        ("full", {"fill_value": "1"}, False),
        ("full", {"fill_value": "1.5"}, True),
        ("full", {"fill_value": "1j"}, True),
        ("full", {"fill_value": "True"}, False),
        ("full", {"fill_value": "inf"}, True),
        ("randint", {}, False),
        ("randint_like", {"input": "t"}, True),
        ("randint_like", {"input": "i"}, False),
        ("full_like", {"input": "t", "fill_value": "1"}, True),
        ("full_like", {"input": "i", "fill_value": "1.5"}, False),
        ("zeros_like", {"input": "i"}, False),
        ("zeros_like", {"input": "i", "dtype": "float16"}, True),
        ("eye", {}, True),
        ("arange", {}, False),
        ("arange", {"end": "3.0"}, True),
        ("arange", {"step": "0.5"}, True),
        ("arange", {"start": "1.0"}, True),
        ("linspace", {}, True),
        ("logspace", {}, True),
        ("tensor", {"data": "[]"}, True),
        ("tensor", {"data": "[1, True]"}, False),
        ("tensor", {"data": "[1, 2.5]"}, True),
        ("tensor", {"data": "[2, 1j]"}, True),
        ("tensor", {"data": "[True]"}, False),
        ("tensor(array)", {"array": "[1]"}, False),
        ("tensor(array)", {"array": "[1.0]"}, True),
        ("tensor(array)", {"array": "a"}, True),
    ],
)
def test_gradients_are_for_floats_as_torch_has_it(key, typed, floats):
    typed = {**typed, "requires_grad": True}
    if floats:
        assert made(key, **typed).requires_grad
        return
    with pytest.raises(FieldError) as fault:
        python_line(key, "x", typed, AROUND)
    assert fault.value.field_name == "requires_grad"
    dtype = str(made(key, **{**typed, "requires_grad": False}).dtype).removeprefix("torch.")
    words = f"Only floats and complex numbers have gradients, not {dtype}. Choose a float dtype."
    assert str(fault.value) == words


@pytest.mark.parametrize(
    ("key", "typed", "at", "words"),
    [
        ("zeros", {"size": "2, -1"}, "size", "size cannot be less than 0."),
        ("zeros", {"size": "2, y"}, "size", "size takes whole numbers, not y."),
        ("eye", {"n": ""}, "n", "n takes whole numbers, not nothing."),
        ("eye", {"n": "-1"}, "n", "n cannot be less than 0."),
        ("eye", {"m": "-1"}, "m", "m cannot be less than 0."),
        ("linspace", {"steps": "-1"}, "steps", "steps cannot be less than 0."),
        ("randint", {"high": "0"}, "high", "high must be greater than low, 0: high itself is"
                                           " never drawn."),
        ("full", {"fill_value": "a"}, "fill_value", "a is not a number. inf, nan and 1+2j are."),
        ("full", {"fill_value": "torch.pi"}, "fill_value",
         "torch.pi is not a number. inf, nan and 1+2j are."),
        ("full", {"fill_value": "inf+1"}, "fill_value",
         "inf + 1 is not a number. inf, nan and 1+2j are."),
        ("full", {"fill_value": "1 +"}, "fill_value",
         "fill_value takes a number, such as 0.5, -3, inf or 1+2j."),
        ("tensor", {"data": "'a'"}, "data", "'a' is not a number. inf, nan and 1+2j are."),
        ("tensor", {"data": "["}, "data", "data takes nested lists, such as [[1, 2], [3, 4]]."),
        ("tensor", {"data": "[1, [2]]"}, "data",
         "Entry 1 is a list of 1 and entry 0 is a number: all entries of a list need one shape."),
        ("tensor", {"data": "[[[1], [2]], [3]]"}, "data",
         "Entry 1 is a list of 1 and entry 0 is a list of shape (2, 1): all entries of a list need"
         " one shape."),
        *(("zeros", {"size": typed}, "size", f"size takes sizes such as (2, 3), not {typed}.")
          for typed in ("2, x", "2 x", "x", "2,,3", ",2", "(2, x 3)", ",")),
        ("arange", {"end": "nan"}, "end", "arange counts between finite real numbers."),
        ("arange", {"step": "1j"}, "end", "arange counts between finite real numbers."),
        ("arange", {"start": "True"}, "end", "arange counts between finite real numbers."),
        ("arange", {"step": "-1"}, "step", "A step of -1 does not lead from 0 to 12."),
        ("rand", {"dtype": "int8"}, "dtype",
         "rand makes fractions: choose a float dtype, not int8."),
        ("randn_like", {"input": "i"}, "dtype",
         "randn_like makes fractions: choose a float dtype, not int64."),
        ("zeros", {"size": "2", "memory_format": "channels_last"}, "memory_format",
         "channels_last is an order of 4 dimensions (N, C, H, W); this has 1."),
        ("zeros", {"size": "2", "memory_format": "channels_last_3d"}, "memory_format",
         "channels_last_3d is an order of 5 dimensions (N, C, D, H, W); this has 1."),
        ("ones_like", {"input": "i", "memory_format": "channels_last"}, "memory_format",
         "channels_last is an order of 4 dimensions (N, C, H, W); this has 1."),
        ("zeros", {"pin_memory": True}, "pin_memory",
         "This engine has no CUDA device to pin memory for."),
        ("zeros_like", {"input": ""}, "input", "Choose one of t, i."),
        ("zeros_like", {"input": "u"}, "input", "There is no tensor u. Choose one of t, i."),
        ("from_numpy", {"array": "u"}, "array",
         "There is no NumPy array named u. Type a list: [[1.0, 2.0], [3.0, 4.0]]."),
    ],
)  # fmt: skip
def test_a_fault_word_for_word(key, typed, at, words):
    with pytest.raises(FieldError) as fault:
        python_line(key, "x", typed, AROUND)
    assert (fault.value.field_name, str(fault.value)) == (at, words)


def test_without_tensors_one_is_asked_for_and_of_many_five_are_named():
    with pytest.raises(FieldError, match=r"^Create a tensor first\.$"):
        python_line("zeros_like", "x", {}, Surroundings())
    many = Surroundings(tensors={name: Known((1,), "float32") for name in "abcdefg"})
    with pytest.raises(FieldError, match=r"^Choose one of a, b, c, d, e\.$"):
        python_line("zeros_like", "x", {}, many)


def test_memory_is_pinned_on_the_cpu_of_a_machine_with_a_cuda_device():
    around = Surroundings(devices=("cpu", "cuda:0"))
    for device in ("default", "cpu"):
        line = python_line("zeros", "x", {"pin_memory": True, "device": device}, around)
        assert line.endswith("pin_memory=True)")
    with pytest.raises(FieldError, match=r"^Only memory of the CPU can be pinned\.$") as fault:
        python_line("zeros", "x", {"pin_memory": True, "device": "cuda:0"}, around)
    assert fault.value.field_name == "pin_memory"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "1x",
            "This is not a valid Python name: use letters, digits and _, and do not start"
            " with a digit, such as x or y_2.",
        ),
        (
            "lambda",
            "This is not a valid Python name: use letters, digits and _, and do not"
            " start with a digit, such as x or y_2.",
        ),
        ("np", "np is the name of a library here: choose another."),
        ("nn", "nn is the name of a library here: choose another."),
        ("F", "F is the name of a library here: choose another."),
    ],
)
def test_a_refused_name_word_for_word(name, words):
    with pytest.raises(FieldError) as fault:
        python_line("zeros", name, {}, AROUND)
    assert str(fault.value) == words


def test_spaces_around_a_name_do_not_count():
    assert python_line("ones", " y_2 ", {}, AROUND) == "y_2 = torch.ones(2, 3)"


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("eye", "n"), ("eye", "m"), ("randint", "low"), ("randint", "high"), ("randn", "seed"),
        ("full", "size"), ("full", "fill_value"), ("arange", "start"), ("arange", "end"),
        ("arange", "step"), ("linspace", "steps"), ("logspace", "base"), ("tensor", "data"),
        ("from_numpy", "array"),
    ],
)  # fmt: skip
def test_every_field_says_what_is_wrong_with_it(key, field):
    with pytest.raises(FieldError) as fault:
        python_line(key, "x", {field: "[q"}, AROUND)
    assert fault.value.field_name == field and str(fault.value).startswith(f"{field} takes ")
