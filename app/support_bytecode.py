"""PySide's own support modules, imported in less time: their bytecode is kept between starts, and
their long patterns are compiled when they are used.

PySide has these modules as sources in its library and compiles them at each import, which takes a
fifth of the time of an empty window. Python keeps bytecode only of modules that are files, so a
file in the user's cache folder keeps theirs. Source that changed is compiled again.

Three regular expressions of theirs, of 6,000 characters each, take another eighth. They are for the
words of a TypeError and for writing `.pyi` files.
"""

# No `from __future__` here: what the built-in `compile` is called with below would inherit it.
import builtins
import marshal
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from types import CodeType
from typing import Any

import platformdirs

from engine.project.atomic import read_regular, write_atomically

_SOURCES = ("shibokensupport/", "signature_bootstrap.py")
_MAX_BYTES = 10_000_000

Codes = dict[str, tuple[bytes, CodeType]]
"""By the name of the source: its hash, and its bytecode."""


def cache_file() -> Path:
    name = f"pyside-support.{sys.implementation.cache_tag}-{sys.flags.optimize}.bytecode"
    return Path(platformdirs.user_cache_dir("tensorlab", appauthor=False)) / name


@contextmanager
def support_bytecode(file: Path) -> Iterator[None]:
    """While this is open, PySide's support modules come from `file` where it has them; it gets
    those that it lacks. A file that cannot be read or written costs only time."""
    known = _read(file)
    codes = dict(known)

    def compile_once(source: Any, filename: Any, mode: str, *rest: Any, **options: Any) -> Any:
        if mode != "exec" or rest or options or not str(filename).startswith(_SOURCES):
            return plain(source, filename, mode, *rest, **options)
        key = source_hash(source.encode() if isinstance(source, str) else bytes(source))
        if filename not in codes or codes[filename][0] != key:
            codes[filename] = key, plain(source, filename, mode)
        return codes[filename][1]

    plain = builtins.compile
    builtins.compile = compile_once
    try:
        yield
    finally:
        builtins.compile = plain
    if codes != known and not sys.dont_write_bytecode:
        data = marshal.dumps(codes)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, MAGIC_NUMBER + source_hash(data) + data, private=True)


def _read(file: Path) -> Codes:
    """The contents of the file, if it is whole and of this Python."""
    try:
        data = read_regular(file, _MAX_BYTES)
    except OSError:
        return {}
    head = len(MAGIC_NUMBER)
    magic, check, codes = data[:head], data[head : head + 8], data[head + 8 :]
    if magic != MAGIC_NUMBER or check != source_hash(codes):
        return {}
    return marshal.loads(codes)


class LatePattern:
    """Does what the compiled pattern does; a method of it compiles the pattern when it is called.
    PySide takes the methods at once."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._given)

    def __getattr__(self, name: str) -> Any:
        if callable(getattr(re.Pattern, name)):
            return lambda *given, **named: getattr(self._compiled, name)(*given, **named)
        return getattr(self._compiled, name)


@contextmanager
def late_patterns() -> Iterator[None]:
    """While this is open, what PySide's support modules compile is a LatePattern."""
    plain = re.compile

    def compile_late(pattern: Any, flags: int = 0) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(_SOURCES):
            return LatePattern(pattern, flags)
        return plain(pattern, flags)

    re.compile = compile_late
    try:
        yield
    finally:
        re.compile = plain
