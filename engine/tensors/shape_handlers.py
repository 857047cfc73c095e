"""Answers about shapes that meet: broadcasting, reductions, products, indexing.

All of it is reading: outside autograd's graph, without random numbers, at the cost of what shows.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def broadcast(lab: Lab, command: BroadcastCommand) -> Iterator[Snapshot]:
    with torch.no_grad():
        operands = [operand(namespace_of(lab), text) for text in command.operands]
        yield broadcasting.broadcast(operands, command.in_place, command.element)


def reduce(lab: Lab, command: ReductionCommand) -> Iterator[Snapshot]:
    with torch.no_grad():
        source = operand(namespace_of(lab), command.expression)
        yield reductions.reduction(
            source, command.op, command.dims, command.keepdim, command.element
        )


def multiply(lab: Lab, command: ProductCommand) -> Iterator[Snapshot]:
    with torch.no_grad():
        operands = [operand(namespace_of(lab), text) for text in command.operands]
        yield products.product(operands, command.op, command.equation, command.element)


def pick(lab: Lab, command: PickCommand) -> Iterator[Snapshot]:
    with torch.no_grad():
        yield picking.pick(namespace_of(lab), command.source, command.element)
