"""The batch that a program is written from, and with which it is compared: taken from a run of the
live model, in several sizes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..compiled import add_forward_hook, add_forward_pre_hook, own_modules, uncompiled, unwrapped
from ..errors import LabError
from ..random_states import torch_states_kept
from ..verifier.values import Case, ModuleCall, is_plain, leaves

BATCH_SIZES = (1, 2, 5)
"""The batch sizes with which a program is compared, besides that of the example."""
TIMED_CALLS = 5
_SEED = 0


class Example(NamedTuple):
    """The arguments of a call of the model; `size` is the number of samples in them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    size: int

    def of_size(self, size: int) -> Example:
        """The same call with another number of samples: the first ones, again and again."""
        rows = torch.arange(size) % self.size
        changed = self._changed(lambda tensor: tensor[rows] if self.has_batch(tensor) else tensor)
        return changed._replace(size=size)

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


def still_copy(module: nn.Module) -> nn.Module:
    """A copy on the CPU in eval mode, without torch.compile's outermost module. Its parameters
    require gradients as the module's do, and so do those of a program made from it: it can be
    trained. Raises LabError for a module that cannot be copied."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, of programs that were opened
            return copy.deepcopy(unwrapped(module)).cpu().eval()
    except Exception as error:  # the user's modules may hold anything
        raise LabError(
            f"The model cannot be copied: {type(error).__name__}: {error}",
            hint="Keep tensors that have a graph, open files and generators out of the module.",
        ) from error


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
    """The module's outputs on the example in several sizes; a size that it does not take itself is
    left out. Raises what the module raises on the example as it is."""
    sizes = sorted({*BATCH_SIZES, example.size})
    cases = []
    for size in sizes:
        try:
            cases.append(_case(module, example.of_size(size)))
        except Exception:
            if size == example.size:
                raise
    return cases


def _case(module: nn.Module, example: Example) -> Case:
    outputs, others = (_outputs(module, example, seed) for seed in (_SEED, _SEED + 1))
    drawn = [
        x.shape != y.shape or not torch.equal(x.nan_to_num(), y.nan_to_num())
        for x, y in zip(outputs, others, strict=True)
    ]
    return Case(example.size, example.args, example.kwargs, outputs, drawn, _SEED)


def _outputs(module: nn.Module, example: Example, seed: int) -> list[Tensor]:
    with torch.no_grad(), torch_states_kept(), uncompiled():
        torch.manual_seed(seed)
        output = module(*_detached(example.args), **_detached(example.kwargs))
    return [leaf.detach().clone() for leaf in leaves(output)]


def names_of_outputs(module: nn.Module, example: Example) -> list[str]:
    """The names for a file: the keys of a dict, else `output` or `output_0`, `output_1`, ..."""
    with torch.no_grad(), torch_states_kept(), uncompiled():
        output = module(*_detached(example.args), **_detached(example.kwargs))
    if isinstance(output, Mapping) and all(isinstance(v, Tensor) for v in output.values()):
        return [str(key) for key in output]
    count = len(leaves(output))
    return ["output"] if count == 1 else [f"output_{n}" for n in range(count)]


def seconds_of(module: nn.Module, case: Case) -> float:
    """The time of one call, the shortest of some."""
    times = []
    with torch.no_grad(), torch_states_kept(), uncompiled():
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

    def hook(path: str) -> Callable[..., None]:
        def see(part: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            number = numbers.get(path, 0)
            numbers[path] = number + 1
            if is_plain(args) and is_plain(kwargs):
                outputs = [leaf.detach().clone() for leaf in leaves(output)]
                calls.append(ModuleCall(path, number, args, kwargs, outputs))

        return see

    handles = [
        add_forward_hook(part, hook(path), with_kwargs=True)
        for path, part, _ in own_modules(module)
        if not isinstance(part, torch.jit.ScriptModule) or not path
    ]
    try:
        with torch.no_grad(), torch_states_kept(), uncompiled():
            torch.manual_seed(case.seed)
            module(*case.args, **case.kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _detached(value: Any) -> Any:
    """The value with its tensors as copies on the CPU: the model may write into them."""
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if type(value) is dict:
        return {key: _detached(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_detached(item) for item in value)
    return value
