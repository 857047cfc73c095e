"""Give functions that are loaded other code, as if their file had been another one when it was
imported: a process that has collected tests need not collect them again for each mutant."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType


def swap(path: Path, old: bytes, new: bytes) -> bool:
    """False if a function cannot have its new code, since it uses other variables of the function
    around it; then the file must be imported again."""
    before, after = (dict(_codes(compile(text, path, "exec"))) for text in (old, new))
    changed = {key: after.get(key) for key in before if before[key] != after.get(key)}
    gc.unfreeze()  # what is frozen is not found
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__.co_filename == str(path):
            code = changed.get(_key(function.__code__), function.__code__)
            if code is None or code.co_freevars != function.__code__.co_freevars:
                return False
            function.__code__ = code
    return True


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    yield _key(code), code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno
