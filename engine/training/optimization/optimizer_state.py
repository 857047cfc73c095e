"""Whether the saved state of an optimizer and of its scheduler fits live ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from ...project.document import ParamValue
from ...tensors.plain import described
from ..checkpoints.checkpoint_fields import FieldProblem, Number
from ..components.optimizers import Group


def check_optimizer_state(
    state: Mapping[int, Mapping[str, Any]],
    parameters: Sequence[nn.Parameter],
    groups: Sequence[Group],
    make: Callable[[Sequence[Group]], torch.optim.Optimizer],
) -> None:
    """Raise FieldProblem unless each entry is one that the optimizer itself would have: of the same
    name, a tensor where it has one, and of its parameter's shape or a single number.

    The state's numbers count `parameters`; `groups` have the options of each. `make` makes an
    optimizer like the live one, which does a step with a small parameter of as many dimensions. A
    parameter that got no gradient yet has no entry.
    """
    if isinstance(make(groups), torch.optim.LBFGS):
        _check_lbfgs(state, sum(parameter.numel() for parameter in parameters))
        return
    expected: dict[tuple[int, int], tuple[torch.Size, dict[str, Any]]] = {}
    of = {id(p): number for number, group in enumerate(groups) for p in group.parameters}
    for index, entries in state.items():
        at = f"optimizer.state[{index}]"
        if index >= len(parameters):
            raise FieldProblem(at, f"the model has {len(parameters):,} parameters")
        shape = parameters[index].shape
        key = len(shape), of[id(parameters[index])]
        if key not in expected:
            expected[key] = _example_state(
                len(shape), parameters[index].device, groups[key[1]].options, make
            )
        small, examples = expected[key]
        if missing := examples.keys() - entries.keys():
            raise FieldProblem(at, f"{min(missing)} is missing")
        for name, example in examples.items():
            entry = entries[name]
            if not isinstance(example, Tensor):
                if type(entry) is not type(example):
                    message = f"a {type(example).__name__} is expected"
                    raise FieldProblem(f"{at}.{name}", message)
                continue
            wanted = torch.Size(
                shape[i] if i < len(small) and size == small[i] else size
                for i, size in enumerate(example.shape)
            )
            if not isinstance(entry, Tensor):
                raise FieldProblem(f"{at}.{name}", "a tensor is expected")
            if entry.shape != wanted:
                message = f"it has shape {tuple(entry.shape)}, its parameter needs {tuple(wanted)}"
                raise FieldProblem(f"{at}.{name}", message)
            if not entry.is_floating_point():
                raise FieldProblem(f"{at}.{name}", f"it has dtype {entry.dtype}")


def _example_state(
    ndim: int,
    device: torch.device,
    options: Mapping[str, ParamValue],
    make: Callable[[Sequence[Group]], torch.optim.Optimizer],
) -> tuple[torch.Size, dict[str, Any]]:
    """The shape of a small parameter, each dimension of another size, and its state. It is on the
    device of the run: some options, such as `capturable`, need a GPU."""
    parameter = nn.Parameter(torch.zeros([2 + i for i in range(ndim)], device=device))
    optimizer = make([Group(options, [parameter])])
    parameter.grad = torch.zeros_like(parameter)
    if isinstance(optimizer, torch.optim.SparseAdam):
        parameter.grad = parameter.grad.to_sparse()
    optimizer.step()
    return parameter.shape, optimizer.state[parameter]


def _check_lbfgs(state: Mapping[int, Mapping[str, Any]], elements: int) -> None:
    """LBFGS keeps one entry for all parameters: numbers, and vectors of all their elements."""
    for index, entries in state.items():
        at = f"optimizer.state[{index}]"
        if index:
            raise FieldProblem(at, "LBFGS has one entry for all parameters")
        for name in ("d", "prev_flat_grad", "old_dirs", "old_stps"):
            entry = entries.get(name)
            for vector in entry if isinstance(entry, list) else [entry]:
                if not isinstance(vector, Tensor) or vector.shape != (elements,):
                    raise FieldProblem(f"{at}.{name}", f"{elements:,} numbers are expected")


_SCHEDULED = ("lr", "initial_lr", "momentum", "betas", "max_lr", "min_lr")


def scheduler_state(scheduler: LRScheduler | None) -> dict[str, Number | list[Number]]:
    """The numbers that a scheduler keeps between its steps; empty without a scheduler. The rest of
    its state is in the set-up."""
    kept = {}
    for prefix, part in _parts(scheduler):
        for name, entry in part.state_dict().items():
            numbers = entry if isinstance(entry, list) else [entry]
            if all(isinstance(number, int | float) for number in numbers):
                kept[f"{prefix}{name}"] = entry
    return kept


def _parts(scheduler: LRScheduler | None) -> list[tuple[str, LRScheduler]]:
    """A scheduler, and those that it runs, with prefixes of their entries."""
    if scheduler is None:
        return []
    inner = getattr(scheduler, "_schedulers", ())
    return [("", scheduler), *((f"{number}.", part) for number, part in enumerate(inner))]


def restore_scheduler(
    scheduler: LRScheduler | None,
    state: Mapping[str, Number | list[Number]],
    groups: object,
) -> None:
    """Let a scheduler of the same set-up go on from a `scheduler_state`, with the values that it
    had given to the parameter `groups`. Raises FieldProblem."""
    live = scheduler_state(scheduler)
    if state.keys() != live.keys():
        raise FieldProblem("scheduler", f"it has {', '.join(state) or 'no entries'}")
    for name, entry in state.items():
        if isinstance(entry, list) != isinstance(live[name], list):
            raise FieldProblem(f"scheduler.{name}", "it has another type")
    if scheduler is None:
        return
    own = scheduler.optimizer.param_groups
    at, count = "optimizer.param_groups", len(own)
    if not isinstance(groups, list) or len(groups) != count:
        raise FieldProblem(
            at, "one group is expected" if count == 1 else f"{count} groups are expected"
        )
    for i, (group, saved) in enumerate(zip(own, groups, strict=True)):
        if not isinstance(saved, dict):
            raise FieldProblem(f"{at}[{i}]", f"it is {described(saved)}")
        for name in _SCHEDULED:
            if name in group:
                value = saved.get(name)
                if not _is_alike(value, group[name]):
                    raise FieldProblem(f"{at}[{i}].{name}", f"it is {described(value)}")
                group[name] = value
    for prefix, part in _parts(scheduler):
        own = {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}
        known = part.state_dict()
        part.load_state_dict({**known, **{n: v for n, v in own.items() if n in known}})
    # Else it warns, at an epoch's end, that this optimizer has not stepped yet.
    scheduler.optimizer._opt_called = True  # pyright: ignore[reportAttributeAccessIssue]


_OF_GROUPS = (
    *("base_lrs", "_last_lr", "min_lrs", "lr_lambdas", "max_lrs"),
    *("base_momentums", "max_momentums"),
)
"""What a scheduler keeps of each group."""


def regroup_scheduler(scheduler: LRScheduler, sources: Sequence[int]) -> None:
    """Let a scheduler go on with the other groups of its optimizer; `sources` are the numbers of
    the groups that they come from."""
    groups = scheduler.optimizer.param_groups
    for _, part in _parts(scheduler):
        for name in _OF_GROUPS:
            values = getattr(part, name, None)
            if isinstance(values, list):
                setattr(part, name, [values[source] for source in sources])
        if hasattr(part, "base_lrs"):
            part.base_lrs = [group["initial_lr"] for group in groups]


def _is_alike(value: object, live: object) -> bool:
    """Whether both are numbers, or both are lists of equally many numbers."""
    if isinstance(live, tuple | list):
        return (
            isinstance(value, tuple | list)
            and len(value) == len(live)
            and all(isinstance(number, int | float) for number in value)
        )
    return isinstance(value, int | float)
