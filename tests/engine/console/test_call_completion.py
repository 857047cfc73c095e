"""Names inside a call: its parameters first, and the attributes of what stands in it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.console.call_context import open_call, parameters, returns_tensor
from engine.console.completion import complete
from engine.protocol import CompletionsSnapshot


def own(a, b=2, /, c=3, *rest, flag=False, **more):
    raise AssertionError("completion calls nothing")


VARIABLES = {
    "torch": torch,
    "nn": nn,
    "F": F,
    "np": np,
    "x": torch.zeros(3, 4),
    "xs": [torch.zeros(2)],
    "net": nn.Linear(2, 3),
    "own": own,
}


def completed(source: str) -> CompletionsSnapshot:
    return complete(source, len(source), VARIABLES)


def keywords(source: str) -> list[str]:
    return [c.text for c in completed(source).completions if c.kind == "parameter"]


@pytest.mark.parametrize(
    "source, expected",
    [
        ("torch.cat([x], ", ["dim=", "out="]),
        ("torch.cat([x], d", ["dim="]),
        ("torch.cat([x],\n          d", ["dim="]),
        ("torch.cat(", ["tensors=", "dim=", "out="]),
        ("torch.zeros(2, dty", ["dtype="]),
        ("x.sum(", ["dim=", "keepdim=", "dtype="]),
        ("torch.sum(x, ", ["dtype=", "dim=", "keepdim="]),
        ("x.to(non", ["non_blocking="]),
        ("F.conv2d(x, x, pad", ["padding="]),
        ("F.max_pool2d(x, ke", ["kernel_size="]),
        ("nn.Linear(3, 2, b", ["bias="]),
        ("net(", ["input="]),
        ("own(1, 2, ", ["c=", "flag="]),
        ("own(1, 2, c=4, ", ["flag="]),
        ("own('(', \")\", f", ["flag="]),
        ("own(1, 2, 3,  # (\n fl", ["flag="]),
        ("own(x.sum(1), [1, 2], (3, 4), fl", ["flag="]),
        ("torch.cat([own(1, fl", ["flag="]),
        ("x[own(1, fl", ["flag="]),
    ],
)
def test_parameters_are_offered_where_an_argument_begins(source, expected) -> None:
    assert keywords(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "own(1, x + f",
        "own(flag=",
        "own(flag = f",
        "own([f",
        "x[f",
        "(f",
        "own(1)(f",
        "f",
        "own(1) f",
    ],
)
def test_and_nowhere_else(source) -> None:
    assert keywords(source) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("prin", [("print", "variable")]),
        ("Tru", [("True", "keyword")]),
        ("rang", [("range", "class")]),
    ],
)
def test_a_name_that_is_also_a_builtin_or_a_keyword_is_offered_once(source, expected) -> None:
    found = complete(source, len(source), {"print": 1}).completions
    assert [(c.text, c.kind) for c in found] == expected


def test_separators_of_a_documented_signature_are_no_parameters() -> None:
    """np.add is told as add(x1, x2, /, out=None, *, where=True, ...)."""
    assert "out=" in keywords("np.add(1, 2, ") and "where=" in keywords("np.add(1, 2, ")
    assert "out=" not in keywords("np.add(1, 2, x, ") and "where=" in keywords("np.add(1, 2, x, ")


@pytest.mark.parametrize("source", ["'a'i", "'''a\nb'''i", "print('a')  # b\ni", r"'\'' i"])
def test_a_string_or_comment_that_has_ended_is_no_text(source: str) -> None:
    assert "if" in [c.text for c in completed(source).completions]


def test_names_in_the_same_case_come_first_and_private_ones_only_when_asked_for() -> None:
    variables = {"Net": 1, "net": 2, "_net": 3, "other": 4}

    def names(source: str) -> list[str]:
        found = complete(source, len(source), variables).completions
        return [c.text for c in found if c.text in variables]

    assert names("n") == ["net", "Net"] and names("N") == ["Net", "net"]
    assert names("_") == ["_net"] and names("") == ["other", "net", "Net"]


def test_parameters_come_before_other_names_with_their_defaults() -> None:
    first = completed("torch.cat([x], d").completions[0]
    assert (first.text, first.kind, first.detail) == ("dim=", "parameter", "0")
    assert completed("torch.cat([x], d").start == len("torch.cat([x], ")


@pytest.mark.parametrize(
    "source, expected",
    [
        ("torch.cat([x.vi", "view"),
        ("torch.cat([x], dim=x.nd", "ndim"),
        ("torch.cat([x, xs[0].sha", "shape"),
        ("torch.cat((x, net.wei", "weight"),
        ("x.view(2, 6).squ", "squeeze"),
        ("torch.zeros(2).sum().ite", "item"),
        ("torch.cat([x.sum(1).vi", "view"),
        ("torch.cat([x, x], dim=0).sha", "shape"),
    ],
)
def test_attributes_are_offered_inside_a_call_and_after_one_that_gives_a_tensor(
    source, expected
) -> None:
    assert expected in [c.text for c in completed(source).completions]


@pytest.mark.parametrize("source", ["own(1).vi", "torch.max(x, 1).vi", "x.split(1).vi", "(x).vi"])
def test_what_a_call_gives_is_not_guessed(source) -> None:
    assert completed(source).completions == ()


def test_documented_parameters_are_those_that_torch_takes() -> None:
    """Every name offered for these functions of C is one that torch's own parser knows."""
    x = torch.zeros(2, 3)
    calls = {
        torch.cat: {"tensors": [x]},
        torch.stack: {"tensors": [x]},
        torch.full: {"size": (2,), "fill_value": 1.0},
        torch.linspace: {"start": 0, "end": 1, "steps": 2},
    }
    known = {"dim": 0, "out": None, "dtype": None, "layout": torch.strided, "device": None,
             "requires_grad": False}  # fmt: skip
    for function, needed in calls.items():
        call = open_call("f(")
        assert call is not None
        named = {p.name for p in parameters(function, call)}
        assert set(needed) <= named
        for name in named - set(needed):
            function(**needed, **{name: known[name]})


