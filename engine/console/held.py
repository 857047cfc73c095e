"""Code of the user's that is held in a frame: its variables, and Python that runs there."""

from __future__ import annotations

import ast
import ctypes
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import FrameType
from typing import Any, Self

from ..project.cells import source_title
from ..protocol import HeldAt, HeldSnapshot
from ..system.control import Control
from ..system.errors import sendable
from ..system.user_files import GENERATED, keep_source, own_name
from .namespace import Namespace
from .output import Output

MAX_SOURCE = 50_000
"""Characters of source in a snapshot; of a longer one, the LINES_AROUND the line are in it."""
LINES_AROUND = 200


class HeldCode:
    """`namespace` has the variables of the frame, the function's own over the module's. `base` is
    the namespace that the code began in."""

    def __init__(self, base: Namespace, frame: FrameType) -> None:
        self._frame = frame
        self._is_module = frame.f_locals is frame.f_globals
        self.namespace = base.with_variables(frame.f_globals if self._is_module else _seen(frame))
        self._kept: dict[str, Any] = {}
        self._suspension = _Suspension(self.namespace.suspended)
        self._runs = 0

    def suspended(self) -> AbstractContextManager[object]:
        """The engine's own work while the code is held, as `Namespace.suspended`."""
        return self._suspension

    def resumed(self) -> AbstractContextManager[None]:
        """Within `suspended`: the modes and random numbers of the code that is held."""
        return self._suspension.resumed()

    def run(
        self, source: str, output: Output, control: Control
    ) -> tuple[BaseException | None, str]:
        """Run Python as if it stood in the line that is held, and write the value of its last
        expression. Returns the exception that ended it, and the name that its frames carry.

        What it assigns to variables of the function changes them. A name that the function does not
        have lasts as long as the code is held here; `output` is told so.
        """
        self._runs += 1
        name = own_name(f"<held {self._runs}>", source)
        keep_source(name, source)
        before, error = dict(self.namespace.variables), None
        try:
            with self.resumed(), control.user_code():
                self.namespace.execute(source, name, output)
        except BaseException as raised:  # user code may raise anything
            error = raised
        if not self._is_module:
            new = self._assign(before, _declared_global(source))
            if new:
                output.write("stderr", self._words_on(new))
        return error, name

    def _assign(self, before: dict[str, Any], declared: set[str]) -> list[str]:
        """Give the frame the variables that have changed. Returns the names that it has not."""
        frame, code = self._frame, self._frame.f_code
        own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)
        now, new = self.namespace.variables, []
        values = frame.f_locals
        for name, value in list(now.items()):
            if name in before and before[name] is value:
                continue
            if name in declared:
                frame.f_globals[name] = value
            elif not is_function or name in own:
                values[name] = value
            else:
                self._kept[name] = value
                new.append(name)
        gone = [name for name in before if name not in now and name in values]
        for name in gone:
            del values[name]
        if is_function and sys.version_info < (3, 13):  # later a frame's f_locals writes through
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), int(bool(gone)))
        now.clear()
        now.update({**self._kept, **_seen(frame)})
        now.update({name: self._kept[name] for name in new})
        return new

    def _words_on(self, new: list[str]) -> str:
        names = ", ".join(new)
        function = self._frame.f_code.co_name
        globals_ = [name for name in new if name in self._frame.f_globals]
        if globals_:
            names = ", ".join(globals_)
            return (
                f"{names}: {function} does not see this change. To change the global, write"
                f" `global {names}` before it.\n"
            )
        it = "it is" if len(new) == 1 else "they are"
        return (
            f"{names}: not among the variables of {function}, so {it} kept only while it is held"
            " here.\n"
        )

    def snapshot(self, at: HeldAt, title: str, after: str = "") -> HeldSnapshot:
        frame = self._frame
        file, line, function = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        source = linecache.getlines(file)
        if sum(map(len, source)) > MAX_SOURCE:
            first = max(0, line - LINES_AROUND)
            source = ["\n"] * first + [text[:200] for text in source[first : line + LINES_AROUND]]
        return HeldSnapshot(
            at=at,
            title=title,
            file=_name_of(file),
            function="" if function == "<module>" else function,
            line=line,
            source=sendable("".join(source)),
            after=sendable(after),
        )


class _Suspension:
    """`with` it, the context that `enter` makes is open, except in `resumed`."""

    def __init__(self, enter: Callable[[], AbstractContextManager[object]]) -> None:
        self._enter, self._stack = enter, ExitStack()
        self._is_resumed = False

    def __enter__(self) -> Self:
        self._stack.enter_context(self._enter())
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @contextmanager
    def resumed(self) -> Iterator[None]:
        if self._is_resumed:  # a hook's code inside the run of its node
            yield
            return
        self._stack.close()
        self._is_resumed = True
        try:
            yield
        finally:
            self._is_resumed = False
            self._stack.enter_context(self._enter())


def _name_of(file: str) -> str:
    if file.startswith(GENERATED):
        return "the canvas"
    return source_title(file)


def _seen(frame: FrameType) -> dict[str, Any]:
    """The variables that code in the frame sees: the function's own first."""
    own = dict(frame.f_locals)
    return {**own, **{name: v for name, v in frame.f_globals.items() if name not in own}}


def _declared_global(source: str) -> set[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()
    return {name for node in tree.body if isinstance(node, ast.Global) for name in node.names}
