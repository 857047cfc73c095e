"""Operands that torch refused to add."""

from __future__ import annotations

from engine.protocol import FailedOperand, FailedOperands

OPERANDS = FailedOperands(
    "broadcast",
    "add",
    (
        FailedOperand("x", (3, 4), (0, 1), (1,), "float32", "cpu"),
        FailedOperand("y", (3,), (1,), (0,), "float32", "cpu"),
    ),
    ("-2", "-1"),
    "x has 4, y has 3: neither is 1.",
)
