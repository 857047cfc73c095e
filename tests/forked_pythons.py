"""Python programs that are forked from the server of `tests/forking.py`, not started: a start takes
three to six seconds of a processor to load torch, a fork none.

While `forked` is entered, `subprocess` forks where it is told to run this Python (`python FILE`,
`-m MODULE`, `-c CODE`); all else of `subprocess` works as it does. What such a program starts is
forked as well, and the Python that it becomes by `os.execv` runs in the same process. For tests of
what programs do, not of how they start; one that is to be started is told `executable`.
"""

from __future__ import annotations

import atexit
import io
import multiprocessing.process
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import reduction
from types import ModuleType
from typing import Any
from unittest import mock

from tests import forking

_start = subprocess.Popen._execute_child  # pyright: ignore[reportAttributeAccessIssue]
_poll = subprocess.Popen._internal_poll  # pyright: ignore[reportAttributeAccessIssue]
_wait = subprocess.Popen._wait  # pyright: ignore[reportAttributeAccessIssue]
_execv = os.execv


@contextmanager
def forked() -> Iterator[None]:
    """Engines too: what the program asks `multiprocessing` to spawn."""
    with ExitStack() as stack:
        if forking.POSSIBLE:
            for name, method in (
                ("_execute_child", _fork),
                ("_internal_poll", _polled),
                ("_wait", _waited),
            ):
                stack.enter_context(mock.patch.object(subprocess.Popen, name, method))
            stack.enter_context(mock.patch.object(os, "execv", _become))
        stack.enter_context(forking.forked())
        stack.enter_context(mock.patch.object(forking, "entered", [forked]))
        yield


class _Descriptor:
    """Goes to another process with the arguments of its function; it is another number there."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self._number),)


def _received(sent: Any) -> int:
    return sent.detach()


def _fork(self: Any, args: Any, *others: Any) -> None:
    (executable, preexec, _, _, cwd, env, _, _, shell, *pipes) = others[:15]
    new_session = others[-2]
    words = [os.fsdecode(word) for word in args] if isinstance(args, list | tuple) else []
    is_python = len(words) > 1 and words[0] == sys.executable
    if is_python and words[1].startswith("-"):
        is_python = words[1] in ("-m", "-c", "-u")
    if not is_python or executable or preexec or shell:
        return _start(self, args, *others)
    in_read, in_write, out_read, out_write, error_read, error_write = pipes
    given = [
        own if other == -1 else other for own, other in enumerate((in_read, out_write, error_write))
    ]
    begun, begins = os.pipe()
    process = forking.Process(
        target=_run,
        args=(words[1:], os.fspath(cwd or os.getcwd()), new_session,
              [_Descriptor(each) for each in given], _Descriptor(begins)),
        environment=dict(os.environ if env is None else env),
    )  # fmt: skip
    with mock.patch.dict(sys.modules, __main__=ModuleType("__main__")):  # it is not run again
        process.start()
    multiprocessing.process._children.discard(process)  # pyright: ignore
    os.close(begins)
    self.pid, self._forked, self._child_created = process.pid, process, True
    self._close_pipe_fds(in_read, in_write, out_read, out_write, error_read, error_write)
    os.read(begun, 1)  # until it has its session and its pipes, as after the start of a program
    os.close(begun)


def _polled(self: Any, *others: Any, **named: Any) -> int | None:
    if not hasattr(self, "_forked"):
        return _poll(self, *others, **named)
    if self.returncode is None:
        self.returncode = self._forked.exitcode
    return self.returncode


def _waited(self: Any, timeout: float | None) -> int:
    if not hasattr(self, "_forked"):
        return _wait(self, timeout)
    self._forked.join(timeout)
    code = _polled(self)
    if code is None:
        raise subprocess.TimeoutExpired(self.args, timeout or 0)
    return code


def _run(words: list[str], folder: str, new_session: bool, given: list[int], begins: int) -> None:
    if new_session:
        os.setsid()
    os.chdir(folder)
    for number, descriptor in enumerate(given):
        os.dup2(descriptor, number)
    for descriptor in {*given, begins}:
        if descriptor > 2:
            os.close(descriptor)
    forking.begin_plainly()
    sys.stdin = os.fdopen(0, closefd=False)
    if words[0] == "-u":
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", 0, closefd=False), write_through=True)
        del words[0]
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads:  # torch reads it when it is loaded
        import torch

        torch.set_num_threads(int(threads))
    forking.run_to_its_end(_program(words, folder))


def _become(path: str, args: list[str]) -> None:
    if path != sys.executable:
        _execv(path, args)
    sys.stdout.flush()
    atexit._clear()
    forking.begin_plainly()
    forking.run_to_its_end(_program(args[1:], os.getcwd()))


def _program(words: list[str], folder: str) -> Callable[[], None]:
    """What Python runs for these words of its command line."""
    kind, *rest = words
    module = ModuleType("__main__")
    sys.modules["__main__"] = module

    def program() -> None:
        if kind == "-m":
            sys.argv, sys.path[:0] = rest, [folder]
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        elif kind == "-c":
            sys.argv, sys.path[:0] = ["-c", *rest[1:]], [""]
            exec(compile(rest[0], "<string>", "exec"), vars(module))
        else:
            module.__file__, sys.argv = kind, words
            sys.path[:0] = [os.path.dirname(os.path.realpath(kind))]
            with open(kind, "rb") as file:
                exec(compile(file.read(), kind, "exec"), vars(module))

    return program
