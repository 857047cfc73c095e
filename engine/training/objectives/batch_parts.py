"""A batch taken apart: what the model is called with, and the target."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import torch
from torch import Tensor, nn

from ...recording.compiled import unwrapped

_OF_FORWARD = ("labels", "label", "targets", "target")
"""A parameter of forward with one of these names takes the target."""
TARGETS = (*_OF_FORWARD, "y")
"""A batch that is a dict, or an object, has its target under one of these names."""
_CASTS = {torch.float32: ".float()", torch.float64: ".double()", torch.float16: ".half()"}


@dataclass(frozen=True)
class Input:
    """An argument of the model: in source, as a value, and its keyword ("" for one by position)."""

    source: str
    value: Any
    keyword: str = ""


@dataclass(frozen=True)
class Parts:
    """One way to use a batch: the line of source that takes it apart ("" if none is needed), the
    model's arguments, and the target, which `target_line` names y if `line` does not. The target
    is None without one."""

    line: str
    inputs: tuple[Input, ...]
    target: Any = None
    target_line: str = ""

    @property
    def call(self) -> str:
        return ", ".join(
            f"{each.keyword}={each.source}" if each.keyword else each.source for each in self.inputs
        )

    def run(self, model: nn.Module) -> Any:
        args = [each.value for each in self.inputs if not each.keyword]
        return model(*args, **{each.keyword: each.value for each in self.inputs if each.keyword})

    def variants(self, model: nn.Module) -> Iterator[Parts]:
        """These parts. Then, if the model's parameters have one dtype: the parts with the float
        inputs cast to it, and the parts with all number inputs cast to it."""
        yield self
        dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()}
        if len(dtypes) != 1:
            return
        for wanted in (_is_float_or_image, _is_number):
            cast = [_cast(each, *dtypes) if wanted(each.value) else each for each in self.inputs]
            if any(new.value is not old.value for new, old in zip(cast, self.inputs, strict=True)):
                yield replace(self, inputs=tuple(cast))


def target_of(batch: Any) -> Any:
    """The target of a batch (x, ..., y), or of a dict under one of TARGETS; None without one."""
    if isinstance(batch, Mapping):
        return next((batch[name] for name in TARGETS if name in batch), None)
    parts = list(batch) if isinstance(batch, tuple | list) else []
    return parts[-1] if len(parts) > 1 else None


def ways(batch: Any, model: nn.Module) -> Iterator[Parts]:
    """Ways to call the model on the batch, the most likely first. A model that needs as many
    arguments as the batch has parts takes all of them."""
    forward = _Forward.of(model)
    if isinstance(batch, Mapping):
        name = next((name for name in TARGETS if name in batch), None)
        target = None if name is None else batch[name]
        line = "" if name is None else f'y = batch["{name}"]'
        for inputs in _of_mapping(batch, "batch", name, forward):
            yield Parts("", inputs, target, line)
        return
    if not isinstance(batch, tuple | list):
        name = None if isinstance(batch, Tensor) else _attribute(batch)
        target, line = (getattr(batch, name), f"y = batch.{name}") if name else (None, "")
        yield Parts("x = batch", (Input("x", batch),), target, line)
        return
    names, inputs = _named(batch)
    takes_all = len(batch) == 1 or forward.needed == len(batch)
    if len(batch) > 1 and not (takes_all and isinstance(batch[0], Tensor)):
        yield from _of_sequence(batch, forward)
    if takes_all:
        yield Parts(f"{names} = batch", inputs)


@dataclass(frozen=True)
class _Forward:
    """The parameters of forward: their names of its parameters, how many it needs and can take by
    position, and whether it takes any keyword."""

    names: tuple[str, ...]
    needed: int
    most: float
    takes_any: bool

    @staticmethod
    def of(model: nn.Module) -> _Forward:
        model = unwrapped(model)
        is_function = getattr(model, "__signature__", None) is not None
        try:
            found = inspect.signature(model if is_function else model.forward).parameters.values()
        except (TypeError, ValueError):  # made in C
            return _Forward((), 0, inf, True)
        by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        named = [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        is_open = any(p.kind == p.VAR_POSITIONAL for p in found)
        return _Forward(
            tuple(p.name for p in named),
            sum(p.default is p.empty for p in named),
            inf if is_open else sum(p.kind in by_place for p in named),
            any(p.kind == p.VAR_KEYWORD for p in found),
        )


def _of_sequence(batch: Any, forward: _Forward) -> Iterator[Parts]:
    """The last part is the target. The one before may be several inputs itself."""
    *given, target = batch
    first = given[0]
    if len(given) == 1 and isinstance(first, Mapping):
        for inputs in _of_mapping(first, "x", None, forward):
            yield Parts("x, y = batch", inputs, target)
        return
    if len(given) == 1 and type(first) in (tuple, list) and 1 < len(first) <= forward.most:
        names, inputs = _named(first)
        line = f"({names}), y = batch"
    else:
        names, inputs = _named(given)
        line = f"{'x' if len(given) == 1 else names}, y = batch"
    own = next((name for name in _OF_FORWARD if name in forward.names[len(inputs) :]), None)
    if own is not None:
        yield Parts(line, (*inputs, Input("y", target, own)), target)
    yield Parts(line, inputs, target)


def _of_mapping(
    values: Mapping[Any, Any], name: str, target: str | None, forward: _Forward
) -> Iterator[tuple[Input, ...]]:
    """The arguments from a dict: by name those that forward takes, the target among them if it
    does; else the dict itself, or by position as many as it needs."""
    others = {key: value for key, value in values.items() if key != target}
    sources = {key: f'{name}["{key}"]' if isinstance(key, str) else f"{name}[{key!r}]"
               for key in values}  # fmt: skip
    named = {key for key in values if isinstance(key, str)}
    taken = named if forward.takes_any else named & set(forward.names)
    if taken and taken >= set(forward.names[: forward.needed]):
        inputs = tuple(Input(sources[key], values[key], key) for key in others if key in taken)
        if target in taken:
            yield (*inputs, Input(sources[target], values[target], str(target)))
        if inputs:
            yield inputs
        return
    whole = (Input(name, values),)
    if forward.needed == 1 < len(others):
        yield whole
    if 0 < forward.needed <= len(others):
        yield tuple(Input(sources[key], others[key]) for key in list(others)[: forward.needed])
    if forward.needed == 1 >= len(others):
        yield whole


def _named(values: Any) -> tuple[str, tuple[Input, ...]]:
    """`x1, x2` for two values, and these as inputs; `(x,)` for one."""
    if len(values) == 1:
        return "(x,)", (Input("x", values[0]),)
    inputs = tuple(Input(f"x{n}", value) for n, value in enumerate(values, 1))
    return ", ".join(each.source for each in inputs), inputs


def _attribute(batch: object) -> str | None:
    return next((n for n in TARGETS if isinstance(getattr(batch, n, None), Tensor)), None)


def _is_float_or_image(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or _is_image(value))


def _is_image(value: Tensor) -> bool:
    return value.dtype == torch.uint8 and value.ndim > 2


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and not value.is_complex()


def _cast(given: Input, dtype: torch.dtype) -> Input:
    """In this dtype; the bytes 0 to 255 of an image become 0 to 1."""
    value, source = given.value.to(dtype), f"{given.source}{as_dtype(dtype)}"
    if _is_image(given.value):
        return replace(given, source=f"{source}.div(255)", value=value.div(255))
    return given if value is given.value else replace(given, source=source, value=value)


def as_dtype(dtype: torch.dtype) -> str:
    """The call that gives a tensor this dtype."""
    return _CASTS.get(dtype, f".to({dtype})")
