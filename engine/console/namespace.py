"""The console's namespace: its variables, and the cells that run in it."""

from __future__ import annotations

import ast
import codeop
import sys
import weakref
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from copy import copy
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..importing.console_modules import ConsoleModules
from ..importing.folder_modules import OWNER
from ..recording.gradient_cuts import GradientCuts
from ..recording.light.light_recorder import LightRecorder
from ..recording.recorder import Recorder
from ..recording.recording import Recordings
from ..recording.threads import threads_counted
from ..recording.writes import Writes
from ..restoring.random_states import torch_states_kept
from ..system.control import Control
from ..system.errors import CodeExit, LabError
from ..system.private_torch import (
    disable_current_modes,
    len_torch_function_stack,
    pop_torch_function_stack,
    push_on_torch_function_stack,
)
from ..system.user_files import keep_source, own_name
from ..tensors.reach import Reached, reach
from ..tensors.storages import Storages
from .breakpoint_calls import breakpoints_told
from .journal import Journal
from .left_by_cells import UsersModes, WorkingFolder
from .output import Output
from .resolve import resolve
from .users_lab import UsersLab


class Namespace:
    """A module in which cells run one after the other; it starts with `torch`, `nn`, `F`, `np`,
    `lab` and, if there is one, `canvas`. `named` gives what has a name in the cells without being a
    variable, `subject` the module that is `lab.subject`; cells import `modules`.

    While a cell runs, the module is `__main__`, so that classes defined in it can be pickled and
    `if __name__ == "__main__":` holds. The grad mode, default dtype and default device that a cell
    sets hold for later cells, but not for the rest of the engine. Every cell is added to `journal`.
    """

    def __init__(
        self,
        journal: Journal | None = None,
        folder: WorkingFolder | None = None,
        canvas: object = None,
        named: Callable[[], Mapping[str, object]] = dict,
        subject: Callable[[], nn.Module] | None = None,
        modules: ConsoleModules | None = None,
    ) -> None:
        self.modules = modules or ConsoleModules()
        self.journal = journal or Journal()
        self.folder = folder or WorkingFolder()
        self.module = ModuleType("__main__")
        self.variables: dict[str, Any] = self.module.__dict__
        self.lab = UsersLab(subject)
        self.variables.update(torch=torch, nn=nn, F=F, np=np, lab=self.lab)
        if canvas is not None:
            self.variables["canvas"] = canvas
        self._named = named
        self.initial = dict(self.variables)  # what there is before the user's first cell
        self.storages = Storages()
        self.silent = weakref.WeakSet[type]()  # classes whose objects hang when asked what they are
        self.records = True
        """Whether cells are recorded: without, loops run as fast as in plain Python."""
        self.writes = Writes()
        self.recordings = Recordings()  # the calls of each cell, to name the nodes of its graphs
        self._cuts = GradientCuts()
        self._next_recorder: Callable[..., Recorder | LightRecorder] = LightRecorder
        # Context managers around each cell, made from the file name that its frames carry.
        self.around: list[Callable[[str], AbstractContextManager[object]]] = [
            lambda _: threads_counted(),
            self.recorded,
        ]
        self._modes = UsersModes()
        # Keeps the `from __future__ import`s of earlier cells. Called like `compile`.
        self._compile: Callable[..., CodeType] = codeop.Compile()
        self.cells_run = 0

    def run(
        self, source: str, filename: str, output: Output, control: Control
    ) -> tuple[BaseException | None, str]:
        """Run a cell. Returns the exception that ended it, and the name that its frames carry. The
        exception is None after a normal end, and after an exit with code 0.

        If the last statement is an expression, the repr of its value goes to `output` as "result",
        unless the value is None.
        """
        name = self.next_name(filename, source)
        self.cells_run += 1
        title = f"Cell {self.cells_run}" if filename == "<cell>" else Path(filename).name
        self.lab.begin_cell()
        keep_source(name, source)
        try:
            with (
                self.journal.cell(self, source, title),
                output.redirected(),
                breakpoints_told(),
                self.as_main(name),
                self.folder.current(),
                self._modes.users(),
                ExitStack() as stack,
            ):
                for enter in self.around:
                    stack.enter_context(enter(name))
                with control.user_code():
                    self.execute(source, name, output)
        except BaseException as error:  # user code may raise anything
            if not isinstance(error, CodeExit) or not error.is_success:
                return error, name
            if filename == "<cell>":
                output.write("stderr", "exit() ended this cell. The variables stay.\n")
        return None, name

    def next_name(self, filename: str, source: str) -> str:
        """The name that the frames of the next cell will carry, if it is this source."""
        if filename == "<cell>":
            return f"<cell {self.cells_run + 1}>"
        return own_name(filename, source) if filename.startswith("<") else filename

    def name_of(self, value: object) -> str:
        """The name of the variable that holds this object; empty if none does."""
        named = self.with_named().items()
        return next((name for name, held in named if held is value), "")

    def tensors(self) -> dict[str, torch.Tensor]:
        """The variables that are tensors, in the order they were made."""
        return {
            name: value
            for name, value in list(self.variables.items())
            if isinstance(name, str) and issubclass(type(value), torch.Tensor)
        }

    def reached(self) -> Reached:
        """The tensors and arrays among the variables, and those inside other variables."""
        return reach(self.with_named())

    def named(self) -> Mapping[str, object]:
        """Objects that have a name in the console without being variables, unless the user has
        shadowed it."""
        canvas = self.initial.get("canvas")
        is_canvas = canvas is not None and self.variables.get("canvas") is canvas
        return self._named() if is_canvas else {}

    def with_named(self) -> dict[str, Any]:
        return {**self.variables, **self.named()}

    def resolve(self, expression: str) -> object:
        """The object that `expression` names, as `resolve.resolve` finds it: `lab` is known also
        where no variable has that name. Raises LabError."""
        return resolve(expression, ChainMap(self.variables, {"lab": self.lab}))

    def tensor(self, expression: str) -> torch.Tensor:
        """The tensor that `expression` names. Raises LabError for any other object."""
        value = self.resolve(expression)
        if not issubclass(type(value), torch.Tensor):
            raise LabError(
                f"`{expression}` is {_a(type(value).__name__)}, not a tensor.",
                hint="Choose a tensor in the list of variables.",
            )
        return value  # pyright: ignore[reportReturnType]

    def evaluate(self, expression: str, control: Control) -> object:
        """The value of any expression, computed in the modes of the user's cells. It is recorded
        like a cell whose name is the expression. Raises LabError if the expression raises."""
        name = own_name(f"<{expression}>", expression)
        keep_source(name, expression)
        try:
            code = self._compile(expression, name, "eval")
            with self.folder.current(), self._modes.users(), ExitStack() as stack:
                stack.enter_context(self._imports())
                for enter in self.around:
                    stack.enter_context(enter(name))
                with control.user_code():
                    return eval(code, self.variables)
        except Exception as error:  # user code may raise anything
            raise LabError(
                f"`{expression}` cannot be computed: {type(error).__name__}: {error}",
                hint="Choose a variable of the console, or check the spelling.",
            ) from error

    def with_variables(self, variables: dict[str, Any]) -> Namespace:
        """This namespace with the variables of a frame, and nothing entered around what runs."""
        other = copy(self)
        other.variables, other.around = variables, []
        return other

    def of_module(self, module: ModuleType) -> Namespace:
        """This namespace with another module's variables, to look at them while the module runs. It
        begins in the modes that are set now."""
        other = self.with_variables(module.__dict__)
        other.module, other._modes = module, UsersModes()
        return other

    def users_modes(self) -> AbstractContextManager[None]:
        """The grad mode, default dtype and default device that the next cell will run in."""
        return self._modes.users()

    def users_defaults(self) -> AbstractContextManager[None]:
        """The default dtype and device that the next cell will run in."""
        return self._modes.defaults()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """The engine's own work while a cell is held: in the engine's modes, seen by no mode of the
        cell's, and without a change to the random numbers that torch draws for it."""
        modes = [pop_torch_function_stack() for _ in range(len_torch_function_stack())]
        try:
            with (
                disable_current_modes(),
                torch.inference_mode(False),
                self._modes.engines(),
                torch_states_kept(),
            ):
                yield
        finally:
            for mode in reversed(modes):
                push_on_torch_function_stack(mode)

    def execute(self, source: str, name: str, output: Output) -> None:
        """Run Python among the variables, with nothing around it."""
        tree = ast.parse(source, name)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr):
            exec(self._compile(tree, name, "exec"), self.variables)
            return
        del tree.body[-1]
        exec(self._compile(tree, name, "exec"), self.variables)
        result = eval(self._compile(ast.Expression(last.value), name, "eval"), self.variables)
        if result is not None:
            output.write("result", f"{result!r}\n".encode(errors="backslashreplace").decode())

    @contextmanager
    def recorded_by(self, recorder: Callable[..., Recorder | LightRecorder]) -> Iterator[None]:
        """While this context is open, `recorder(**options)` records the cells; otherwise a
        LightRecorder does."""
        self._next_recorder = recorder
        try:
            yield
        finally:
            self._next_recorder = LightRecorder

    @contextmanager
    def recorded(self, cell: str) -> Iterator[None]:
        """Record what runs in this context, under the name that the frames of its code carry, if
        the user wants it or `recorded_by` is open."""
        if not self.records and self._next_recorder is LightRecorder:
            yield
            return
        with self.writes.watch(cell, lambda: self.reached().tensors().values()) as watch:
            recorder = self._next_recorder(modules=self.name_of, watch=watch, cuts=self._cuts)
            before, self.recordings.running = self.recordings.running, recorder.recording
            try:
                with recorder:
                    yield
            finally:
                self.recordings.running = before
                self.recordings.add(recorder.recording)

    @contextmanager
    def as_main(self, name: str = "") -> Iterator[None]:
        """Make the namespace's module `__main__`. A cell that is a file has `sys.argv`, and imports
        the modules in its folder, as with `python FILE`."""
        main, argv = sys.modules["__main__"], sys.argv
        sys.modules["__main__"] = self.module
        file = Path(name)
        is_file = bool(name) and file.is_file()
        if is_file:
            self.variables["__file__"] = name
            sys.argv = [name]
        try:
            with self._imports(file.resolve().parent if is_file else None):
                yield
        finally:
            sys.modules["__main__"], sys.argv = main, argv

    def make_modules_current(self) -> None:
        """From now on the modules that cells have imported are current."""
        found = self.modules.at(self.folder.entered)
        if found is not None:
            found.become_current()

    def _imports(self, of_file: Path | None = None) -> AbstractContextManager[None]:
        """In this context the modules are current that cells import, or a file in this folder."""
        found = self.modules.at(str(of_file or self.folder.entered), is_file=of_file is not None)
        if found is None:
            return nullcontext()
        self.variables[OWNER] = found
        return found.current()


def _a(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
