"""Answers about broadcasting, reductions, products and indexing.

The answers build no graph and draw no random numbers, and read no more elements than are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from msgspec.structs import replace

from ..lab import Lab
from ..operations.failures import Call, CallTensor, failed_operands
from ..operations.failures.explained_line import line_operands
from ..operations.shapes import broadcasting, picking, products, reductions
from ..operations.shapes.operands import operand
from ..protocol import (
    BroadcastCommand,
    PickCommand,
    ProductCommand,
    ReductionCommand,
    Snapshot,
)
from ..tensors.readable import dtype_name


@contextmanager
def _reading() -> Iterator[None]:
    """No graph is built in this context, and no code of the user's own tensor classes runs."""
    with torch.no_grad(), torch.DisableTorchFunctionSubclass():
        yield


def broadcast(lab: Lab, command: BroadcastCommand) -> Iterator[Snapshot]:
    with _reading():
        operands = [operand(lab.console.namespace, text) for text in command.operands]
        answer = broadcasting.broadcast(operands, command.in_place, command.element)
    yield answer


def reduce(lab: Lab, command: ReductionCommand) -> Iterator[Snapshot]:
    with _reading():
        source = operand(lab.console.namespace, command.expression)
        answer = reductions.reduction(
            source, command.op, command.dims, command.keepdim, command.element
        )
        if answer.error is not None:
            seen = CallTensor(source.text, source.shape, dtype_name(source.dtype))
            call = Call(command.op, [seen], {}, answer.error.message)
            answer = replace(answer, error=replace(answer.error, operands=failed_operands(call)))
    yield answer


def multiply(lab: Lab, command: ProductCommand) -> Iterator[Snapshot]:
    with _reading():
        operands = [operand(lab.console.namespace, text) for text in command.operands]
        answer = products.product(operands, command.op, command.equation, command.element)
    yield answer


def pick(lab: Lab, command: PickCommand) -> Iterator[Snapshot]:
    with _reading():
        namespace = lab.console.namespace
        answer = picking.pick(namespace, command.source, command.element)
        if answer.error is not None:
            drawn = line_operands(command.source, namespace.variables, answer.error.message)
            answer = replace(answer, error=replace(answer.error, operands=drawn))
    yield answer
