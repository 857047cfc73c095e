"""The call that the cursor is in: what is called, and which of its parameters can still be given.

No user code is called. Signatures come from `inspect`. A C function has none there: its signatures
are the lines of its docstring that start with its name, as in `cat(tensors, dim=0, *, out=None)`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

MAX_SIGNATURES = 8
MAX_LOOK_BACK = 20_000
"""Characters before the cursor that are searched for the start of its call."""

_PAIRS = {")": "(", "]": "[", "}": "{"}
_NAMED = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)")
_PARAMETER = re.compile(r"([^\W\d]\w*)\s*(?::[^=]*)?(?:=\s*(.*))?", re.DOTALL)


@dataclass(frozen=True)
class OpenCall:
    """A call whose bracket is still open. `called` is the text before that bracket, `positional`
    the number of finished positional arguments, `named` the keywords already given. `at_start`: the
    text ends where a new argument begins."""

    called: str
    positional: int
    named: frozenset[str]
    at_start: bool


@dataclass(frozen=True)
class Parameter:
    """One parameter of a callable. `default` is its default as source, empty if it has none."""

    name: str
    default: str = ""


def open_call(masked: str) -> OpenCall | None:
    """The innermost call that is still open at the end of `masked`, which is source with its
    strings and comments blanked. None if no bracket is open there, or the innermost one is not a
    call's."""
    closers: list[str] = []
    for place in range(len(masked) - 1, max(-1, len(masked) - MAX_LOOK_BACK), -1):
        character = masked[place]
        if character in _PAIRS:
            closers.append(_PAIRS[character])
        elif closers and character == closers[-1]:
            closers.pop()
        elif character in "([{":
            if character != "(" or closers:
                return None
            return _read(masked[:place], masked[place + 1 :])
    return None


def _read(called: str, inside: str) -> OpenCall:
    arguments = list(_split(inside))
    done, last = arguments[:-1], arguments[-1]
    names = [match[1] for argument in done if (match := _NAMED.match(argument)) is not None]
    return OpenCall(
        called=called.rstrip(" \t"),
        positional=len(done) - len(names),
        named=frozenset(names),
        at_start=not last.strip(),
    )


def parameters(called: object, call: OpenCall) -> list[Parameter]:
    """The parameters of `called` that can still be given by keyword, in order."""
    found: dict[str, Parameter] = {}
    for signature in _signatures(called):
        for parameter in signature[call.positional :]:
            if parameter is not None and parameter.name not in call.named:
                found.setdefault(parameter.name, parameter)
    return list(found.values())


def returns_tensor(called: object) -> bool:
    """Whether every signature in the docstring of `called` ends with `-> Tensor`."""
    name, document = _documented(called)
    opening = _opening(name)
    lines = [line for line in document.splitlines() if name and opening.match(line)]
    return bool(lines) and all(line.rstrip().endswith("-> Tensor") for line in lines)


def _signatures(called: object) -> Iterator[list[Parameter | None]]:
    """The parameters of each signature; None stands for a positional-only parameter."""
    if isinstance(called, nn.Module):
        called = called.forward
    try:
        signature = inspect.signature(called)  # pyright: ignore[reportArgumentType]
    except Exception:  # functions of C have none; users' objects may raise anything
        signature = None
    if signature is not None:
        kinds = inspect.Parameter
        listed = list(signature.parameters.values())
        if any(p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) for p in listed):
            yield [
                Parameter(p.name, "" if p.default is p.empty else repr(p.default))
                if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
                else None
                for p in listed
                if p.kind is not kinds.VAR_KEYWORD
            ]
            return
    yield from _documented_signatures(called)


def _documented_signatures(called: object) -> Iterator[list[Parameter | None]]:
    name, document = _documented(called)
    if not name:
        return
    for match in list(_opening(name).finditer(document))[:MAX_SIGNATURES]:
        inside = _up_to_close(document[match.end() :])
        if inside is None:
            continue
        listed: list[Parameter | None] = []
        for text in _split(inside):
            word = text.strip()
            if word in ("*", "/", ""):
                continue  # separators of the signature, not parameters
            told = _PARAMETER.fullmatch(word)
            listed.append(None if told is None else Parameter(told[1], (told[2] or "").strip()))
        yield listed


def _opening(name: str) -> re.Pattern[str]:
    """A pattern that matches the start of a docstring line that is a signature of `name`."""
    return re.compile(
        rf"^\s*(?:\.\. (?:function|method)::\s*)?(?:\w+\.)*{re.escape(name)}\(", re.MULTILINE
    )


def _documented(called: object) -> tuple[str, str]:
    name, document = getattr(called, "__name__", ""), getattr(called, "__doc__", "")
    if not isinstance(name, str) or not isinstance(document, str):
        return "", ""
    return name, document


def _up_to_close(text: str) -> str | None:
    depth = 1
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return text[:place]
    return None


def _split(text: str) -> Iterator[str]:
    """The parts between the commas that are outside all brackets."""
    depth = start = 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]
