"""The operands of an operation in a line that is explained, where torch refuses it."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ...errors import LabError
from ...protocol import FailedOperands
from ..explain.reading import read
from ..explain.steps import Step, Term, with_terms
from .call import Call, Seen
from .marks import failed_operands
from .reading import MAX_READ, seen_tensor


def step_operands(step: Step, message: str, ran: bool) -> FailedOperands | None:
    """Of one operation, refused with `message`. Before it `ran`, of its operands only the numbers
    of an index are computed, as the rules do that predict what is picked."""

    def seen(term: Term) -> Seen:
        layout = term.layout
        is_index = term is not step.operands[0] and layout.dtype in (torch.int64, torch.int32)
        if ran:
            return seen_tensor(term.compute(), term.text)
        numbers = term.read(MAX_READ) if is_index else None
        if numbers is not None:
            return seen_tensor(numbers, term.text)
        dtype = str(layout.dtype).removeprefix("torch.")
        return Seen(term.text, layout.shape, dtype, layout.device, layout.stride)

    args, kwargs = with_terms([*step.args], seen), with_terms(dict(step.kwargs), seen)
    return failed_operands(Call(step.operation, args, kwargs, message))


def line_operands(
    source: str, variables: Mapping[str, object], message: str
) -> FailedOperands | None:
    """Of a line whose last operation torch refuses with `message`; None where no rule reads it."""
    try:
        return step_operands(read(source, variables)[-1], message, ran=True)
    except LabError:
        return None
