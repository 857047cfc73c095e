"""The console's variables as a list, with the type and size of each."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
import torch
from torch import nn

from ..protocol import MAX_SNAPSHOT_BYTES, Variable, VariableKind, VariablesSnapshot
from ..system.control import Control
from ..system.errors import sendable
from ..system.signatures import takes_tensors, tensor_methods
from ..tensors.readable import dtype_name, readable
from ..tensors.storages import Storages
from .describers import MAX_TEXT, words_of
from .namespace import Namespace
from .tensor_report import or_none

MAX_NAME = 200
ANSWER_S = 2.0
_TRUSTED = sys.stdlib_module_names | {"numpy", "torch"}


def list_variables(namespace: Namespace, control: Control | None = None) -> VariablesSnapshot:
    """Tensors, modules, optimizers, numbers and other objects, in the order they were made.

    Private names and what every namespace starts with are left out; tensors that were logged come
    last. Reads no element of
    a tensor that has more than one, draws no random numbers and builds no graph. An object of a
    class of the user's own has ANSWER_S to say what it is, and is asked no more if it does not.
    """
    listed: list[Variable] = []
    size_bytes = 0
    found = [
        (name, value)
        for name, value in list(namespace.variables.items())
        if isinstance(name, str)
        and not name.startswith("_")
        and namespace.initial.get(name) is not value
    ]
    found += [(f"lab.logged[{name!r}]", t) for name, t in namespace.lab.logged.items()]
    namespace.storages.numbers(
        value for _, value in found if issubclass(type(value), torch.Tensor | np.ndarray)
    )
    first: dict[int, str] = {}  # the first name of each module
    for name, value in (*namespace.named().items(), *found):
        if issubclass(type(value), nn.Module):
            first.setdefault(id(value), name)
    for name, value in found:
        try:
            with _limited(type(value), namespace, control):
                variable = describe(name, value, namespace.storages)
        except (TimeoutError, KeyboardInterrupt):
            namespace.silent.add(type(value))
            variable = _silent(name, type(value))
        if (same_as := first.get(id(value), name)) != name:
            variable = msgspec.structs.replace(variable, same_as=sendable(same_as[:MAX_NAME]))
        size_bytes += len(msgspec.msgpack.encode(variable))
        if size_bytes > MAX_SNAPSHOT_BYTES // 2:
            break
        listed.append(variable)
    return VariablesSnapshot(variables=tuple(listed), left_out=len(found) - len(listed))


@contextmanager
def _limited(kind: type, namespace: Namespace, control: Control | None) -> Iterator[None]:
    if kind in namespace.silent:
        raise TimeoutError
    if control is None or not _is_users(kind):
        yield
        return
    with control.time_limit(ANSWER_S):
        yield


def _is_users(kind: type) -> bool:
    """Whether reading an object of this class may run code of the user's."""
    roots = {str(base.__module__).partition(".")[0] for base in kind.__mro__}
    return not roots <= _TRUSTED


def _silent(name: str, kind: type) -> Variable:
    return Variable(
        name=sendable(name[:MAX_NAME]),
        kind=_kind(kind),
        type=kind.__name__,
        text="does not answer: its methods take too long",
    )


def describe(name: str, value: object, storages: Storages) -> Variable:
    """One variable; never raises."""
    name, kind = sendable(name[:MAX_NAME]), type(value)
    if issubclass(kind, torch.Tensor):
        return _tensor(name, value, storages)  # pyright: ignore[reportArgumentType]
    if issubclass(kind, np.ndarray):
        return _array(name, value, storages)  # pyright: ignore[reportArgumentType]
    return Variable(
        name=name,
        kind="function" if or_none(lambda: takes_tensors(value)) else _kind(kind),
        type=kind.__name__,
        text=_clip(or_none(lambda: words_of(value)) or ""),
        device=or_none(lambda: _devices(value)) or "",
        size_bytes=or_none(lambda: _module_bytes(value)),
        methods=or_none(lambda: _methods(value)) or (),
    )


def _kind(kind: type) -> VariableKind:
    if issubclass(kind, nn.Module):
        return "module"
    if issubclass(kind, torch.optim.Optimizer):
        return "optimizer"
    return "number" if issubclass(kind, numbers.Number | np.generic) else "other"


def _tensor(name: str, t: torch.Tensor, storages: Storages) -> Variable:
    with torch.no_grad(), torch.DisableTorchFunctionSubclass():
        # The elements of a large tensor are not read, only its metadata.
        known = readable(t) if _is_small(t) else None
        shape = known.shape if known else or_none(lambda: tuple(int(n) for n in t.shape)) or ()
        numel = math.prod(shape)
        if -1 in shape:
            numel = known.dense.numel() if known and known.dense is not None else 0
        text = known.note if known else ""
        if known and known.dense is not None and known.dense.numel() == 1 and not known.partial:
            text = repr(known.dense.reshape(()).tolist())
        return Variable(
            name=name,
            kind="tensor",
            type=type(t).__name__,
            text=_clip(text),
            shape=shape,
            dtype=dtype_name(t.dtype),
            device=str(t.device),
            requires_grad=bool(or_none(lambda: t.requires_grad)),
            is_leaf=bool(or_none(lambda: t.is_leaf)),
            grad_fn=or_none(lambda: None if t.grad_fn is None else type(t.grad_fn).__name__),
            size_bytes=numel * t.dtype.itemsize,
            version=or_none(lambda: t._version),
            storage=storages.number(t),
        )


def _is_small(t: torch.Tensor) -> bool:
    """Whether the tensor has at most one element, or a shape that only `readable` can read."""
    size = None if or_none(lambda: t.is_nested) else or_none(t.numel)
    return size is None or size <= 1


def _array(name: str, array: np.ndarray, storages: Storages) -> Variable:
    return Variable(
        name=name,
        kind="other",
        type=type(array).__name__,
        text="numpy array",
        shape=tuple(array.shape),
        dtype=str(array.dtype),
        device="cpu",
        size_bytes=array.nbytes,
        storage=storages.number(array),
    )


def _module_bytes(value: object) -> int | None:
    if not isinstance(value, nn.Module):
        return None
    return sum(t.numel() * t.element_size() for t in _tensors_of(value))


def _methods(value: object) -> tuple[str, ...]:
    return tensor_methods(value) if isinstance(value, nn.Module) else ()


def _devices(value: object) -> str:
    if not isinstance(value, nn.Module):
        return ""
    return ", ".join(dict.fromkeys(str(t.device) for t in _tensors_of(value)))


def _tensors_of(module: nn.Module) -> Iterable[torch.Tensor]:
    yield from module.parameters()
    yield from module.buffers()


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return sendable(line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 1]}…")
