"""The values that a function of torch.nn.init would give, tried on copies."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..protocol import InitialValues
from ..restoring.random_states import torch_states_kept
from ..system.errors import LabError
from .structure import mean_and_std


def preview(function: str, arguments: str, tensors: Mapping[str, Tensor]) -> list[InitialValues]:
    """The mean and deviation of each tensor after `torch.nn.init.FUNCTION(tensor, ARGUMENTS)`, one
    after the other, with the random numbers that torch would draw next. The tensors and torch's
    random state stay as they are. Raises LabError if there is no such function, or if the
    arguments are not constants."""
    initialise = getattr(nn.init, function, None) if function.endswith("_") else None
    if initialise is None:
        raise LabError(f"torch.nn.init has no function `{function}`.", hint="Choose another one.")
    given, named = _constants(arguments)
    rows = []
    with torch_states_kept(), torch.no_grad():
        for name, tensor in tensors.items():
            try:
                if is_lazy(tensor):
                    raise ValueError("It has no shape yet.")
                copy = tensor.detach().clone()
                initialise(copy, *given, **named)
                rows.append(InitialValues(name, *mean_and_std(copy)))
            except Exception as error:  # torch.nn.init raises errors of many types
                rows.append(InitialValues(name, problem=f"{type(error).__name__}: {error}"))
    return rows


def _constants(arguments: str) -> tuple[list[Any], dict[str, Any]]:
    """The values of `0.0, std=0.02`. Raises LabError for anything else than constants."""
    try:
        call = ast.parse(f"f({arguments})", mode="eval").body
        assert isinstance(call, ast.Call)
        given = [ast.literal_eval(value) for value in call.args]
        return given, {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise LabError(
            f"`{arguments}` is not a list of constants.", hint="Write numbers or names: std=0.02."
        ) from None
