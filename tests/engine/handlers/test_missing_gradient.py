"""Why a gradient is missing, on the ready mistakes and others."""

from __future__ import annotations

import pytest

from engine.project.examples import mistakes
from engine.protocol import (
    ErrorSnapshot,
    RunCellCommand,
    WhyNoGradientCommand,
    WhyNoGradientSnapshot,
)
from engine.server.session import Session


def ask(code: str, name: str, root: str = "loss"):
    answers: list = []
    session = Session(answers.append)
    session.handle(RunCellCommand(source=code))
    session.handle(WhyNoGradientCommand(name=name, root=root))
    return next(
        a for a in reversed(answers) if isinstance(a, WhyNoGradientSnapshot | ErrorSnapshot)
    )


REASONS = {
    "detached": ("cut", "`h` by detach() (line 3: h = (w * 3).detach())"),
    "item": ("no_path", "item()"),
    "integer": ("integer", "`i` is int64"),
    "unused": ("no_path", "loss was computed without it"),
    "late": ("late", "(line 3: loss = (w * b).sum())"),
    "not_a_leaf": ("not_leaf", "MulBackward0"),
}


def test_every_mistake_without_a_gradient_is_explained():
    assert {key for key, mistake in mistakes().items() if mistake.missing} == set(REASONS)


@pytest.mark.parametrize("key", REASONS)
def test_the_reason_is_the_true_one(key):
    mistake = mistakes()[key]
    told = ask(mistake.wrong, mistake.missing, mistake.root)
    reason, words = REASONS[key]
    assert told.reason == reason and words in told.text and told.hint
    right = ask(mistake.right, mistake.missing, mistake.root)
    assert right.reason == "has_gradient"


def test_under_no_grad():
    code = """
w = torch.ones(2, requires_grad=True)
b = torch.ones(2, requires_grad=True)
with torch.no_grad():
    h = w * 3
loss = (h * b).sum()
"""
    told = ask(code, "w")
    assert (
        told.reason == "cut" and "`h` under no_grad" in told.text and told.cut.reason == "no_grad"
    )


def test_backward_has_not_been_called():
    code = "w = torch.ones(2, requires_grad=True)\nloss = (w * w).sum()\n"
    told = ask(code, "w")
    assert told.reason == "not_yet" and told.node is not None
    assert ask(code, "w", root="").reason == "not_yet"


def test_data_does_not_require_grad():
    code = "w = torch.ones(2, requires_grad=True)\nx = torch.ones(2)\nloss = (w * x).sum()\n"
    told = ask(code, "x")
    assert told.reason == "not_required" and "x.requires_grad_()" in told.hint


def test_what_cannot_be_asked():
    assert ask("x = 3", "x").error.type == "LabError"
    code = "w = torch.ones(2, requires_grad=True)\nloss = 3.0\n"
    assert "loss" in ask(code, "w").error.message
