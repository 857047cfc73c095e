"""The line of Python beside a derivative computes that derivative."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from engine.autograd.derivatives.code import code_of
from engine.protocol import DerivativeCommand


def product(a: Tensor, b: Tensor) -> Tensor:
    return a.sin() * b


def energy(a: Tensor, b: Tensor) -> Tensor:
    return (a**3 * b).sum()


def square(a: Tensor) -> Tensor:
    return a.square()


def ran(command: DerivativeCommand) -> tuple[dict[str, Any], str]:
    a = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    b = torch.tensor([3.0, 0.25, -2.0], dtype=torch.float64)
    names = {"torch": torch, "product": product, "energy": energy, "square": square}
    names |= {"a": a, "b": b, "v": torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64)}
    code = code_of(command)
    exec(code, names)
    return names, code


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("argument", [0, 1])
def test_a_jacobian_is_torchs(mode: Any, argument: int) -> None:
    command = DerivativeCommand(
        kind="jacobian", function="product", inputs=("a", "b"), argument=argument, mode=mode
    )
    names, code = ran(command)
    a, b = names["a"], names["b"]
    assert torch.equal(names["J"], torch.diag(a.cos() * b if argument == 0 else a.sin()))
    assert ("jacrev" if mode == "reverse" else "jacfwd") in code
    assert ("argnums" in code) == (argument == 1)


@pytest.mark.parametrize("argument", [0, 1])
def test_a_hessian_is_torchs(argument: int) -> None:
    names, _ = ran(
        DerivativeCommand(kind="hessian", function="energy", inputs=("a", "b"), argument=argument)
    )
    a, b = names["a"], names["b"]
    expected = torch.diag(6 * a * b) if argument == 0 else torch.zeros(3, 3, dtype=a.dtype)
    torch.testing.assert_close(names["H"], expected)


@pytest.mark.parametrize("vector", ["", "v"])
@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize(
    ("function", "inputs", "argument"),
    [("square", ("a",), 0), ("product", ("a", "b"), 0), ("product", ("a", "b"), 1)],
)
def test_products_with_a_vector_are_torchs(
    kind: Any, function: str, inputs: tuple[str, ...], argument: int, vector: str
) -> None:
    """The Jacobian of these functions is a diagonal, so both products are the same numbers."""
    names, _ = ran(
        DerivativeCommand(
            kind=kind, function=function, inputs=inputs, argument=argument, vector=vector
        )
    )
    a, b = names["a"], names["b"]
    by = {("square", 0): 2 * a, ("product", 0): a.cos() * b, ("product", 1): a.sin()}
    v = names["v"] if vector else torch.ones_like(a)
    torch.testing.assert_close(names[kind], by[function, argument] * v)


@pytest.mark.parametrize("vector", ["", "v"])
@pytest.mark.parametrize("argument", [0, 1])
def test_a_hessian_times_a_vector_is_torchs(argument: int, vector: str) -> None:
    names, _ = ran(
        DerivativeCommand(
            kind="hvp", function="energy", inputs=("a", "b"), argument=argument, vector=vector
        )
    )
    a, b = names["a"], names["b"]
    v = names["v"] if vector else torch.ones_like(a)
    torch.testing.assert_close(names["hvp"], 6 * a * b * v if argument == 0 else 0 * a)


def test_a_function_that_is_an_expression_is_called_whole() -> None:
    names, code = ran(
        DerivativeCommand(kind="vjp", function=" lambda t: t.exp() ", inputs=(" a ",))
    )
    torch.testing.assert_close(names["vjp"], names["a"].exp())
    assert "(lambda t: t.exp())(a)" in code


def test_without_a_function_it_is_of_the_model_and_a_sample() -> None:
    command = DerivativeCommand(kind="jacobian")
    assert code_of(command) == "J = torch.func.jacrev(model)(x[:1])"
