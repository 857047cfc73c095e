"""Engines and layout workers that are forked from a server which has loaded torch, not spawned.

A spawned engine takes one to four seconds of a processor to load what a forked one has. That a
spawned one works is what `tests/engine/process/test_engine_process.py`, the tests of the layout
worker and the tests that run the program in a process of its own are for.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from multiprocessing import context
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import NoReturn, TextIO
from unittest import mock

POSSIBLE = sys.platform == "linux"  # elsewhere a process may die if it forks after loading torch

entered: list[Callable[[], AbstractContextManager[None]]] = []
"""What a forked process enters before it does anything, and what it forks does, too."""

_ROOT = Path(__file__).parents[1]
_HANDLERS = [
    ".".join(path.relative_to(_ROOT).with_suffix("").parts)
    for path in _ROOT.glob("engine/handlers/**/[a-z]*.py")
]
_ENGINE = ["engine.server.serve", *_HANDLERS]
# An engine of its own process is `tensorlab.engine`.
_LOADED = ["torch", "torch._dynamo", *_ENGINE, *(f"tensorlab.{name}" for name in _ENGINE)]

if POSSIBLE:
    from multiprocessing import forkserver

    class Process(context.ForkServerProcess):
        """Has the environment of the process that made it, as a spawned one has, or that given."""

        def __init__(self, *arguments, environment: dict[str, str] | None = None, **named) -> None:
            super().__init__(*arguments, **named)
            self._environment = dict(os.environ) if environment is None else environment
            self._entered = list(entered)

        def run(self) -> None:
            os.environ.clear()
            os.environ.update(self._environment)
            if self._entered:  # what it forks in turn comes from the same server
                forkserver._forkserver.ensure_running = lambda: None
            with ExitStack() as stack:
                for manager in self._entered:
                    stack.enter_context(manager())
                super().run()

    class _Context(context.ForkServerContext):
        Process = Process


@contextmanager
def server() -> Iterator[None]:
    """Starts the server and waits until it has loaded all. A test that waits for a worker would
    else wait for torch too, and give up on a busy machine."""
    if POSSIBLE:
        forkserver.set_forkserver_preload([*_LOADED, "widgets.layout"])
        first = _Context().Process(target=int)
        # torch reads it when it is loaded; ranks are told it (`training/distributed/launch.py`)
        with mock.patch.dict(os.environ, TORCH_CPP_LOG_LEVEL="ERROR"):
            first.start()
        first.join()
    yield
    if POSSIBLE:
        forkserver._forkserver._stop()


@contextmanager
def forked() -> Iterator[None]:
    """Where the program asks for processes to be spawned, they are forked."""
    real = multiprocessing.get_context

    def get_context(method: str | None = None):
        return _Context() if POSSIBLE and method == "spawn" else real(method)

    with mock.patch.object(multiprocessing, "get_context", get_context):
        yield


class Program:
    """The program, run with arguments in a forked process that leads a process group; `errors` is
    its standard error, to be read while it runs."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self._output, fifo = folder / "output", folder / "errors"
        os.mkfifo(fifo)
        self._process: BaseProcess = _Context().Process(
            target=_run_program, args=(arguments, self._output, fifo)
        )
        self._process.start()
        self.errors: TextIO = fifo.open()  # waits until the program has opened it, too

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def end(self) -> tuple[int | None, str, str]:
        """Wait for its end; the exit code, and what it wrote to standard output and error."""
        errors = self.errors.read()
        self.errors.close()
        self._process.join()
        return self._process.exitcode, self._output.read_text(), errors


def _run_program(arguments: list[str], output: Path, errors: Path) -> None:
    os.setsid()
    _write_to(output, errors)
    from app import cli

    # A process of the server's has no connection to it: it forks its engine from itself.
    fork = multiprocessing.get_context("fork")
    with mock.patch.object(multiprocessing, "get_context", lambda method=None: fork):
        code = cli.main(arguments)
    sys.stdout.flush()
    sys.exit(code)


def _write_to(output: Path, errors: Path) -> None:
    """Write to these files, and take signals as Python does."""
    for standard, path in ((1, output), (2, errors)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(descriptor, standard)
        os.close(descriptor)
    begin_plainly()


def begin_plainly() -> None:
    """Write to standard output and error, and take signals as Python does."""
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class PythonScript:
    """`python FILE ARGUMENTS` in a forked process, with what of subprocess.Popen the tests call."""

    def __init__(self, path: Path, arguments: tuple[str, ...]) -> None:
        self._fifos = [path.with_suffix(f".{name}") for name in ("out", "err")]
        for fifo in self._fifos:
            os.mkfifo(fifo)
        self._process: BaseProcess = _Context().Process(
            target=_run_script, args=(path, arguments, *self._fifos)
        )
        self._process.start()
        self.stdout, self.stderr = (fifo.open() for fifo in self._fifos)
        self._said = ThreadPoolExecutor(1)
        self._out = self._said.submit(self.stdout.read)  # so that the script never waits for us

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        """And what it has started and left behind, which would keep its output open."""
        self._process.kill()
        for pid in _processes_with_open(self._fifos) - {os.getpid()}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        err = "" if self.stderr.closed else self.stderr.read()
        out = self._out.result(timeout)
        self._process.join(timeout)
        for each in (self.stdout, self.stderr):
            each.close()
        self._said.shutdown()
        return out, err


def _processes_with_open(files: Sequence[Path]) -> set[int]:
    found: set[int] = set()
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it has been closed meanwhile, or is another user's
            if descriptor.readlink() in files:
                found.add(int(descriptor.parts[2]))
    return found


def _run_script(path: Path, arguments: tuple[str, ...], *fifos: Path) -> None:
    """As the interpreter does it, with its main module, and its end."""
    _write_to(*fifos)
    module = ModuleType("__main__")
    module.__file__, sys.argv = str(path), [str(path), *arguments]
    sys.modules["__main__"] = module
    sys.path[:0] = [str(path.parent), str(_ROOT)]
    run_to_its_end(lambda: exec(compile(path.read_text(), str(path), "exec"), vars(module)))


def run_to_its_end(program: Callable[[], object]) -> NoReturn:
    """Call it as Python runs a main module, with all that comes at the end of a process."""
    code: object = 0
    try:
        program()
    except SystemExit as end:
        code = 0 if end.code is None else end.code
        if not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException as error:
        code, sys.last_value = 1, error
        sys.excepthook(type(error), error, error.__traceback__)
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)
