"""Activation checkpointing: modules that keep only their inputs for the backward pass, and compute
the rest again in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from ...system.errors import LabError


def recomputed(module: nn.Module) -> Callable[..., Any]:
    """A forward of the module that keeps only its inputs: `torch.utils.checkpoint`, with the
    module's own buffers left alone the second time (BatchNorm would count a batch twice)."""
    forward = module.forward

    @contextmanager
    def second_time() -> Iterator[None]:
        own = [(part, dict(part._buffers)) for part in module.modules()]
        for part, buffers in own:
            for name, buffer in buffers.items():
                part._buffers[name] = None if buffer is None else buffer.clone()
        try:
            yield
        finally:
            for part, buffers in own:
                part._buffers.update(buffers)

    def with_less_memory(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        run = partial(forward, **kwargs)
        contexts = lambda: (nullcontext(), second_time())  # noqa: E731
        return checkpoint(run, *args, use_reentrant=False, context_fn=contexts)

    return with_less_memory


def outermost(paths: Sequence[str]) -> tuple[str, ...]:
    """The modules that are not inside another one of them."""
    return tuple(path for path in paths if not any(path.startswith(f"{other}.") for other in paths))


class Recomputing(AbstractContextManager[None]):
    """In `with recomputing:`, the modules of `model` at these paths keep only their inputs. A
    module inside another one of them is a part of it. Raises LabError for a path without a module.
    """

    def __init__(self, model: nn.Module, paths: Sequence[str]) -> None:
        self.modules = [_module(model, path) for path in outermost(paths)]
        self._forwards = [recomputed(module) for module in self.modules]
        self._before: list[Any] = []

    def __enter__(self) -> None:
        self._before = [module.__dict__.get("forward") for module in self.modules]
        for module, forward in zip(self.modules, self._forwards, strict=True):
            module.__dict__["forward"] = forward

    def __exit__(self, *exception: object) -> None:
        for module, before in zip(self.modules, self._before, strict=True):
            if before is None:
                module.__dict__.pop("forward", None)
            else:
                module.__dict__["forward"] = before


def _module(model: nn.Module, path: str) -> nn.Module:
    try:
        module = model.get_submodule(path)
    except AttributeError:
        names = ", ".join(name for name, _ in model.named_children()) or "none"
        raise LabError(
            f"The model has no module “{path}” whose activations could be computed again.",
            hint=f"Take it off under More. Its modules are: {names}.",
        ) from None
    if isinstance(module, torch.jit.ScriptModule):
        raise LabError(
            f"“{path}” is a TorchScript module, which always keeps its activations.",
            hint="Take it off under More.",
        )
    return module
