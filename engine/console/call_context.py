"""The call that a cursor stands in: what is called, and which names its arguments have.

Nothing is called: signatures come from `inspect`, and those of functions of C from the lines in
their documentation that begin with their own name, as in `cat(tensors, dim=0, *, out=None)`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

MAX_SIGNATURES = 8
MAX_LOOK_BACK = 20_000
"""Characters before the cursor in which the beginning of its call is looked for."""

_PAIRS = {")": "(", "]": "[", "}": "{"}
_NAMED = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)")
_PARAMETER = re.compile(r"([^\W\d]\w*)\s*(?::[^=]*)?(?:=\s*(.*))?", re.DOTALL)


@dataclass(frozen=True)
class OpenCall:
    """A call whose bracket is still open. `called` is the text up to that bracket; `at_start` is
    whether a new argument begins at the end of the text."""

    called: str
    positional: int
    named: frozenset[str]
    at_start: bool


@dataclass(frozen=True)
class Parameter:
    """`default` is empty where there is none."""

    name: str
    default: str = ""


def open_call(masked: str) -> OpenCall | None:
    """The innermost call around the end of `masked`, which is source with its strings and comments
    blanked; None where another bracket, or none, is open there."""
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
    """The parameters of `called` that may still be given by name, in order."""
    found: dict[str, Parameter] = {}
    for signature in _signatures(called):
        for parameter in signature[call.positional :]:
            if parameter is not None and parameter.name not in call.named:
                found.setdefault(parameter.name, parameter)
    return list(found.values())


def returns_tensor(called: object) -> bool:
    """Whether all signatures in the documentation of `called` say that it gives a tensor."""
    name, document = _documented(called)
    opening = _opening(name)
    lines = [line for line in document.splitlines() if name and opening.match(line)]
    return bool(lines) and all(line.rstrip().endswith("-> Tensor") for line in lines)


def _signatures(called: object) -> Iterator[list[Parameter | None]]:
    """Each signature's parameters; None for one that is given by its place alone."""
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
                continue  # marks, not parameters
            told = _PARAMETER.fullmatch(word)
            listed.append(None if told is None else Parameter(told[1], (told[2] or "").strip()))
        yield listed


def _opening(name: str) -> re.Pattern[str]:
    """How a line of documentation begins that is a signature of `name`."""
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
    """The parts between commas that stand in no bracket."""
    depth = start = 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]
