"""Runs a module without a lasting effect on it: all that it holds is put back.

The module of a user is never copied: lambdas, hooks and lists of layers in a copy would go on with
the layers of the original. Instead the module itself gets other contents for a while.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..tensors.readable import storage_fault
from .held_objects import named_in

_COLLECTIONS = (list, dict, set, OrderedDict, defaultdict, deque)
_entered: list[ModuleState] = []
"""The states whose context is open, in the order of entering."""


class ModuleState:
    """Contents of a module besides those that it has: tensors, gradients, modes, hooks and all its
    other attributes.

    They begin as a copy of what the module has now. In `with state:` the module has them; then it
    is bit for bit as it was, and the state keeps what the context made of its contents. The context
    may be entered again, inside itself too. No object is replaced but tensors: the module, its
    parts and its dicts of hooks stay the same ones.

    Parts are the submodules, and modules that these hold in lists, dicts, closures, partial
    functions and bound methods. The state has tensors of its own in place of all buffers and of
    other tensors that do not learn; with `parameters` also of the submodules' parameters. The
    submodules' parameters and buffers are put on the `device`, and into the `dtype` if they have
    numbers with a fraction. A tensor that only a closure holds, and a lazy one, is not replaced.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        parameters: bool = True,
        dtype: torch.dtype | None = None,
        device: str | None = None,
    ) -> None:
        self.module = module
        self._parts = _parts(module)
        self._depth = 0
        self._outside = now = _Contents(self._parts)
        twins = _Twins(dtype, device)
        for tensor in (*module.buffers(), *(module.parameters() if parameters else ())):
            twins.add(tensor, is_cast=True)
        for tensor in now.tensors():
            if not (tensor.requires_grad or isinstance(tensor, nn.Parameter)):
                twins.add(tensor)
        self._inside = now.with_tensors(twins.of)

    def __enter__(self) -> ModuleState:
        if self._depth == 0:
            outside = _Contents(self._parts)
            try:
                outside.hide_gradients()
                self._inside.put()
            except BaseException:
                _put_whole(outside)
                raise
            self._outside = outside
            _entered.append(self)
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            _entered.remove(self)
            try:
                self._inside = _Contents(self._parts).with_tensors({})
            finally:
                _put_whole(self._outside)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self:
            return self.module(*args, **kwargs)

    def has_part(self, module: nn.Module) -> bool:
        return any(part is module for part in self._parts)

    # -- what the module has in the state ---------------------------------------------------------

    def named_parameters(self) -> list[tuple[str, nn.Parameter]]:
        with self:
            return list(self.module.named_parameters())

    def named_buffers(self) -> list[tuple[str, Tensor]]:
        with self:
            return list(self.module.named_buffers())

    def state_dict(self, keep_vars: bool = False) -> dict[str, Any]:
        with self:
            return self.module.state_dict(keep_vars=keep_vars)


def has_other_contents(module: nn.Module) -> bool:
    """Whether it has the contents of a ModuleState now, as itself or as a part."""
    return any(state.has_part(module) for state in _entered)


