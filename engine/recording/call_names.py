"""The usual names of torch's functions."""

from __future__ import annotations

from collections.abc import Callable


def op_name(func: Callable, args: tuple = ()) -> str:
    """The usual name of a torch function: `add_`, `|=`, `[0, 1:] =`, and `T` for the property."""
    name = getattr(func, "__name__", "") or str(func)
    if name in ("__get__", "__set__"):
        return getattr(getattr(func, "__self__", None), "__name__", name)
    if name in ("__getitem__", "__setitem__"):
        index = index_text(args[1]) if len(args) > 1 else "…"
        return f"[{index}]" if name == "__getitem__" else f"[{index}] ="
    return _OPERATORS.get(name, name)


def index_text(index: object) -> str:
    """An index as it is typed; a tensor or list in it is `…`."""
    if type(index) is tuple:
        return ", ".join(map(index_text, index)) if index else "()"
    if index is Ellipsis:
        return "..."
    if index is None or type(index) in (int, bool):
        return str(index)
    if type(index) is slice:
        ends = ("" if end is None else index_text(end) for end in (index.start, index.stop))
        text = ":".join(ends)
        return text if index.step is None else f"{text}:{index_text(index.step)}"
    return "…"


_OPERATORS = {
    "__iand__": "&=",
    "__ior__": "|=",
    "__ixor__": "^=",
    "__ilshift__": "<<=",
    "__irshift__": ">>=",
}
"""Operators that torch calls by the names of methods: `+=` is add_."""
