"""Whether the saved state of an optimizer fits a live one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .checkpoint_fields import FieldProblem


def check_optimizer_state(
    state: Mapping[int, Mapping[str, Any]],
    parameters: Sequence[nn.Parameter],
    make: Callable[[list[nn.Parameter]], torch.optim.Optimizer],
) -> None:
    """Raise FieldProblem unless each entry is one that the optimizer itself would have: of the same
    name, a tensor where it has one, and of its parameter's shape or a single number.

    `make` makes an optimizer like the live one; it does a step with a parameter of its own. A
    parameter that got no gradient yet has no entry.
    """
    example_parameter = nn.Parameter(torch.zeros(1))
    optimizer = make([example_parameter])
    example_parameter.grad = torch.zeros(1)
    optimizer.step()
    expected = optimizer.state[example_parameter]
    for index, entries in state.items():
        at = f"optimizer.state[{index}]"
        if index >= len(parameters):
            raise FieldProblem(at, f"the model has {len(parameters):,} parameters")
        if missing := expected.keys() - entries.keys():
            raise FieldProblem(at, f"{min(missing)} is missing")
        shape = parameters[index].shape
        for name, example in expected.items():
            entry = entries[name]
            if not isinstance(example, Tensor):
                if type(entry) is not type(example):
                    message = f"a {type(example).__name__} is expected"
                    raise FieldProblem(f"{at}.{name}", message)
            elif not isinstance(entry, Tensor):
                raise FieldProblem(f"{at}.{name}", "a tensor is expected")
            elif entry.shape != (shape if example.dim() else ()):
                wanted = tuple(shape) if example.dim() else ()
                message = f"it has shape {tuple(entry.shape)}, its parameter needs {wanted}"
                raise FieldProblem(f"{at}.{name}", message)
            elif not entry.is_floating_point():
                raise FieldProblem(f"{at}.{name}", f"it has dtype {entry.dtype}")
