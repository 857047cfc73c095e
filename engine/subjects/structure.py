"""The structure of any module: its tree, its parameters and buffers, and what each call takes and
gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer
from torch.utils.flop_counter import FlopCounterMode

from ..protocol import ModuleCall, ModuleRow, StructureTotals, WeightRow
from ..tensors.readable import dtype_name
from ..training.batches import tensors_in
from .trial import on_trial
from .written import written

MAX_CALLS = 8
"""As many calls of one module are told; the rest are counted."""
MAX_SHAPES = 8
"""As many tensors of one call are told."""

Calls = dict[str, list[ModuleCall]]


def totals(module: nn.Module) -> StructureTotals:
    """Counts; a lazy parameter, which has no shape yet, counts as 0."""
    parameters = [p for p in module.parameters() if not is_lazy(p)]
    buffers = [b for b in module.buffers() if not is_lazy(b)]
    return StructureTotals(
        modules=sum(1 for _ in module.modules()),
        parameters=sum(p.numel() for p in parameters),
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        parameter_bytes=sum(p.nbytes for p in parameters),
        buffers=sum(b.numel() for b in buffers),
        buffer_bytes=sum(b.nbytes for b in buffers),
    )


def module_rows(module: nn.Module, calls: Calls | None = None) -> list[ModuleRow]:
    """A row for every module in the order of `named_modules`, the subject itself first.

    A module that stands under several names has a row for each. A lazy module's parameters without
    a shape yet count as 0.
    """
    rows = []
    for path, part in module.named_modules(remove_duplicate=False):
        own = [p for p in part.parameters() if not is_lazy(p)]
        seen = (calls or {}).get(path, [])
        rows.append(
            ModuleRow(
                path=path,
                type=type(part).__name__,
                parameters=sum(p.numel() for p in own),
                parameter_bytes=sum(p.nbytes for p in own),
                trainable=sum(p.numel() for p in own if p.requires_grad),
                calls=tuple(seen[:MAX_CALLS]),
                call_count=len(seen),
                macs=sum(call.macs for call in seen),
                code=written(module, path),
                training=part.training,
            )
        )
    return rows


def weight_rows(
    module: nn.Module, optimizers: Mapping[str, Optimizer] | None = None
) -> list[WeightRow]:
    """A row for every name of a parameter or buffer, in the order of the state_dict; `shared_with`
    names the other names of the same tensor, and `fed_by` those of the optimizers that hold it. A
    lazy one has no shape yet, and no elements."""
    named: list[tuple[str, str, Tensor]] = []
    for kind, pairs in (
        ("parameter", module.named_parameters(remove_duplicate=False)),
        ("buffer", module.named_buffers(remove_duplicate=False)),
    ):
        named += [(name, kind, tensor) for name, tensor in pairs]
    names: dict[int, list[str]] = {}
    for name, _, tensor in named:
        names.setdefault(id(tensor), []).append(name)
    fed_by: dict[int, list[str]] = {}
    for name, optimizer in (optimizers or {}).items():
        for tensor in {id(p): p for group in optimizer.param_groups for p in group["params"]}:
            fed_by.setdefault(tensor, []).append(name)
    kept = module.state_dict().keys()
    order = {name: place for place, name in enumerate(kept)}
    named.sort(key=lambda row: order.get(row[0], len(order)))
    return [
        msgspec.structs.replace(
            _weight_row(name, kind, tensor, names[id(tensor)]),
            persistent=name in kept,
            fed_by=tuple(fed_by.get(id(tensor), ())),
            code=written(module, name),
        )
        for name, kind, tensor in named
    ]


def unregistered(module: nn.Module) -> tuple[str, ...]:
    """The attributes that hold modules with parameters, or parameters, in a plain list, tuple or
    dict: torch does not know these, so they are not trained, moved or saved with the module."""
    known = {id(part) for part in (*module.modules(), *module.parameters())}

    def is_lost(value: object) -> bool:
        if isinstance(value, nn.Module):
            return id(value) not in known and next(value.parameters(), None) is not None
        return isinstance(value, nn.Parameter) and id(value) not in known

    found = []
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            values = value.values() if isinstance(value, dict) else value
            if isinstance(value, list | tuple | dict) and any(map(is_lost, values)):
                found.append(f"{path}.{name}" if path else name)
    return tuple(found)


def optimizers_among(variables: Mapping[str, Any]) -> dict[str, Optimizer]:
    """The optimizers among the variables, by name."""
    return {name: value for name, value in list(variables.items()) if isinstance(value, Optimizer)}


def _weight_row(name: str, kind: str, tensor: Tensor, names: list[str]) -> WeightRow:
    lazy = is_lazy(tensor)
    mean, std = (None, None) if lazy else mean_and_std(tensor.detach())
    return WeightRow(
        name=name,
        kind="parameter" if kind == "parameter" else "buffer",
        shape=() if lazy else tuple(tensor.shape),
        dtype=dtype_name(tensor.dtype),
        device=str(tensor.device),
        elements=0 if lazy else tensor.numel(),
        bytes=0 if lazy else tensor.nbytes,
        trainable=tensor.requires_grad,
        shared_with=tuple(other for other in names if other != name),
        mean=mean,
        std=std,
    )


def mean_and_std(tensor: Tensor) -> tuple[float | None, float | None]:
    """The mean and torch's own (unbiased) standard deviation, in float64; None where torch has
    none: complex numbers, no elements, and for the deviation one element only."""
    if tensor.is_complex() or tensor.numel() == 0 or tensor.is_meta or tensor.is_quantized:
        return None, None
    numbers = tensor.double()
    std = float(numbers.std()) if numbers.numel() > 1 else None
    return float(numbers.mean()), std


def calls_in(module: nn.Module, run: Callable[[], object]) -> Calls:
    """The calls of each module while `run()` runs, by path, in the order in which they end.

    The step runs as it would in training, but changes nothing: buffers, gradients of no parameter
    and torch's random state on the CPU are as before. (What the user's own code changes besides
    cannot be undone.) Raises whatever `run` raises.
    """
    calls: Calls = {}
    counter = FlopCounterMode(display=False)
    hooks = []
    try:
        for path, part in module.named_modules():
            begun: list[int] = []

            def before(part: nn.Module, args: Any, kwargs: Any, begun=begun) -> None:
                begun.append(counter.get_total_flops())

            def after(
                part: nn.Module, args: Any, kwargs: Any, result: Any, path=path, begun=begun
            ) -> None:
                flops = counter.get_total_flops() - begun.pop()
                call = ModuleCall(_shapes((args, kwargs)), _shapes(result), flops // 2)
                calls.setdefault(path, []).append(call)

            hooks.append(part.register_forward_pre_hook(before, with_kwargs=True))
            hooks.append(part.register_forward_hook(after, with_kwargs=True))
        with on_trial(module), torch.random.fork_rng(devices=[]), counter:
            run()
    finally:
        for hook in hooks:
            hook.remove()
    return calls


def _shapes(value: object) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(tensor.shape) for tensor in islice(tensors_in(value), MAX_SHAPES))
