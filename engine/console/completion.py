"""Completions at the cursor, taken from the live objects of the console."""

from __future__ import annotations

import builtins
import inspect
import keyword
import re
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Literal

import torch
from torch import nn

from ..protocol import Completion, CompletionsSnapshot
from ..system.errors import LabError, sendable
from .call_context import open_call, parameters, returns_tensor
from .resolve import resolve

MAX_COMPLETIONS = 1200
MAX_DETAIL = 80

_KEYWORDS = frozenset(keyword.kwlist)

Kind = Literal["variable", "module", "class", "function", "keyword", "attribute", "parameter"]

_STRING_OR_COMMENT = re.compile(
    r"""(?P<triple>\"{3}|'{3})(?:\\.|(?!(?P=triple)).)*(?P<end3>(?P=triple))?
      | (?P<quote>["'])(?:\\.|(?!(?P=quote))[^\n])*(?P<end1>(?P=quote))?
      | (?P<comment>\#[^\n]*)""",
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[^\W\d]\w*\Z|\Z")
# An object before a dot: a name, with attributes and plain subscripts, as `resolve` takes them.
_OWNER = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*|\[[^\[\]\n]*\])*\Z")


def complete(source: str, cursor: int, variables: Mapping[str, object]) -> CompletionsSnapshot:
    """Completions of the word that ends at `cursor`; none inside strings and comments.

    After a dot: the attributes of the object before it. That object is a name, an attribute, a
    constant subscript, or a call whose docstring says that it returns a tensor. At the start of an
    argument, the parameters of its call come first. Properties are not read, and nothing is called
    but an object's own `__dir__`.
    """
    before = source[:cursor]
    match = _WORD.search(before)
    assert match is not None  # the end always matches
    word, start = match.group(), match.start()
    if _in_text(before[:start]) or before[start - 1 : start].isalnum():
        return CompletionsSnapshot(start=start, completions=())
    masked = _masked(before[:start])
    if masked.endswith("."):
        found = _attributes(before[: start - 1], masked[:-1], word, variables)
    else:
        found = [*_keywords(masked, word, variables), *_names(word, variables)]
    return CompletionsSnapshot(start=start, completions=tuple(found[:MAX_COMPLETIONS]))


def _in_text(before: str) -> bool:
    for match in _STRING_OR_COMMENT.finditer(before):
        closed = match["end3"] or match["end1"]
        if match.end() == len(before) and not closed:
            return True
    return False


def _masked(before: str) -> str:
    """`before` with underscores for its strings and spaces for its comments, so that brackets in
    them do not count."""
    return _STRING_OR_COMMENT.sub(
        lambda match: (" " if match["comment"] else "_") * len(match.group()), before
    )


def _keywords(masked: str, word: str, variables: Mapping[str, object]) -> list[Completion]:
    """The parameters of the call, if an argument begins at the end of `masked`."""
    call = open_call(masked)
    if call is None or not call.at_start:
        return []
    called = _owner(call.called, variables)
    if called is None:
        return []
    known = {parameter.name: parameter for parameter in parameters(called, call)}
    return [
        Completion(text=f"{sendable(name)}=", kind="parameter", detail=_clip(known[name].default))
        for name in _matching(known, word)
    ]


def _names(word: str, variables: Mapping[str, object]) -> list[Completion]:
    found = [
        _described(name, variables[name], "variable")
        for name in _matching(reversed([n for n in variables if isinstance(n, str)]), word)
    ]
    known = {completion.text for completion in found}
    for name in _matching((n for n in dir(builtins) if n not in known | _KEYWORDS), word):
        found.append(_described(name, getattr(builtins, name), "variable"))
    for name in _matching(keyword.kwlist, word):
        found.append(Completion(text=name, kind="keyword"))
    return found


