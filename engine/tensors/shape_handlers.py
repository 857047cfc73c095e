"""Answers about shapes that meet: broadcasting, reductions, products, indexing.

All of it is reading: outside autograd's graph, without random numbers, at the cost of what shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ..lab import Lab
from ..protocol import (
    BroadcastCommand,
    PickCommand,
    ProductCommand,
    ReductionCommand,
    Snapshot,
)
from . import broadcasting, picking, products, reductions
from .namespace import namespace_of
from .operands import operand


@contextmanager
def _reading() -> Iterator[None]:
    """No graph, and no code of the user's own tensor classes."""
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        yield


def broadcast(lab: Lab, command: BroadcastCommand) -> Iterator[Snapshot]:
    with _reading():
        operands = [operand(namespace_of(lab), text) for text in command.operands]
        answer = broadcasting.broadcast(operands, command.in_place, command.element)
    yield answer


def reduce(lab: Lab, command: ReductionCommand) -> Iterator[Snapshot]:
    with _reading():
        source = operand(namespace_of(lab), command.expression)
        answer = reductions.reduction(
            source, command.op, command.dims, command.keepdim, command.element
        )
    yield answer


def multiply(lab: Lab, command: ProductCommand) -> Iterator[Snapshot]:
    with _reading():
        operands = [operand(namespace_of(lab), text) for text in command.operands]
        answer = products.product(operands, command.op, command.equation, command.element)
    yield answer


def pick(lab: Lab, command: PickCommand) -> Iterator[Snapshot]:
    with _reading():
        answer = picking.pick(namespace_of(lab), command.source, command.element)
    yield answer
