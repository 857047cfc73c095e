"""A pass copied as code: in a new console it leaves the same gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from engine.lab import Lab
from engine.protocol import (
    MoveBackwardCommand,
    ReadBackwardCodeCommand,
    StartBackwardCommand,
)
from engine.server.session import handler_of
from engine.system.errors import LabError
from tests.engine.autograd.backward.test_roots import ask, console
from tests.engine.handlers.test_backward_handlers import begun

CELLS = (
    "torch.manual_seed(4)",
    "x = torch.randn(2, 3, requires_grad=True)",
    "unrelated = 12",
    "w = torch.randn(3, 3, requires_grad=True); h = x @ w",
    "y = h.tanh().sum()",
    "z = (h * h).sum()",
)


def code(lab: Lab) -> str:
    return ask(handler_of(ReadBackwardCodeCommand)(lab, ReadBackwardCodeCommand()))[-1].text


def stepped(lab: Lab, **options: Any) -> str:
    """The code of a pass with these options that has run to its end."""
    for command in (StartBackwardCommand(**options), MoveBackwardCommand(move="end")):
        ask(handler_of(type(command))(lab, command))
    return code(lab)


def run(source: str) -> dict[str, Any]:
    variables: dict[str, Any] = {"torch": torch}
    with torch.random.fork_rng(devices=[]):
        exec(source, variables)
    return variables


@pytest.mark.parametrize(
    ("options", "call"),
    [
        ({"root": "y"}, "y.backward()"),
        ({"root": "y", "create_graph": True}, "y.backward(create_graph=True)"),
        ({"root": "y + z"}, "(y + z).backward()"),
        ({"root": "h", "gradient": "2"}, "h.backward(torch.full_like(h, 2))"),
        (
            {"root": "h", "gradient": "[[1, 2, 3], [4, 5, 6]]"},
            "h.backward(torch.as_tensor([[1, 2, 3], [4, 5, 6]], dtype=(h).dtype,"
            " device=(h).device))",
        ),
        ({"root": "y, z"}, "torch.autograd.backward([y, z])"),
        (
            {"root": "y, h", "gradient": "None, torch.ones_like(h)"},
            "torch.autograd.backward([y, h], [None, torch.ones_like(h)])",
        ),
        (
            {"root": "y", "real_engine": True, "retain_graph": True},
            "y.backward(retain_graph=True)",
        ),
        ({"root": "y", "real_engine": True}, "y.backward()"),
    ],
)
def test_the_code_leaves_the_same_gradients(options: dict[str, Any], call: str) -> None:
    lab = console(*CELLS)
    text = stepped(lab, **options)
    assert text.splitlines()[-1] == call
    assert "unrelated" not in text
    plain = run(text)
    for name in ("x", "w"):
        assert torch.equal(plain[name].grad, lab.console.namespace.variables[name].grad), name


def test_gradients_of_chosen_inputs_are_returned() -> None:
    lab = console(*CELLS)
    text = stepped(lab, root="y", inputs=("w", "h"))
    *_, call = text.splitlines()
    assert call == "torch.autograd.grad([y], [w, h], allow_unused=True)"
    variables = run(text.replace(call, f"result = {call}"))
    gradients: tuple[Tensor, ...] = variables["result"]
    for name, gradient in zip(("w", "h"), gradients, strict=True):
        mine = lab.backward.require().gradient_of(name)
        assert mine is not None and torch.equal(mine, gradient)
    assert variables["x"].grad is None


def test_a_pass_that_does_not_start_at_variables_is_refused() -> None:
    lab, _ = begun()
    ask(handler_of(StartBackwardCommand)(lab, StartBackwardCommand()))
    with pytest.raises(LabError, match="starts at variables of the console"):
        code(lab)
    lab = console(*CELLS)
    stepped(lab, root="y", create_graph=True)
    ask(handler_of(StartBackwardCommand)(lab, StartBackwardCommand(of="x")))
    with pytest.raises(LabError, match="starts at variables of the console"):
        code(lab)
