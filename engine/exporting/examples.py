"""The batch that a program is written from, and with which it is compared: taken from a run of the
live model, in several sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..recording.compiled import (
    add_forward_hook,
    add_forward_pre_hook,
    own_modules,
    uncompiled,
    unwrapped,
)
from ..restoring.module_kept import ModuleState
from ..restoring.random_states import states_kept
from ..system.errors import LabError
from ..training.checks.untouched import untouched
from ..verifier.jobs import Entry
from ..verifier.values import Case, ModuleCall, entry, is_plain, leaves

BATCH_SIZES = (1, 2, 5)
"""The batch sizes with which a program is compared, besides that of the example."""
INPUTS = 3
"""With so many different inputs at least, as far as the model takes them."""
TIMED_CALLS = 5
_SEED = 0


class Example(NamedTuple):
    """The arguments of a call of the model; `size` is the number of samples in them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    size: int

    def of_size(self, size: int, first: int = 0) -> Example:
        """The same call with another number of samples: those from the `first` one on, again and
        again."""
        rows = (torch.arange(size) + first) % self.size
        changed = self._changed(lambda tensor: tensor[rows] if self.has_batch(tensor) else tensor)
        return changed._replace(size=size)

    def other(self, number: int) -> Example:
        """The same call with other numbers (`number` 0: with the same): those of each sample moved
        along the last dimension, and those with a fraction halved `number` times, which is exact in
        every dtype: the same call cast before or after."""

        def other(tensor: Tensor) -> Tensor:
            if not self.has_batch(tensor):
                return tensor
            moved = tensor.roll(number, -1) if tensor.ndim > 1 else tensor
            return moved * 0.5**number if moved.is_floating_point() else moved

        return self._changed(other) if number else self

    def cast(self, dtype: torch.dtype) -> Example:
        """The same call with the numbers with a fraction in a dtype."""
        return self._changed(
            lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor
        )

    def _changed(self, change: Callable[[Tensor], Tensor]) -> Example:
        def changed(value: Any) -> Any:
            if isinstance(value, Tensor):
                return change(value)
            if isinstance(value, dict):
                return {key: changed(item) for key, item in value.items()}
            if isinstance(value, tuple | list):
                return type(value)(changed(item) for item in value)
            return value

        return Example(changed(self.args), changed(self.kwargs), self.size)

    def has_batch(self, tensor: Tensor) -> bool:
        """Whether dimension 0 of a tensor counts the samples."""
        return tensor.ndim > 0 and len(tensor) == self.size

    @property
    def tensors(self) -> list[Tensor]:
        return [leaf for leaf in leaves([self.args, self.kwargs]) if leaf.ndim]