def test_a_python_function_has_the_parameters_that_inspect_tells() -> None:
    call = open_call("f(")
    assert call is not None
    told = [p.name for p in parameters(F.cross_entropy, call)]
    assert told == list(inspect.signature(F.cross_entropy).parameters)


def test_only_what_is_documented_to_give_one_tensor_does() -> None:
    assert returns_tensor(torch.cat) and returns_tensor(torch.Tensor.view)
    assert not returns_tensor(torch.max) and not returns_tensor(torch.split)
    assert not returns_tensor(own) and not returns_tensor(3)


class Described:
    """Names of every kind."""

    number = 3
    words = property(lambda self: 1 / 0)

    @staticmethod
    def fixed(a: int) -> int:
        return a

    @classmethod
    def made(cls, b: int = 2) -> None:
        return None


class Undocumented:
    def __call__(self) -> None:
        return None

    @property
    def __signature__(self):
        raise ValueError("none")

    __doc__ = None


def long(first_of_many_parameters=1, second_of_many_parameters=2, third_of_many_parameters=3):
    return None


@pytest.mark.parametrize(
    ("source", "kind", "detail"),
    [
        ("torch.nn.funct", "module", "module"),
        ("Descr", "class", "()"),
        ("it.numb", "attribute", ""),
        ("it.word", "attribute", ""),
        ("it.fixe", "function", "(a: 'int') -> 'int'"),
        ("it.mad", "function", "(cls, b: 'int' = 2) -> 'None'"),
        ("cou", "variable", "int"),
        ("x1", "variable", "float32 (2, 3)"),
        ("net1", "variable", "Linear"),
        ("undoc", "function", ""),
        ("lon", "function", f"{str(inspect.signature(long))[:79]}…"),
        ("lambd", "keyword", ""),
    ],
)
def test_a_completion_says_what_it_names(source: str, kind: str, detail: str) -> None:
    variables = {
        "torch": torch, "Described": Described, "it": Described(), "count": 4,
        "x1": torch.ones(2, 3), "net1": nn.Linear(2, 3), "undoc": Undocumented(), "long": long,
    }  # fmt: skip
    first = complete(source, len(source), variables).completions[0]
    assert (first.kind, first.detail) == (kind, detail)
