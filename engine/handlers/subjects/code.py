"""A module of the user's code as a subject: of the console, or of a Python file."""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ...project.subject import (
    CodeSubject,
    ConsoleSubject,
    FileSubject,
    holds_model,
    split_reference,
)
from ...protocol import StepSnapshot
from ...protocol.exporting.formats import Format
from ...restoring.held_objects import reached
from ...restoring.module_kept import module_kept
from ...restoring.random_states import drawn_from
from ...subjects.code_modules import CodeModule
from ...subjects.function import FunctionModule
from ...subjects.python_file import PythonFile
from ...system.errors import LabError
from ...system.signatures import required_parameters
from ...training.objectives.catalogue_data import CatalogueData
from ...training.objectives.code_data import CodeData
from ...training.objectives.code_objective import CodeObjective, Step, compile_step
from ...training.objectives.loss_steps import loss_step
from ...training.objectives.objective import Objective
from ...training.objectives.usual_steps import UsualStep, described, usual_call, write_step
from .subject import Drawn, Subject, file_of, first_batch

if TYPE_CHECKING:
    from ...exporting.examples import Example
    from ...exporting.package import Code

_Make = Callable[[], CatalogueData | CodeData]


@dataclass
class CodeModel(Subject):
    """A module among the user's variables, or one that an expression of them makes. It is found at
    once: raises LabError if there is none."""

    reference: CodeSubject
    found: CodeModule = field(init=False)

    def __post_init__(self) -> None:
        self.found = self._find()
        self.lab.subjects.watching.follow(self.reference, self.found.module)

    @abstractmethod
    def _find(self) -> CodeModule: ...

    @property
    def module(self) -> nn.Module:
        return self.found.module

    def take(self) -> nn.Module:
        return self.module

    def forget_weights(self) -> None:
        self.lab.subjects.forget(self.reference)
        self.__post_init__()

    def fresh(self) -> CodeModel:
        with self.lab.subjects.made_anew(self.reference):
            made = replace(self)
        self.__post_init__()  # it is the one from before
        return made

    @property
    def variables(self) -> Mapping[str, Any]:
        return self.found.variables

    @property
    def made(self) -> bool:
        return self.found.made

    @property
    def own_step(self) -> Callable[..., Any] | None:
        step = self.variables.get("step")
        return step if inspect.isfunction(step) else None

    # -- batches and loss ------------------------------------------------------------------------

    def data(self) -> CatalogueData | CodeData:
        return self._data()()

    def _data(self, is_look: bool = False, validates: bool = True) -> _Make:
        """What makes the batches, each time with a loader of its own; what the user names as data
        is computed once, now, that for validation only if it `validates`."""
        written, training = self.written, self.training
        if written.of_setup:
            return lambda: CatalogueData(training, self.given_objects())
        if not written.data:
            raise LabError(
                f"There is no data to train {self.title} on.",
                hint="Choose a data set under Train, or name a Dataset, a DataLoader or tensors of"
                " your code.",
            )
        data = self.value(written.data, is_look)
        validates = validates and bool(written.validation)
        validation = self.value(written.validation, is_look) if validates else None
        size, loading = training.batch_size, training.data.loading
        share = training.data if training.data.hold_out and not written.validation else None
        named = written.data, written.validation if validates else ""
        files = [file_of(self.lab, expression) for expression in named]
        modules = [None if file is None else file.modules for file in files]
        return lambda: CodeData(
            data, validation, size, loading, self.given_objects(), share, *modules
        )

    def objective(self, *, is_look: bool = False) -> CodeObjective:
        make = self._data(is_look)
        step, source = self._step(make)
        logging = self.lab.console.namespace.lab.logging
        known = [*reached(step), *self.module.modules()]
        return CodeObjective(step, make(), logging=logging, reached=known, source=source)

    def _step(self, make: _Make) -> tuple[Step, str]:
        """The step as it is written; else the function `step` of the subject's own code, if it has
        one; else one that fits the first batch. With its source, "" for the subject's own."""
        own = self.own_step
        if self._is_step_written or own is None:
            source = self.written.step
            if not source:
                data = make()
                with self.running(data.generators):
                    source = self._write_step(data, first_batch(data.batches(0, 0))).source
            variables = {"lab": self.lab.console.namespace.lab, **self.variables}
            return compile_step(source, self.module, variables), source
        takes = len(required_parameters(own))
        if takes == 2:
            return functools.partial(own, self.module), ""
        if takes == 1:
            if "model" not in own.__globals__ and _reads_global(own, "model"):
                raise LabError(
                    "`step` of your code uses `model`, and there is no such variable in its file.",
                    hint="Let it take the model: def step(model, batch).",
                )
            return own, ""
        raise LabError(
            f"`step` of your code takes {takes} arguments.",
            hint="Write step(batch) or step(model, batch).",
        )

    @property
    def _is_step_written(self) -> bool:
        """Whether the step is not the one that its own code may define."""
        return bool(self.written.step) or self.written.loss_of_setup

    def _write_step(self, data: CatalogueData | CodeData, batch: Any) -> UsualStep:
        """The step for the first batch: with the loss of the set-up, or the usual one that fits."""
        if not self.written.loss_of_setup:
            return write_step(self.module, batch)
        dataset = data.dataset if isinstance(data, CatalogueData) else None
        kind, params = self.training.loss, self.training.loss_params
        return loss_step(self.module, batch, kind, params, self.variables, dataset)

    def usual_step(self) -> StepSnapshot:
        data = self._data(validates=False)()
        with self.running(data.generators):
            batch = first_batch(data.batches(0, 0))
            if self.own_step is not None and not self.written.loss_of_setup:
                return StepSnapshot(task="step of your code", source="", batch=described(batch))
            written = self._write_step(data, batch)
        return StepSnapshot(task=written.task, source=written.source, batch=described(batch))

    @contextmanager
    def on_first_batch(self) -> Iterator[tuple[Any, Callable[[], Any]]]:
        """Where the program would write the step, the model runs by itself: to write a step is one
        run more of the user's code."""
        if self._is_step_written or self.own_step is not None:
            with super().on_first_batch() as first:
                yield first
            return
        data = self._data(validates=False)()
        with self.running(data.generators):
            batch = first_batch(data.batches(0, 0))
            yield batch, usual_call(self.module, batch)

    # -- files -----------------------------------------------------------------------------------

    def refusal(self, format: Format) -> LabError | None:
        if format != "py":
            return None
        return LabError(
            "Only a model of blocks is written as Python: yours is Python already.",
            hint="Export its weights, or a package (.zip) with your file in it.",
        )

    @property
    def python(self) -> str:
        refused = self.refusal("py")
        assert refused is not None
        raise refused

    def example(self) -> Example:
        """The call that the first batch of its data leads to."""
        if not self.has_data:
            raise LabError(
                f"There is no batch to call {self.title} with.",
                hint="Name its data under Train, or with --data: a program is written from one"
                " run.",
            )
        from ...exporting.examples import captured

        with self.on_first_batch() as (_, run), module_kept(self.module, training=False):
            found = captured(self.module, run)
        return found.of_size(2) if found.size == 1 else found

    def package_code(self, still: nn.Module, example: Example) -> tuple[Code, str]:
        """What has no file of Python becomes a program."""
        from ...exporting import package
        from ...exporting.programs import exported, scripted

        if isinstance(still, torch.jit.ScriptModule):
            return package.of_script(scripted(still)), ""
        program = exported(still, example)
        return package.of_program(program), program.fixed

    def script(self, objective: Objective, drawn: Drawn, path: Path) -> tuple[str, dict[str, Any]]:
        from ...exporting.code_data_lines import Expression, Expressions
        from ...exporting.code_names import CodeNames
        from ...exporting.code_script import CodeSubject, code_script_of
        from ...exporting.train_script import data_of

        assert isinstance(objective, CodeObjective)
        own = self._own_file()
        if isinstance(self.module, FunctionModule):
            raise LabError(
                f"{self.title} is a function of tensors, which only the program trains as a"
                " module.",
                hint="Write a class of nn.Module that calls it, and choose that.",
            )
        written, setup, lab = self.written, self.training, self.lab

        def read(text: str) -> Expression:
            found = split_reference(text)
            if found is None:
                return Expression(text, own)
            return Expression(found[1], lab.subjects.file(Path(found[0])))

        text = self.reference.expression
        calls = any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(text)))
        data = objective.loaded
        saved = dict[str, Any](data_of(data.dataset)) if isinstance(data, CatalogueData) else {}
        own_data, own_validation = written.data, written.validation
        if written.of_setup:
            own_data = own_validation = ""
        named = Expressions(
            data=read(own_data) if own_data else None,
            validation=read(own_validation) if own_validation else None,
            given={name: read(text) for name, text in setup.data.loading.given.items()},
        )
        step_takes = 0
        if not objective.source and self.own_step is not None:
            step_takes = len(required_parameters(self.own_step))
        found = CodeSubject(
            title=self.title,
            module=self.module,
            expression=Expression(text.strip(), own),
            makes=self.made and not calls,
            step_takes=step_takes,
            named=named,
        )
        files = [each.file for each in (found.expression, named.data) if each and each.file]
        if path.absolute() in [file.path for file in files]:
            raise LabError(
                f"{path.name} is your own file.", hint="Give the script another name, or folder."
            )
        namespace = lab.console.namespace
        names = CodeNames(namespace.journal.cells, namespace.variables, saved)
        before = drawn_from(*drawn)
        return code_script_of(found, setup, objective, names, path, before, drawn.after), saved

    def _own_file(self) -> PythonFile | None:
        """The file of Python that makes it. Raises LabError for one that does not."""
        return None


