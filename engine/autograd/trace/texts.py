"""A recorded call as text: its arguments by name, its tensors, a short result."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from ...recording.argument_values import KeptTensor, OtherArgument
from ...recording.executed_lines import GOES_ON, RETURNS, YIELDS
from ...recording.recording import Call

MAX_TEXT = 80
MAX_SHORT = 3
"""Tensors or names in a short result."""

Named = tuple[str, Any]


def named_arguments(call: Call) -> Iterator[Named]:
    """The arguments by their parameters' names; for a line, the names that it read."""
    names = _parameter_names(call)
    single = len(call.args) == 1
    for place, value in enumerate(call.args):
        if place < len(names):
            yield names[place], value
        else:
            yield ("input" if single else f"input {place + 1}"), value
    yield from call.kwargs.items()


def named_results(call: Call) -> Iterator[Named]:
    """The result; for a line, the names that it bound or changed."""
    if call.kind == "line":
        yield from (call.result or {}).items()
    elif call.result is not None:
        yield "result", call.result


def tensors_and_texts(
    values: Iterator[Named], containers: bool = False
) -> tuple[list[tuple[str, KeptTensor]], list[tuple[str, str]]]:
    """The tensors in `values`, and all other values as text. With `containers`, a list or dict of
    tensors has a text too."""
    tensors: list[tuple[str, KeptTensor]] = []
    texts: list[tuple[str, str]] = []
    for name, value in values:
        found = list(kept_in(name, value))
        tensors += found
        if not found or (containers and not isinstance(value, KeptTensor)):
            texts.append((name, text_of(value)))
    return tensors, texts


def kept_in(name: str, value: Any) -> Iterator[tuple[str, KeptTensor]]:
    """The tensors in a value, with their names: `name`, `name[0]`, `name['key']`."""
    if isinstance(value, KeptTensor):
        yield name, value
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from kept_in(f"{name}[{place}]", item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from kept_in(f"{name}[{key!r}]", item)


def short_result(call: Call) -> str:
    """The result in a few words: `(32, 10) float32`; for a line, `k = 3, y (13,) float32`."""
    if call.kind == "line":
        parts = [_assigned(name, value) for name, value in named_results(call)]
        text = ", ".join(parts[:MAX_SHORT])
        return text + (f", {len(parts) - MAX_SHORT} more" if len(parts) > MAX_SHORT else "")
    return _short(call.result)


def _assigned(name: str, value: Any) -> str:
    if name in (RETURNS, YIELDS, GOES_ON):
        return f"{name} {_short(value) or 'None'}"
    found = next(kept_in("", value), None)
    return f"{name} {_short(value)}" if found else f"{name} = {text_of(value)}"


def _short(value: Any) -> str:
    found = [repr(kept) for _, kept in kept_in("", value)]
    if found:
        more = f", {len(found) - MAX_SHORT} more" if len(found) > MAX_SHORT else ""
        return ", ".join(found[:MAX_SHORT]) + more
    return "" if value is None else text_of(value)


def text_of(value: Any) -> str:
    """The value's repr, cut to MAX_TEXT characters."""
    text = value.text if isinstance(value, OtherArgument) else repr(value)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _parameter_names(call: Call) -> list[str]:
    if call.kind == "op":
        return [argument.name for argument in call.func._schema.arguments]
    if call.kind == "module" or not callable(call.func):
        return []
    try:
        parameters = inspect.signature(call.func).parameters.values()
    except (TypeError, ValueError):  # most functions of torch are written in C++
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in positional]
