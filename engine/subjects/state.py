"""The files that have run, and the modules that expressions have made, by what they came from."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..console.output import Output
from ..console.resolve import UnknownName, resolve, resolve_all
from ..loops.loop_looks import Tables
from ..loops.updates import Updates
from ..loops.watching import Watching
from ..project.subject import MODEL, CodeSubject, ConsoleSubject, FileSubject, holds_model, title
from ..restoring.module_kept import ModuleState
from ..restoring.randomness import RandomStream
from ..system.control import Control
from ..system.errors import LabError
from ..system.signatures import takes_tensors
from .code_modules import CodeModule, made_module
from .function import FunctionModule
from .model_file import load_model
from .python_file import Around, PythonFile, run_file


@dataclass(frozen=True)
class _Made:
    """A module, and the objects that the names of its expression stood for when it was made."""

    module: nn.Module
    named: Mapping[str, object]


@dataclass
class SubjectState:
    """A class or a call is made into a module once, and that module is kept with its weights until
    a name in the expression stands for another object, the file runs again, or the seed changes."""

    files: dict[Path, PythonFile] = field(default_factory=dict)
    watching: Watching = field(default_factory=Watching)
    updates: Updates = field(default_factory=Updates)
    loop_looks: Tables | None = None
    """The looks at the parameters of the newest loop of a cell or file."""
    shown: Callable[[], nn.Module] | None = None
    """Gives the module of the subject that the workspaces work on; None before one is chosen."""
    before: tuple[str, ModuleState] | None = None
    """The state of a subject's module with its title, kept to be compared with what becomes of
    it."""
    _begins_in: Path | None = None
    _makes: bool = True
    _values: dict[str, tuple[Mapping[str, Any], object]] = field(default_factory=dict)
    _made: dict[tuple[CodeSubject, int], _Made] = field(default_factory=dict)
    _models: dict[Path, tuple[tuple[int, int], nn.Module]] = field(default_factory=dict)
    _functions: dict[CodeSubject, FunctionModule] = field(default_factory=dict)

    def follow_variable(self, variables: Mapping[str, Any]) -> None:
        """A variable of the console that is watched may hold another module by now."""
        subject = self.watching.subject
        if isinstance(subject, ConsoleSubject):
            module = variables.get(subject.expression.strip())
            if isinstance(module, nn.Module):
                self.watching.follow(subject, module)

    def run_file(
        self,
        path: Path,
        output: Output,
        control: Control,
        around: Around = nullcontext,
    ) -> PythonFile:
        """Run the file, also if it has run before. It begins in the folder where the program was
        started, as for `python FILE`; one that it goes to with `os.chdir` stays the current one for
        its functions. Its modules stay current, too. Raises as `python_file.run_file` does."""
        with suppress(FileNotFoundError):  # the folder is gone
            os.chdir(self._begins_in or Path.cwd())
            self._begins_in = Path.cwd()
        file = run_file(path, output, control, around)
        self.files.pop(path.absolute(), None)  # the newest file is the last one
        self.files[path.absolute()] = file
        file.modules.become_current()
        return file

    def file(self, path: Path) -> PythonFile:
        """The file as it ran last. Raises LabError if it has not run: only a RunFileCommand, which
        the user has agreed to, runs a file."""
        known = self.files.get(path.absolute())
        if known is None:
            raise LabError(
                f"{path.name} has not run in this engine.",
                hint=f"“Run {path.name}”, beside the subject, runs it.",
            )
        return known

    def of_console(
        self, subject: ConsoleSubject, seed: int, variables: Mapping[str, Any]
    ) -> CodeModule:
        """The subject among the console's variables, which a name says: an expression is not
        computed. Raises LabError if there is none."""
        if _calls(subject.expression):
            raise LabError(
                f"`{subject.expression}` calls something: a subject of the console is a name.",
                hint="Run it in a cell, and choose the variable: net = Net(10).",
            )
        return self._model(subject, seed, variables, None)

    def of_file(
        self, subject: FileSubject, seed: int, output: Output, control: Control
    ) -> CodeModule:
        """The subject in a file that has run, or that holds a model. Raises LabError if there is
        none, and whatever its code raises."""
        path = Path(subject.path)
        if holds_model(subject.path):
            variables = self._opened(path)
        else:
            file = self.file(path)
            file.modules.become_current()
            variables = file.variables

        def call() -> object:
            return self.value(subject.expression, variables, output, control)

        with self._told_of_files(variables):
            return self._model(subject, seed, variables, call)

    def _opened(self, path: Path) -> Mapping[str, Any]:
        """The names around a model that a file holds; it is opened again when the file is another.
        Raises LabError."""
        try:
            status = path.stat()
        except OSError as error:
            raise LabError(
                f"{path} cannot be read: {error.strerror}.", hint="Choose another model."
            ) from error
        written = status.st_mtime_ns, status.st_size
        known = self._models.get(path)
        if known is None or known[0] != written:
            known = self._models[path] = written, load_model(path)
        return {"torch": torch, MODEL: known[1]}

    def value(
        self, expression: str, variables: Mapping[str, Any], output: Output, control: Control
    ) -> object:
        """The value of any expression among the variables: a name, a call, `(x, y)`. Raises
        LabError for a name that is not there, and whatever its calls raise."""
        if not _computes(expression):
            return self.look_up(expression, variables)
        with output.redirected(), control.user_code():
            return eval(expression, dict(variables))

    def value_once(
        self, expression: str, variables: Mapping[str, Any], output: Output, control: Control
    ) -> object:
        """As `value`, but what the expression computes is computed once until code of the user's
        runs again."""
        if not _computes(expression):
            return self.look_up(expression, variables)
        known = self._values.get(expression)
        if known is None or known[0] is not variables:
            value = self.value(expression, variables, output, control)
            known = self._values[expression] = variables, value
        return known[1]

    def look_up(self, expression: str, variables: Mapping[str, Any]) -> object:
        """The object that a name stands for among the variables, or a tuple of such. Nothing is
        called. Raises LabError as `resolve.resolve_all` does."""
        with self._told_of_files(variables):
            return resolve_all(expression, variables)

    def forget_values(self) -> None:
        """Code of the user's runs: what expressions gave before may not be what they give now."""
        self._values.clear()

    @contextmanager
    def _told_of_files(self, variables: Mapping[str, Any]) -> Iterator[None]:
        """A name that is missing is told as missing in the file whose variables these are."""
        try:
            yield
        except UnknownName as error:
            files = (file.path for file in self.files.values() if file.variables is variables)
            file = next(files, None)
            if file is None:
                raise
            raise UnknownName(
                error.name,
                f" in {file.name}",
                f"Define it in {file.name} and run that file again, or check the spelling; of"
                " another Python file that has run, write FILE.py:NAME.",
            ) from None

    @contextmanager
    def making_nothing(self) -> Iterator[None]:
        """No module is made in this context: code of the user's is running."""
        before, self._makes = self._makes, False
        try:
            yield
        finally:
            self._makes = before

    def forget(self, subject: CodeSubject) -> None:
        """Let the module of the subject be made again, with fresh weights. Raises LabError for an
        object that the user's code has made itself."""
        made = [key for key in self._made if key[0] == subject]
        if not made:
            raise LabError(
                f"`{title(subject)}` was made by your code, so its weights cannot be made afresh.",
                hint="Run the cell or file that makes it again, or choose its class.",
            )
        for key in made:
            del self._made[key]

    @contextmanager
    def made_anew(self, subject: CodeSubject) -> Iterator[None]:
        """In this context the subject has fresh weights, if it is made; afterwards it is the module
        from before."""
        before = {key: made for key, made in self._made.items() if key[0] == subject}
        for key in before:
            del self._made[key]
        try:
            yield
        finally:
            self._made.update(before)

    def _model(
        self,
        subject: CodeSubject,
        seed: int,
        variables: Mapping[str, Any],
        call: Callable[[], object] | None,
    ) -> CodeModule:
        """`call` computes the expression; it is used only if the expression calls something."""
        expression = subject.expression.strip()
        calls, names = _calls(expression), _names(expression)
        value = None if calls else resolve(expression, variables)
        if isinstance(value, nn.Module):
            return CodeModule(value, variables)
        if takes_tensors(value):
            assert callable(value)
            return CodeModule(self._around(subject, value), variables, made=True)
        named = {name: variables.get(name) for name in names}
        made = self._made.get((subject, seed))
        if made is None or any(made.named[name] is not named[name] for name in names):
            if not self._makes:
                raise LabError(
                    f"`{title(subject)}` is made once the code that runs has ended.",
                    hint="Choose the module that the code uses, by its name.",
                )
            if calls and call is not None:
                with RandomStream(seed, torch.device("cpu")):
                    value = call()
            made = self._made[subject, seed] = _Made(made_module(expression, value, seed), named)
        return CodeModule(made.module, variables, made=True)

    def _around(self, subject: CodeSubject, function: Callable[..., Any]) -> FunctionModule:
        """The module around a function: the same one for as long as it has the same parts."""
        module, known = FunctionModule(function), self._functions.get(subject)
        if known is None or not known.is_of(module):
            known = self._functions[subject] = module
        return known


def _names(expression: str) -> set[str]:
    """The names in an expression. Raises LabError."""
    return {node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name)}


def _calls(expression: str) -> bool:
    """Whether an expression calls anything. Raises LabError."""
    return any(isinstance(node, ast.Call) for node in ast.walk(_parsed(expression)))


def _computes(expression: str) -> bool:
    """Whether an expression calls or puts together anything. Raises LabError."""
    nodes = ast.walk(_parsed(expression))
    return any(isinstance(node, ast.Call | ast.Tuple | ast.List) for node in nodes)


def _parsed(expression: str) -> ast.Expression:
    try:
        return ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError):
        raise LabError(
            f"`{expression}` is not a Python expression.", hint="Write a name, or a call: Net(10)."
        ) from None