def _reads_global(function: Callable[..., Any], name: str) -> bool:
    found = dis.get_instructions(function)
    return any(each.opname == "LOAD_GLOBAL" and each.argval == name for each in found)


@dataclass
class ConsoleModel(CodeModel):
    """Of the console's variables."""

    reference: ConsoleSubject

    def _find(self) -> CodeModule:
        namespace = self.lab.console.namespace
        namespace.make_modules_current()
        seed = self.training.seed
        return self.lab.subjects.of_console(self.reference, seed, namespace.variables)

    def console_names(self) -> tuple[list[str], str]:
        given = self.training.data.loading.given.values()
        named = [*self.written.expressions, *given, self.reference.expression]
        return named, self.written.step or "step"


@dataclass
class FileModel(CodeModel):
    """Of a Python file that has run, or of a file that holds a model."""

    reference: FileSubject

    def _find(self) -> CodeModule:
        lab = self.lab
        return lab.subjects.of_file(self.reference, self.training.seed, lab.output(), lab.control)

    def package_code(self, still: nn.Module, example: Example) -> tuple[Code, str]:
        if holds_model(self.reference.path) or isinstance(self.module, FunctionModule):
            return super().package_code(still, example)
        from ...exporting import package

        file = self.lab.subjects.file(Path(self.reference.path))
        root = file.path.parent
        while (root / "__init__.py").is_file():
            root = root.parent
        files = {}
        for path, digest in {file.path: file.digest, **file.imports}.items():
            data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() != digest:
                raise LabError(
                    f"{path.name} has changed since it ran.",
                    hint=f"Run {path.name} again, then export.",
                )
            files[path.relative_to(root).as_posix()] = data
        name = file.path.relative_to(root).as_posix()
        return package.of_file(name, files, self.reference.expression, not self.made), ""

    def _own_file(self) -> PythonFile:
        if holds_model(self.reference.path):
            raise LabError(
                f"{Path(self.reference.path).name} holds a model, and no Python that makes it.",
                hint="Choose the module of a Python file, and load the weights into it.",
            )
        return self.lab.subjects.file(Path(self.reference.path))
