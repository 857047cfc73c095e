"""A model that torch.compile has compiled, for the time of a forward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from ...system.errors import LabError
from ...system.private_torch import COMPILERS, dynamo_config, dynamo_counters

OPTIONS: dict[str, str | int | bool | Any] = {"fallback_random": True}
"""Dropout draws the numbers that it draws uncompiled."""


class Compiled(AbstractContextManager[None]):
    """In `with compiled:`, calls of the model run what torch.compile makes of it, and a call for
    which it would silently go back to Python raises."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._call = torch.compile(_called(model), options=OPTIONS)
        self._strict = dynamo_config().patch(fail_on_recompile_limit_hit=True)
        self._before = _counts()

    def __enter__(self) -> None:
        self._strict.__enter__()
        self._model._compiled_call_impl = self._call

    def __exit__(self, *exception: Any) -> None:
        self._model._compiled_call_impl = None
        self._strict.__exit__(*exception)

    def words(self) -> str:
        """The graphs compiled so far, in words: "compiled: 1 graph"."""
        graphs, breaks = (now - then for now, then in zip(_counts(), self._before, strict=True))
        if not graphs:
            return "nothing was compiled: the step does not call the model itself"
        text = f"compiled: {graphs} graph{'s' * (graphs > 1)}"
        return f"{text}, {breaks} break{'s' * (breaks > 1)}" if breaks else text


def _called(model: nn.Module) -> Callable[..., Any]:
    """The model's call as a function of this file: torch.compile passes over calls that begin in
    torch's own files, as those of nn.Sequential do."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return model._call_impl(*args, **kwargs)

    return call


def _counts() -> tuple[int, int]:
    """How many graphs torch has compiled in this process, and how many breaks there were."""
    counters = dynamo_counters()
    breaks: Counter = counters["graph_break"]
    return counters["stats"]["unique_graphs"], sum(breaks.values())


def compile_problem(error: Exception) -> LabError | None:
    """Words for an error of torch.compile's own; None for any other."""
    kind = type(error)
    if not kind.__module__.startswith(COMPILERS):
        return None
    text = str(error).strip().partition("\n")[0]
    inner = getattr(error, "inner_exception", None) or error.__cause__
    if "C++ compiler" in str(error) or type(inner).__name__ == "InvalidCxxCompiler":
        return LabError(
            "torch.compile needs a C++ compiler, and finds none that works.",
            hint="Install g++ or clang (Debian: apt install g++), or turn compile off under More.",
        )
    if kind.__name__ == "FailOnRecompileLimitHit":
        return LabError(
            "torch.compile compiled the model again and again, for every other input, and gave up.",
            hint="Give batches of the same shape (drop_last), or turn compile off under More.",
        )
    return LabError(
        f"torch.compile cannot compile this model: {kind.__name__}: {text}",
        hint="Turn compile off under More, or change the operation that it names.",
    )