def _attributes(
    before: str, masked: str, word: str, variables: Mapping[str, object]
) -> list[Completion]:
    if masked.endswith(")"):
        owner = torch.Tensor if _gives_tensor(masked, variables) else None
    else:
        owner = _owner(before, variables)
    if owner is None:
        return []
    try:
        names = [name for name in dir(owner) if isinstance(name, str)]
    except Exception:  # a user's own __dir__
        return []
    return [_described(name, _static(owner, name), "attribute") for name in _matching(names, word)]


def _gives_tensor(masked: str, variables: Mapping[str, object]) -> bool:
    """Whether `masked` ends in a call whose docstring says that it returns a tensor."""
    call = open_call(masked[:-1])
    if call is None:
        return False
    called = _owner(call.called, variables)
    if called is None:
        ahead, _, name = call.called.rpartition(".")
        on_result = ahead.endswith(")") and _gives_tensor(ahead, variables)
        called = getattr(torch.Tensor, name, None) if on_result else None
    return called is not None and returns_tensor(called)


def _owner(before: str, variables: Mapping[str, object]) -> object | None:
    """The object that the expression at the end of `before` names; None if there is none."""
    match = _OWNER.search(before)
    if match is None or before[: match.start()].endswith((".", ")", "]")):
        return None
    try:
        return resolve(match.group(), variables)
    except LabError:
        return None


def _matching(names: Iterable[str], word: str) -> list[str]:
    """The names that begin with `word`, those in the same case first. Private names are left out
    unless `word` begins with an underscore."""
    lower = word.lower()
    found = [
        name
        for name in dict.fromkeys(names)
        if name.lower().startswith(lower) and (word.startswith("_") or not name.startswith("_"))
    ]
    return sorted(found, key=lambda name: not name.startswith(word))[:MAX_COMPLETIONS]


def _static(owner: object, name: str) -> object:
    """The attribute, without running a property or a lazy import."""
    if isinstance(owner, nn.Module):
        for table in (owner._modules, owner._parameters, owner._buffers):
            if name in table:
                return table[name]
    return inspect.getattr_static(owner, name, None)


def _described(name: str, value: object, otherwise: Kind) -> Completion:
    kind: Kind = otherwise
    detail = ""
    if issubclass(type(value), torch.Tensor):
        detail = _clip(_tensor_words(value))  # pyright: ignore[reportArgumentType]
    elif isinstance(value, ModuleType):
        kind, detail = "module", "module"
    elif isinstance(value, nn.Module):
        detail = type(value).__name__
    elif isinstance(value, type):
        kind, detail = "class", _signature(value)
    elif isinstance(value, property) or inspect.isdatadescriptor(value):
        pass
    elif isinstance(value, (staticmethod, classmethod)):
        kind, detail = "function", _signature(value.__func__)
    elif callable(value):
        kind, detail = "function", _signature(value)
    elif kind == "variable":
        detail = type(value).__name__
    return Completion(text=sendable(name), kind=kind, detail=detail)


def _tensor_words(t: torch.Tensor) -> str:
    with torch.DisableTorchFunctionSubclass():
        try:
            return f"{str(t.dtype).removeprefix('torch.')} {tuple(t.shape)}"
        except Exception:  # some kinds of tensors have no shape
            return type(t).__name__


def _signature(value: object) -> str:
    """The signature, as in `(input, dim=-1)`; for a C function, the first line of its docstring."""
    try:
        return _clip(str(inspect.signature(value)))  # pyright: ignore[reportArgumentType]
    except Exception:  # C functions have none; users' objects may raise anything
        pass
    document = getattr(value, "__doc__", None)
    if not isinstance(document, str) or not document.strip():
        return ""
    first = document.strip().splitlines()[0]
    opening = first.find("(")
    return _clip(first[opening:] if opening > 0 else first)


def _clip(text: str) -> str:
    text = sendable(text)
    return text if len(text) <= MAX_DETAIL else f"{text[: MAX_DETAIL - 1]}…"
