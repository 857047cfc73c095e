"""The function `step` of the user's own code, by the arguments that it takes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.handlers.subjects.code import CodeModel
from engine.system.errors import LabError


def step_of(own: Callable[..., Any], module: Any) -> Any:
    asked: Any = SimpleNamespace(own_step=own, module=module, _is_step_written=False)
    step, source = CodeModel._step(asked, lambda: pytest.fail("its step needs no data"))
    assert source == ""
    return step


def test_it_takes_the_batch_or_the_model_too() -> None:
    layer, x = torch.nn.Linear(3, 1), torch.ones(2, 3)
    assert step_of(lambda batch: batch.sum(), layer)(x) == 6

    def both(model: Any, batch: Any, scale: float = 2.0) -> Any:
        return scale * model(batch)

    assert step_of(both, layer)(x).equal(2 * layer(x))


@pytest.mark.parametrize("own", [lambda: 0, lambda a, b, c: 0])
def test_with_other_arguments_it_is_refused(own: Callable[..., Any]) -> None:
    with pytest.raises(LabError, match=r"takes [03] arguments") as told:
        step_of(own, None)
    assert told.value.hint == "Write step(batch) or step(model, batch)."