@contextmanager
def still(module: nn.Module, dtype: str = "") -> Iterator[nn.Module]:
    """In this context the user's module itself, without torch.compile's outermost one, is in eval
    mode, on the CPU, and in the dtype if there is one; then it is as it was, whatever has run.

    Another dtype or device is that of its parameters and buffers. What only a closure or a plain
    attribute holds is not cast, as by `module.to`.
    """
    own = unwrapped(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of programs that were opened
        tensors = (*own.parameters(), *own.buffers())
        if dtype or any(tensor.device.type != "cpu" for tensor in tensors):
            with ModuleState(own, dtype=getattr(torch, dtype) if dtype else None, device="cpu"):
                yield own.eval()
        else:
            with untouched(own, training=False):
                yield own


def captured(module: nn.Module, run: Callable[[], object]) -> Example:
    """The first call of the module in `run()`. Raises LabError if there is none, or if it has other
    arguments than tensors, numbers and texts; and whatever `run` raises."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def see(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not calls:
            calls.append((_detached(args), _detached(kwargs)))

    handle = add_forward_pre_hook(module, see, with_kwargs=True)
    try:
        run()
    finally:
        handle.remove()
    if not calls:
        raise LabError(
            "The step does not call the model itself, so its inputs are not known.",
            hint="Call model(x), not model.forward(x) or a part of it.",
        )
    return example_of(*calls[0])


def example_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Example:
    """Raises LabError for arguments that no program takes."""
    for value in (*args, *kwargs.values()):
        if not is_plain(value):
            raise LabError(
                f"The model is called with a {type(value).__name__}.",
                hint="Programs take tensors, numbers and texts, in tuples, lists and dicts.",
            )
    tensors = [leaf for leaf in leaves([args, dict(kwargs)]) if leaf.ndim]
    if not tensors:
        raise LabError("The model is called without a tensor.", hint="Give it one.")
    return Example(args, dict(kwargs), len(tensors[0]))


def cases_of(module: nn.Module, example: Example) -> list[Case]:
    """The module's outputs on the example in several sizes, each time on other numbers; what it
    does not take itself is left out. Raises what the module raises on the example as it is."""
    others = [size for size in BATCH_SIZES if size != example.size]
    cases = [_case(module, example)]
    for number, size in enumerate([*others, *[example.size] * (INPUTS - 1)], start=1):
        for inputs in (example.of_size(size, number).other(number % INPUTS), example.of_size(size)):
            with suppress(Exception):  # of the user's module, which may refuse these
                cases.append(_case(module, inputs))
                break
    return sorted(cases, key=lambda case: case.batch_size)


def _case(module: nn.Module, example: Example) -> Case:
    outputs, others = (_outputs(module, example, seed) for seed in (_SEED, _SEED + 1))
    drawn = [
        x.shape != y.shape or not torch.equal(x.nan_to_num(), y.nan_to_num())
        for x, y in zip(outputs, others, strict=True)
    ]
    return Case(example.size, example.args, example.kwargs, outputs, drawn, _SEED)


def _outputs(module: nn.Module, example: Example, seed: int) -> list[Tensor]:
    with torch.no_grad(), states_kept(), uncompiled():
        torch.manual_seed(seed)
        output = module(*_detached(example.args), **_detached(example.kwargs))
    return [leaf.detach().clone() for leaf in leaves(output)]


def names_of_outputs(module: nn.Module, example: Example) -> list[str]:
    """The names for a file: the keys of a dict, else `output` or `output_0`, `output_1`, ..."""
    with torch.no_grad(), states_kept(), uncompiled():
        output = module(*_detached(example.args), **_detached(example.kwargs))
    if isinstance(output, Mapping) and all(isinstance(v, Tensor) for v in output.values()):
        return [str(key) for key in output]
    count = len(leaves(output))
    return ["output"] if count == 1 else [f"output_{n}" for n in range(count)]


def seconds_of(module: nn.Module, case: Case) -> float:
    """The time of one call, the shortest of some."""
    times = []
    with torch.no_grad(), states_kept(), uncompiled():
        for _ in range(TIMED_CALLS):
            begun = perf_counter()
            module(*case.args, **case.kwargs)
            times.append(perf_counter() - begun)
    return min(times)


def calls_of(module: nn.Module, case: Case) -> list[ModuleCall]:
    """Every call of a module inside, in the order in which they end; the whole model is the last.
    Calls with other arguments than plain values are left out."""
    calls: list[ModuleCall] = []
    numbers: dict[str, int] = {}

    def see(path: str, args: Any, kwargs: Any, output: Any) -> None:
        number = numbers.get(path, 0)
        numbers[path] = number + 1
        if is_plain(args) and is_plain(kwargs):
            outputs = [leaf.detach().clone() for leaf in leaves(output)]
            calls.append(ModuleCall(path, number, args, kwargs, outputs))

    _run_seen(module, case, case.seed, see)
    return calls


def first_random(module: nn.Module, case: Case) -> str | None:
    """The path of the first module that gives two outputs for one input in two runs, "" for the
    whole model; None if there is none to be seen."""
    runs: list[list[tuple[str, list[Entry], list[Entry]]]] = []
    for seed in (case.seed, case.seed + 1):
        calls: list[tuple[str, list[Entry], list[Entry]]] = []

        def see(path: str, args: Any, kwargs: Any, output: Any, calls=calls) -> None:
            inputs, outputs = leaves([args, dict(kwargs)]), leaves(output)
            calls.append((path, [*map(entry, inputs)], [*map(entry, outputs)]))

        _run_seen(module, case, seed, see)
        runs.append(calls)
    for (path, given, made), (other, *others) in zip(*runs, strict=False):
        if path == other and [given] == others[:1] and [made] != others[1:]:
            return path
    return None


def _run_seen(module: nn.Module, case: Case, seed: int, see: Callable[..., None]) -> None:
    """Run the module; `see(path, args, kwargs, output)` as each call of a module in it ends."""

    def hook(path: str) -> Callable[..., None]:
        return lambda _, args, kwargs, output: see(path, args, kwargs, output)

    handles = [
        add_forward_hook(part, hook(path), with_kwargs=True)
        for path, part, _ in own_modules(module)
        if not isinstance(part, torch.jit.ScriptModule) or not path
    ]
    try:
        with torch.no_grad(), states_kept(), uncompiled():
            torch.manual_seed(seed)
            module(*case.args, **case.kwargs)
    finally:
        for handle in handles:
            handle.remove()


def _detached(value: Any) -> Any:
    """The value with its tensors as copies on the CPU: the model may write into them."""
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if type(value) is dict:
        return {key: _detached(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_detached(item) for item in value)
    return value
