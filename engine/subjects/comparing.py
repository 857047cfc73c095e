"""Two modules, or one before and after: what differs in structure, numbers and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..protocol import ModuleDifference, OutputDifference, WeightDifference
from ..recording.compiled import (
    add_forward_hook,
    add_forward_pre_hook,
    class_name,
    own_modules,
    own_path,
    uncompiled,
)
from ..restoring.module_kept import ModuleState, module_kept
from ..restoring.random_states import torch_states_kept
from ..system.private_torch import tree_map_only
from ..tensors.readable import dtype_name
from ..training.objectives.batches import tensors_in

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Kept = nn.Module | ModuleState
"""A module as it is, or as it was when its state was kept."""


def module_differences(before: Kept, after: Kept) -> list[ModuleDifference]:
    """The modules that only one has, or whose class differs, in the order of `named_modules`; those
    that only `before` has come last."""
    old = _classes(before)
    new = _classes(after)
    paths = [*new, *(path for path in old if path not in new)]
    pairs = [ModuleDifference(path, old.get(path, ""), new.get(path, "")) for path in paths]
    return [pair for pair in pairs if pair.before != pair.after]


def weight_differences(before: Kept, after: Kept) -> tuple[list[WeightDifference], int]:
    """The parameters and buffers that only one has, or that differ in kind, shape, dtype or
    numbers; and how many are equal."""
    old, new = _weights(before), _weights(after)
    found = []
    for name in [*new, *(name for name in old if name not in new)]:
        pair = old.get(name), new.get(name)
        told = [None if each is None else _told(*each) for each in pair]
        difference = None
        if pair[0] is not None and pair[1] is not None and told[0] == told[1]:
            difference = max_difference(pair[0][1], pair[1][1])
            if difference == 0.0:
                continue
        found.append(WeightDifference(name, told[0] or "", told[1] or "", difference))
    return found, len(new.keys() & old.keys()) - sum(1 for d in found if d.before and d.after)


def max_difference(a: Tensor, b: Tensor) -> float | None:
    """The largest |a - b| of two tensors of one shape and dtype, in float64; two NaN, and two equal
    infinities, do not differ. None where torch has no numbers to compare."""
    a, b = a.detach(), b.detach()
    if a.is_meta or b.is_meta or is_lazy(a) or is_lazy(b):
        return None
    if a.layout != torch.strided:
        a, b = a.to_dense(), b.to_dense()
    if a.is_quantized:
        a, b = a.dequantize(), b.dequantize()
    wide = torch.complex128 if a.is_complex() else torch.float64
    a, b = a.to("cpu", wide), b.to("cpu", wide)
    apart = (a - b).abs()[~((a == b) | (a.isnan() & b.isnan()))]
    return float(apart.max()) if apart.numel() else 0.0


def arguments_in(module: nn.Module, run: Callable[[], object]) -> Arguments | None:
    """Copies of the arguments of the first call of the module while `run()` runs; None if it is not
    called. Nothing is changed."""
    found: list[Arguments] = []

    def keep(_: nn.Module, args: Any, kwargs: Any) -> None:
        if not found:
            found.append((_copied(args), _copied(kwargs)))

    handle = add_forward_pre_hook(module, keep, with_kwargs=True)
    try:
        with module_kept(module), torch_states_kept(), uncompiled():
            run()
    finally:
        handle.remove()
    return found[0] if found else None


def output_differences(before: Kept, after: Kept, arguments: Arguments) -> list[OutputDifference]:
    """Call both with the same arguments and random numbers, each in its own mode, and compare the
    outputs of all their modules in the order in which calls end in `after`. Nothing is changed.
    Calls that only `before` has come last. Raises what their forwards raise."""
    outputs: dict[tuple[str, int], list[Tensor]] = {}

    def keep(path: str, call: int, result: object) -> None:
        outputs[path, call] = [tensor.detach().clone() for tensor in tensors_in(result)]

    found: list[OutputDifference] = []

    def compare(path: str, call: int, result: object) -> None:
        new = list(tensors_in(result))
        old = outputs.pop((path, call), None)
        told = [None if each is None else _shapes(each) for each in (old, new)]
        difference = None
        if old is not None and told[0] == told[1]:
            each = [max_difference(a, b) for a, b in zip(old, new, strict=True)]
            known = [value for value in each if value is not None]
            unequal = [value for value in known if value != value]  # NaN
            difference = unequal[0] if unequal else max(known, default=0.0)
        found.append(OutputDifference(path, call, told[0] or "", told[1] or "", difference))

    for each, told in ((before, keep), (after, compare)):
        args, kwargs = _copied(arguments)
        with ExitStack() as around:
            module = around.enter_context(_as_kept(each))
            around.enter_context(_outputs_told(module, told))
            around.enter_context(module_kept(module, training=None))
            around.enter_context(uncompiled())
            around.enter_context(torch.no_grad())
            around.enter_context(torch_states_kept())
            module(*args, **kwargs)
    left = [OutputDifference(*key, _shapes(tensors), "") for key, tensors in outputs.items()]
    return [*found, *left]


@contextmanager
def _outputs_told(module: nn.Module, told: Callable[[str, int, object], None]) -> Iterator[None]:
    """In this context each call of a part calls `told(path, its number from 1, its result)`."""
    with ExitStack() as hooks:
        for path, part, _ in own_modules(module):
            counts = [0]

            def after(part: nn.Module, args: Any, result: Any, path=path, counts=counts) -> None:
                counts[0] += 1
                told(path, counts[0], result)

            hooks.callback(add_forward_hook(part, after).remove)
        yield


@contextmanager
def _as_kept(kept: Kept) -> Iterator[nn.Module]:
    if isinstance(kept, ModuleState):
        with kept:
            yield kept.module
    else:
        yield kept


def _classes(kept: Kept) -> dict[str, str]:
    with _as_kept(kept) as module:
        named = own_modules(module, remove_duplicate=False)
        return {path: class_name(part) for path, part, _ in named}


def _weights(kept: Kept) -> dict[str, tuple[str, Tensor]]:
    with _as_kept(kept) as module:
        parameters = list(module.named_parameters(remove_duplicate=False))
        buffers = list(module.named_buffers(remove_duplicate=False))
    return {
        **{own_path(name): ("parameter", tensor) for name, tensor in parameters},
        **{own_path(name): ("buffer", tensor) for name, tensor in buffers},
    }


def _told(kind: str, tensor: Tensor) -> str:
    """`(3, 4) float32`, and what else tells a parameter from another."""
    shape = "no shape yet" if is_lazy(tensor) else str(tuple(tensor.shape))
    frozen = ", frozen" if kind == "parameter" and not tensor.requires_grad else ""
    return f"{shape} {dtype_name(tensor.dtype)}{', buffer' if kind == 'buffer' else frozen}"


def _shapes(tensors: list[Tensor]) -> str:
    return ", ".join(f"{tuple(t.shape)} {dtype_name(t.dtype)}" for t in tensors) or "no tensor"


def _copied(value: Any) -> Any:
    """The same with copies of its tensors: a forward may write into them."""
    return tree_map_only(Tensor, lambda tensor: tensor.detach().clone(), value)
