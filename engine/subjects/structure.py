"""The structure of any module: its tree, its parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from ..protocol import Histogram, ModuleRow, StructureTotals, WeightRow
from ..recording.compiled import class_name, own_modules, own_path
from ..tensors.readable import dtype_name
from .calls import Calls
from .written import written

MAX_CALLS = 8
"""The most calls of one module that are sent; the rest are counted."""
BINS = 24
"""Bins of a histogram that stands in a cell of a table."""


def totals(module: nn.Module) -> StructureTotals:
    """Counts; a lazy parameter, which has no shape yet, counts as 0."""
    parameters = [p for p in module.parameters() if not is_lazy(p)]
    buffers = [b for b in module.buffers() if not is_lazy(b)]
    return StructureTotals(
        modules=sum(1 for _ in own_modules(module)),
        parameters=sum(p.numel() for p in parameters),
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        parameter_bytes=sum(p.nbytes for p in parameters),
        buffers=sum(b.numel() for b in buffers),
        buffer_bytes=sum(b.nbytes for b in buffers),
    )


def module_rows(module: nn.Module, calls: Mapping[str, Calls] | None = None) -> list[ModuleRow]:
    """A row for every module in the order of `named_modules`, the subject itself first.

    A module that stands under several names has a row for each. A lazy module's parameters without
    a shape yet count as 0.
    """
    rows = []
    for path, part, full_path in own_modules(module, remove_duplicate=False):
        own = [p for p in part.parameters() if not is_lazy(p)]
        of_module = (calls or {}).get(full_path, Calls())
        seen = of_module.calls
        rows.append(
            ModuleRow(
                path=path,
                type=class_name(part),
                parameters=sum(p.numel() for p in own),
                parameter_bytes=sum(p.nbytes for p in own),
                trainable=sum(p.numel() for p in own if p.requires_grad),
                calls=tuple(seen[:MAX_CALLS]),
                call_count=len(seen),
                macs=sum(call.macs for call in seen),
                kept_bytes=of_module.kept_bytes,
                ms=sum(call.ms for call in seen),
                code=written(module, full_path),
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
        names.setdefault(id(tensor), []).append(own_path(name))
    fed_by: dict[int, list[str]] = {}
    for name, optimizer in (optimizers or {}).items():
        for tensor in {id(p): p for group in optimizer.param_groups for p in group["params"]}:
            fed_by.setdefault(tensor, []).append(name)
    kept = module.state_dict().keys()
    order = {name: place for place, name in enumerate(kept)}
    named.sort(key=lambda row: order.get(row[0], len(order)))
    return [
        msgspec.structs.replace(
            _weight_row(own_path(name), kind, tensor, names[id(tensor)]),
            persistent=name in kept,
            fed_by=tuple(fed_by.get(id(tensor), ())),
            code=written(module, name),
        )
        for name, kind, tensor in named
    ]


def unregistered(module: nn.Module) -> tuple[str, ...]:
    """The attributes that hold modules with parameters, or parameters, in a plain list, tuple or
    dict, or in one that is in it: torch does not know these, so they are not trained, moved or
    saved with the module."""
    known = _registered(module)
    return tuple(
        path
        for path, value in _attributes(module)
        if isinstance(value, list | tuple | dict)
        and any(id(part) not in known for part in hidden_in(value))
    )


def bare_tensors(module: nn.Module) -> tuple[str, ...]:
    """The attributes that are leaf tensors which require a gradient, but not parameters: these
    too are unknown to torch."""
    known = _registered(module)
    return tuple(
        path
        for path, value in _attributes(module)
        if isinstance(value, Tensor) and _learns(value) and id(value) not in known
    )


def hidden_in(collection: object) -> Iterator[nn.Module | Tensor]:
    """The modules with parameters, the parameters, and other leaf tensors that require a gradient,
    in a list, tuple or dict and in those that it holds."""
    waiting, seen = [collection], set[int]()
    while waiting:
        held = waiting.pop()
        if id(held) in seen:
            continue
        seen.add(id(held))
        for value in list(held.values() if isinstance(held, dict) else cast(list, held)):
            if isinstance(value, list | tuple | dict):
                waiting.append(value)
            elif isinstance(value, nn.Module):
                if next(value.parameters(), None) is not None:
                    yield value
            elif isinstance(value, Tensor) and _learns(value):
                yield value


def _registered(module: nn.Module) -> set[int]:
    """The ids of the modules, parameters and buffers that torch knows."""
    return {id(part) for part in (*module.modules(), *module.parameters(), *module.buffers())}


def _attributes(module: nn.Module) -> Iterator[tuple[str, object]]:
    """The attributes of the module and its parts, by path."""
    for path, part in module.named_modules():
        for name, value in list(vars(part).items()):
            yield own_path(f"{path}.{name}" if path else name), value


def _learns(tensor: Tensor) -> bool:
    return isinstance(tensor, nn.Parameter) or (tensor.is_leaf and tensor.requires_grad)


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
        histogram=None if lazy else histogram(tensor.detach()),
        gradient=None if tensor.grad is None else _norm(tensor.grad.detach()),
    )


def _norm(tensor: Tensor) -> float:
    """The 2-norm, in float64."""
    numbers = tensor.coalesce().values() if tensor.is_sparse else tensor
    return float(torch.linalg.vector_norm(numbers.abs().double()))


def histogram(tensor: Tensor) -> Histogram | None:
    """The finite elements in BINS equal bins between the least and the greatest, counted by
    torch.histc (which takes 1 to either side where both are the same); None for complex numbers,
    and where no element is finite."""
    if tensor.is_complex() or tensor.is_meta or tensor.is_quantized:
        return None
    numbers = tensor.double().flatten()
    numbers = numbers[numbers.isfinite()]
    if not numbers.numel():
        return None
    low, high = (float(end) for end in torch.aminmax(numbers))
    if low == high:
        low, high = low - 1, high + 1
    counts = torch.histc(numbers, BINS, low, high).long()
    return Histogram(low, (high - low) / BINS, tuple(counts.tolist()))


def mean_and_std(tensor: Tensor) -> tuple[float | None, float | None]:
    """The mean and torch's own (unbiased) standard deviation, in float64; None where torch has
    none: complex numbers, no elements, and for the deviation one element only."""
    if tensor.is_complex() or tensor.numel() == 0 or tensor.is_meta or tensor.is_quantized:
        return None, None
    numbers = tensor.double()
    std = float(numbers.std()) if numbers.numel() > 1 else None
    return float(numbers.mean()), std
