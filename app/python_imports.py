"""Imports, without what PySide adds to each."""

from __future__ import annotations

import builtins
from functools import cache

from app.support_bytecode import cache_file, late_patterns, support_bytecode


@cache
def import_plainly() -> None:
    """Let modules be imported without PySide looking at them.

    For its `from __feature__ import ...`, which is not used here, PySide puts a function in the
    place of Python's `__import__` that reads the source of every module imported after it. That
    doubles the time of each import.
    """
    with support_bytecode(cache_file()), late_patterns():
        import PySide6.QtCore  # noqa: F401 - it replaces the function

    builtins.__import__ = getattr(builtins, "__orig_import__", builtins.__import__)
