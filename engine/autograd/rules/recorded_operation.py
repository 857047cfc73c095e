"""The recorded call of a node, which can be run again with changed arguments, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...recording.argument_values import KeptTensor, OtherArgument
from ...recording.recording import Call
from ...system.private_torch import OpOverload
from ..graph.reading import Node


class CannotCheck(Exception):
    """No check is possible. The message says why, `hint` what to do. With `unrecorded`, a trace of
    the code would make it possible."""

    def __init__(self, message: str, hint: str = "", unrecorded: bool = False) -> None:
        super().__init__(message)
        self.hint, self.unrecorded = hint, unrecorded


@dataclass
class Argument:
    """A tensor argument that the node may have an input for; `value` is None if not given."""

    value: Tensor | None


class Operation:
    """The recorded call, which can be run again with changed arguments."""

    def __init__(self, call: Call, func: Any) -> None:
        self.func = func
        self.arguments: list[Argument] = []
        """The tensors that autograd may differentiate by, in the order of the node's inputs."""
        schema = self.func._schema.arguments
        names = [argument.name for argument in schema]
        given = dict(zip(names, call.args, strict=False)) | call.kwargs
        self._given = {
            argument.name: self._take(given[argument.name], "Tensor" in str(argument.type))
            for argument in schema
            if argument.name in given
        }
        self._by_name = {a.name for a in schema if a.kwarg_only}

    def _take(self, value: Any, is_tensor: bool) -> Any:
        if isinstance(value, KeptTensor):
            if value.tensor is None:
                raise CannotCheck(f"A value of forward was not kept: {value.note}.")
            t = value.tensor.detach()
            if not (t.is_floating_point() or t.is_complex()):
                return t
            found = Argument(t.to(torch.promote_types(t.dtype, torch.float64)))
            self.arguments.append(found)
            return found
        if isinstance(value, list | tuple) and is_tensor:
            return [self._take(item, True) for item in value]
        if isinstance(value, torch.dtype) and value.is_floating_point:
            return torch.float64
        if is_tensor:
            self.arguments.append(Argument(None))
        return value

    def run(self) -> list[Tensor]:
        """The results, on copies of the arguments: the operation may write to them."""
        given = {name: _copied(value) for name, value in self._given.items()}
        by_name = {name: given.pop(name) for name in self._by_name if name in given}
        result = self.func(*given.values(), **by_name)
        return [t for t in tensors_in(result) if t.is_floating_point() or t.is_complex()]


class _CustomFunction(Operation):
    """A Python Function: its node has an input for each tensor argument."""

    def __init__(self, call: Call, function: type[torch.autograd.Function]) -> None:
        self.func = function.apply
        self.arguments = []
        self._given = {str(i): self._take(value, False) for i, value in enumerate(call.args)}
        self._by_name = set()

    def _take(self, value: Any, is_tensor: bool) -> Any:
        found = super()._take(value, is_tensor)
        if isinstance(found, Tensor):  # an integer tensor: the node has an input for it too
            found = Argument(found)
            self.arguments.append(found)
        if isinstance(found, OtherArgument):
            raise CannotCheck(f"An argument of type {found.text} was not kept.")
        return found


def operation_of(node: Node, call: Call | None) -> Operation:
    """The operation that made the node. Raises CannotCheck if it was not recorded with its values,
    or is not a single operator."""
    if node.is_leaf:
        raise CannotCheck("A leaf has no rule: its gradient is added to .grad.")
    if call is None or call.result is None:
        raise CannotCheck(
            "The operation that made this node was not recorded with its values.",
            "Trace the code: that records its values. Then step backward here again. The model's"
            " batch is always recorded, and the tab Derivatives checks any function by gradcheck.",
            unrecorded=True,
        )
    if node.is_custom:
        return _CustomFunction(call, type(node.fn)._forward_cls)
    if call.kind != "op" or not isinstance(call.func, OpOverload):
        raise CannotCheck(
            f"{call.name} is not a single operator of torch, so it cannot be run again alone.",
            "Check a Python function with gradcheck in the tab Derivatives.",
        )
    return Operation(call, call.func)


def _copied(value: Any) -> Any:
    """A copy of an argument of a call. An `Argument` becomes a copy of its tensor."""
    if isinstance(value, Argument):
        return None if value.value is None else value.value.clone()
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in a result, in order."""
    if isinstance(value, KeptTensor):
        return [] if value.tensor is None else [value.tensor]
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [t for item in value for t in tensors_in(item)]
    return []
