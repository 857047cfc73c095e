"""The operands of an explained line's operation that torch refuses."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ...protocol import FailedOperands
from ...system.errors import LabError
from ..explain.reading import read
from ..explain.steps import Step, Term, with_terms
from .call import Call, CallTensor
from .marks import failed_operands
from .reading import MAX_READ, call_tensor


def step_operands(step: Step, message: str, ran: bool) -> FailedOperands | None:
    """The operands of a step that torch refuses with `message`. If the step has not been run
    (`ran`), only the numbers of indices are computed, as for a prediction."""

    def seen(term: Term) -> CallTensor:
        layout = term.layout
        is_index = term is not step.operands[0] and layout.dtype in (torch.int64, torch.int32)
        if ran:
            return call_tensor(term.compute(), term.text)
        numbers = term.read(MAX_READ) if is_index else None
        if numbers is not None:
            return call_tensor(numbers, term.text)
        dtype = str(layout.dtype).removeprefix("torch.")
        return CallTensor(term.text, layout.shape, dtype, layout.device, layout.stride)

    args, kwargs = with_terms([*step.args], seen), with_terms(dict(step.kwargs), seen)
    return failed_operands(Call(step.operation, args, kwargs, message))


def line_operands(
    source: str, variables: Mapping[str, object], message: str
) -> FailedOperands | None:
    """The operands of a line's last operation, which torch refuses with `message`; None for a line
    that cannot be explained."""
    try:
        return step_operands(read(source, variables)[-1], message, ran=True)
    except LabError:
        return None