@contextmanager
def modes_kept(model: nn.Module) -> Iterator[None]:
    """After this context every module is in the mode that it was in before, also one that the
    user has set apart (a BatchNorm in eval mode)."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def module_kept(module: nn.Module, training: bool | None = True) -> Iterator[None]:
    """In this context the module is in training mode (with `training` False in eval mode, with None
    in the mode that it has), has no gradients, and has copies of its buffers; then all that it
    holds is put back.

    A graph made in the context keeps the copies, so a backward through it finds what forward saved.
    What a lazy module has got for its first input stays.
    """
    with ModuleState(module, parameters=False):
        if training and not module.training:
            module.train()
        elif training is False:
            module.eval()
        yield


class _Contents:
    """What modules hold at one moment: `put` gives it back to them."""

    def __init__(self, parts: list[nn.Module]) -> None:
        self._modes = [(part, part.training) for part in parts]
        parts = [part for part in parts if not any(map(is_lazy, _own_tensors(part)))]
        self._attributes = [(part, dict(vars(part))) for part in parts]
        held = {id(c): c for part in parts for c in _collections(vars(part).values())}
        self._elements = [(c, dict(c) if isinstance(c, dict) else list(c)) for c in held.values()]
        scripts = (part for part in parts if isinstance(part, torch.jit.ScriptModule))
        self._of_scripts: list[tuple[Any, dict[str, Any]]] = [
            (tensors, dict(tensors.items()))
            for part in scripts
            for tensors in (part._parameters, part._buffers)
        ]
        learn = {id(t): t for t in self.tensors() if t.is_leaf and _may_learn(t)}
        self._gradients = [(t, t.requires_grad, t.grad) for t in learn.values()]
        values = (value for _, attributes in self._attributes for value in attributes.values())
        generators = {id(v): v for v in values if isinstance(v, torch.Generator)}
        self._generators = [(each, each.get_state()) for each in generators.values()]

    def tensors(self) -> Iterator[Tensor]:
        groups: list[Any] = [attributes for _, attributes in self._attributes]
        groups += [elements for _, elements in (*self._elements, *self._of_scripts)]
        for group in groups:
            for value in group.values() if isinstance(group, dict) else group:
                if isinstance(value, Tensor):
                    yield value

    def with_tensors(self, others: Mapping[int, Tensor]) -> _Contents:
        """The same with other tensors, by the id of those that they replace. What learns keeps the
        gradient that it has when this is put."""

        def changed(values: Any) -> Any:
            if isinstance(values, dict):
                return {key: others.get(id(value), value) for key, value in values.items()}
            return [others.get(id(value), value) for value in values]

        made = _Contents([])
        made._modes, made._generators = self._modes, self._generators
        made._attributes = [(part, changed(values)) for part, values in self._attributes]
        made._elements = [(held, changed(values)) for held, values in self._elements]
        made._of_scripts = [(held, changed(values)) for held, values in self._of_scripts]
        return made

    def hide_gradients(self) -> None:
        """Also from what reaches a parameter by a closure: a backward adds to them in place."""
        for tensor, *_ in self._gradients:
            tensor.grad = None

    def put(self) -> None:
        """Let the modules hold this; again after an interrupt, it does the rest."""
        for part, attributes in self._attributes:
            held = vars(part)
            for name in held.keys() - attributes.keys():
                del held[name]
            held.update(attributes)
        for held, elements in self._elements:
            _refill(held, elements)
        for held, tensors in self._of_scripts:
            for name, tensor in tensors.items():
                held[name] = tensor
        for part, mode in self._modes:
            if part.training != mode:
                part.training = mode
        for tensor, learns, gradient in self._gradients:
            if tensor.requires_grad != learns:
                tensor.requires_grad_(learns)
            tensor.grad = gradient
        for generator, state in self._generators:
            generator.set_state(state)


class _Twins:
    """`of` has the copies by the id of their tensors; one for tensors that are one memory."""

    def __init__(self, dtype: torch.dtype | None, device: str | None) -> None:
        self._dtype, self._device = dtype, device
        self.of: dict[int, Tensor] = {}
        self._data: dict[tuple, Tensor] = {}

    def add(self, tensor: Tensor, is_cast: bool = False) -> None:
        if id(tensor) in self.of or is_lazy(tensor):
            return
        key: tuple = (id(tensor),)
        if tensor.layout == torch.strided and type(tensor) in (Tensor, nn.Parameter):
            if storage_fault(tensor):
                return
            storage = tensor.untyped_storage()._cdata
            key = (storage, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
        if key not in self._data:
            dtype = self._dtype if is_cast and tensor.is_floating_point() else None
            device = self._device if is_cast else None
            self._data[key] = tensor.detach().clone().to(device, dtype)
        twin = self._data[key].detach()
        if isinstance(tensor, nn.Parameter):
            twin = nn.Parameter(twin, requires_grad=tensor.requires_grad)
            vars(twin).update(vars(tensor))  # pyright: ignore[reportAttributeAccessIssue]
        else:
            twin.requires_grad_(tensor.requires_grad)
        self.of[id(tensor)] = twin


def _put_whole(contents: _Contents) -> None:
    """Put them back, also if an interrupt comes meanwhile, which is raised at the end."""
    interrupt = None
    while True:
        try:
            contents.put()
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _parts(module: nn.Module) -> list[nn.Module]:
    """The module, its submodules, and modules that these hold elsewhere."""
    found: list[nn.Module] = []
    waiting: list[object] = [module]
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, nn.Module):
            found.append(value)
            waiting += [*value._modules.values(), *vars(value).values()]
        else:
            waiting += named_in(value).values()
    return found


def _collections(values: Any) -> Iterator[Any]:
    """The collections among the values, and those inside of them."""
    waiting, seen = list(values), set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or not isinstance(value, (*_COLLECTIONS, tuple)):
            continue
        seen.add(id(value))
        if type(value) in _COLLECTIONS:
            yield value
        waiting += value.values() if isinstance(value, dict) else value


def _refill(held: Any, elements: Any) -> None:
    """A collection over which code of the user's goes, held at a line, must not seem changed."""
    keys = list(held)
    is_same = len(keys) == len(elements) and all(
        a is b for a, b in zip(keys, elements, strict=True)
    )
    if isinstance(held, dict) and is_same:
        for key, value in elements.items():
            if held[key] is not value:
                held[key] = value
    elif not is_same:
        held.clear()
        held.extend(elements) if isinstance(held, list | deque) else held.update(elements)


def _own_tensors(part: nn.Module) -> Iterator[Tensor]:
    for tensors in (part._parameters, part._buffers):
        yield from (tensor for tensor in tensors.values() if tensor is not None)


def _may_learn(tensor: Tensor) -> bool:
    return tensor.requires_grad or isinstance(tensor, nn.Parameter)
