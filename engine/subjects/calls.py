"""The calls of each module in one recorded step: arguments, results, memory for backward and
cost."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Any

import torch
from msgspec.structs import replace
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from ..protocol import ModuleCall
from ..recording.compiled import uncompiled
from ..restoring.module_kept import module_kept
from ..restoring.random_states import torch_states_kept
from ..system.errors import LabError
from ..training.objectives.batches import tensors_in

MAX_SHAPES = 8
"""The most tensors of one call that are sent."""


@dataclass
class Calls:
    """The calls of a module in the order in which they end, and the bytes that autograd keeps for
    their backward, each storage once over all of them; None if that cannot be known."""

    calls: list[ModuleCall] = field(default_factory=list)
    kept_bytes: int | None = 0


def calls_in(module: nn.Module, run: Callable[[], object]) -> dict[str, Calls]:
    """The calls of each module while `run()` runs, by path.

    `run()` runs twice with the same random numbers: once to count, and once, without what it
    prints, to measure the time of each call: counting would take most of the time of small calls.
    A module that the second run calls another number of times has no times. The step runs as it
    would in training, but changes nothing: buffers, gradients of no parameter and torch's random
    state on the CPU are as before. (What the user's own code changes besides cannot be undone.)
    Raises whatever `run` raises, and LabError for TorchScript, whose calls no hook sees.
    """
    if any(isinstance(part, torch.jit.ScriptModule) for part in module.modules()):
        raise LabError("TorchScript runs its modules without Python, so no call can be looked at.")
    try:
        counted = _counted(module, run, keeps=True)
    except RuntimeError as error:
        if "saved tensor hooks" not in str(error):  # torch.func has none in its transforms
            raise
        counted = _counted(module, run, keeps=False)
    with contextlib.redirect_stdout(io.StringIO()):
        times = _times(module, run)
    for path, of_module in counted.items():
        measured = times.get(path, [])
        if len(measured) == len(of_module.calls):  # else the step's own chance chose other calls
            pairs = zip(of_module.calls, measured, strict=True)
            of_module.calls = [replace(call, ms=ms) for call, ms in pairs]
    return counted


def _counted(module: nn.Module, run: Callable[[], object], keeps: bool) -> dict[str, Calls]:
    """The calls of each module, without their times."""
    counter = FlopCounterMode(display=False)
    counter.mod_tracker = _NoModules()  # pyright: ignore[reportAttributeAccessIssue]
    kept = _Kept(module)
    found: dict[str, Calls] = {}
    storages: dict[str, set[int]] = {}

    def before(path: str) -> tuple[int, set[int]]:
        return counter.get_total_flops(), kept.enter()

    def after(path: str, begun: tuple[int, set[int]], taken: object, result: object) -> None:
        flops, own = begun
        kept.leave(own)
        storages.setdefault(path, set()).update(own)
        macs = (counter.get_total_flops() - flops) // 2
        bytes_kept = kept.bytes_of(own) if keeps else None
        call = ModuleCall(_shapes(taken), _shapes(result), macs, bytes_kept)
        found.setdefault(path, Calls()).calls.append(call)

    saving = saved_tensors_hooks(kept.save, lambda tensor: tensor) if keeps else nullcontext()
    with _hooked(module, before, after), _looked_at(module), counter, saving:
        run()
    for path, of_module in found.items():
        of_module.kept_bytes = kept.bytes_of(storages[path]) if keeps else None
    return found


class _NoModules(nullcontext):
    """In place of the counter's own look at modules, whose hooks on their inputs let no
    torch.autograd.grad run that asks for the gradient of such an input."""

    parents = frozenset({"Global"})


def _times(module: nn.Module, run: Callable[[], object]) -> dict[str, list[float]]:
    """The milliseconds of each call by the wall clock, by path."""
    cuda = {p.device for p in module.parameters() if p.is_cuda}
    times: dict[str, list[float]] = {}

    def now(path: str) -> float:
        for device in cuda:
            torch.cuda.synchronize(device)
        return perf_counter()

    def after(path: str, start: float, taken: object, result: object) -> None:
        times.setdefault(path, []).append((now(path) - start) * 1e3)

    with _hooked(module, now, after), _looked_at(module):
        run()
    return times


class _Kept:
    """The storages that autograd keeps while calls run, without those of parameters and buffers."""

    def __init__(self, module: nn.Module) -> None:
        self._own = {id(_storage(part)) for part in (*module.parameters(), *module.buffers())}
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._open: list[set[int]] = []

    def enter(self) -> set[int]:
        """A call begins. Returns the set that gets the storages kept during it."""
        self._open.append(set())
        return self._open[-1]

    def leave(self, own: set[int]) -> None:
        """This call has ended; a call inside that raised an error has not."""
        while (inner := self._open.pop()) is not own:
            own |= inner
        if self._open:
            self._open[-1].update(own)

    def save(self, tensor: Tensor) -> Tensor:
        """A hook on what autograd saves."""
        storage = _storage(tensor)
        if self._open and storage is not None and id(storage) not in self._own:
            self._storages[id(storage)] = storage
            self._open[-1].add(id(storage))
        return tensor.detach()

    def bytes_of(self, storages: set[int]) -> int:
        return sum(self._storages[key].nbytes() for key in storages)


def _storage(tensor: Tensor) -> torch.UntypedStorage | None:
    try:
        return tensor.untyped_storage()
    except Exception:  # layouts without a storage raise errors of several types
        return None


@contextmanager
def _hooked(
    module: nn.Module,
    before: Callable[[str], Any],
    after: Callable[[str, Any, object, object], None],
) -> Iterator[None]:
    """In this context each call of a part calls `before(path)` and, once it has ended,
    `after(path, what before gave, its arguments, its result)`."""
    with contextlib.ExitStack() as hooks:
        for path, part in module.named_modules():
            begun: list[Any] = []

            def enter(part: nn.Module, args: Any, path=path, begun=begun) -> None:
                begun.append(before(path))

            def leave(
                part: nn.Module, args: Any, kwargs: Any, result: Any, path=path, begun=begun
            ) -> None:
                after(path, begun.pop(), (args, kwargs), result)

            hooks.callback(part.register_forward_pre_hook(enter).remove)
            hooks.callback(part.register_forward_hook(leave, with_kwargs=True).remove)
        yield


@contextmanager
def _looked_at(module: nn.Module) -> Iterator[None]:
    with module_kept(module), torch_states_kept(), uncompiled():
        yield


def _shapes(value: object) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(tensor.shape) for tensor in islice(tensors_in(value), MAX_SHAPES))
