"""What could stand at the cursor, from the objects that are really there."""

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

from ..errors import LabError, sendable
from ..protocol import Completion, CompletionsSnapshot
from .resolve import resolve

MAX_COMPLETIONS = 1200
MAX_DETAIL = 80

_KEYWORDS = frozenset(keyword.kwlist)

Kind = Literal["variable", "module", "class", "function", "keyword", "attribute"]

_STRING_OR_COMMENT = re.compile(
    r"""(?P<triple>\"{3}|'{3})(?:\\.|(?!(?P=triple)).)*(?P<end3>(?P=triple))?
      | (?P<quote>["'])(?:\\.|(?!(?P=quote))[^\n])*(?P<end1>(?P=quote))?
      | (?P<comment>\#[^\n]*)""",
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[^\W\d]\w*\Z|\Z")
# The object before a last dot: names, attributes and plain subscripts, as `resolve` takes them.
_OWNER = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*|\[[^\[\]\n]*\])*\Z")


def complete(source: str, cursor: int, variables: Mapping[str, object]) -> CompletionsSnapshot:
    """Names for the word that ends at `cursor`; none inside strings and comments.

    After a dot, those of the object before it, if that is a name, an attribute or a constant
    subscript. No property of it is read, and no code is run but the object's own `__dir__`.
    """
    before = source[:cursor]
    match = _WORD.search(before)
    assert match is not None  # the end always matches
    word, start = match.group(), match.start()
    if _in_text(before[:start]) or before[start - 1 : start].isalnum():
        return CompletionsSnapshot(start=start, completions=())
    if before[start - 1 : start] == ".":
        found = _attributes(before[: start - 1], word, variables)
    else:
        found = _names(word, variables)
    return CompletionsSnapshot(start=start, completions=tuple(found[:MAX_COMPLETIONS]))


def _in_text(before: str) -> bool:
    for match in _STRING_OR_COMMENT.finditer(before):
        closed = match["end3"] or match["end1"]
        if match.end() == len(before) and not closed:
            return True
    return False


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


def _attributes(before: str, word: str, variables: Mapping[str, object]) -> list[Completion]:
    match = _OWNER.search(before)
    if match is None or before[: match.start()].endswith((".", ")", "]")):
        return []
    try:
        owner = resolve(match.group(), variables)
        names = [name for name in dir(owner) if isinstance(name, str)]
    except LabError:
        return []
    except Exception:  # a user's own __dir__
        return []
    return [_described(name, _static(owner, name), "attribute") for name in _matching(names, word)]


def _matching(names: Iterable[str], word: str) -> list[str]:
    """Those that begin with `word`, in the same case first; private ones only when asked for."""
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
    with torch._C.DisableTorchFunctionSubclass():
        try:
            return f"{str(t.dtype).removeprefix('torch.')} {tuple(t.shape)}"
        except Exception:  # some kinds of tensors have no shape
            return type(t).__name__


def _signature(value: object) -> str:
    """`(input, dim=-1)`, or for functions of C the first line of their documentation."""
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
