"""The one interface of all that a workspace can work on."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ...lab import Lab
from ...project.document import TrainingSetup
from ...project.subject import Objective as Written
from ...project.subject import Subject as Reference
from ...project.subject import split_reference, title
from ...protocol import StepSnapshot
from ...protocol.exporting.formats import Format
from ...restoring.random_states import States
from ...restoring.randomness import RandomStream
from ...subjects.python_file import PythonFile
from ...subjects.structure import optimizers_among
from ...system.errors import LabError
from ...training.objectives.loaders import Given, given_by
from ...training.objectives.objective import Objective

if TYPE_CHECKING:
    from ...exporting.examples import Example
    from ...exporting.package import Code
    from ...models.forward import ForwardPass
    from ...training.objectives.catalogue_data import CatalogueData
    from ...training.objectives.code_data import CodeData


class Drawn(NamedTuple):
    """The states of the random generators before the data of a run was made, and after."""

    before: States
    after: States


@dataclass
class Subject(ABC):
    """What a command works on. `reference` is what the document says of it, `training` the set-up
    of the command, and `written` how code gets its batches and its loss.

    What runs the user's code raises whatever that raises. What only files need is imported with the
    first one that is written.
    """

    lab: Lab
    reference: Reference
    training: TrainingSetup
    written: Written

    @property
    def title(self) -> str:
        return title(self.reference)

    # -- the module ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def module(self) -> nn.Module:
        """The module with the weights of now."""

    @abstractmethod
    def take(self) -> nn.Module:
        """The module, for a cell, which may change it."""

    def check(self) -> None:
        """Raises LabError if it is known, without running it, that the module cannot run."""
        return

    @abstractmethod
    def forget_weights(self) -> None:
        """Let it have fresh weights, from the training's seed. Raises LabError for an object that
        the user's own code has made."""

    @abstractmethod
    def fresh(self) -> Subject:
        """The same with a module of its own that has fresh weights. An object that the user's own
        code has made is itself."""

    def on_trial(self) -> Subject:
        """The subject to train on trial, in a ModuleState; a model of blocks as the seed makes
        it."""
        return self

    def forward(self) -> ForwardPass | None:
        """The forward pass under way that a backward pass begins from; None where a step is run for
        it. Raises LabError if there is none."""
        return None

    @property
    def saved_beside(self) -> bool:
        """Whether the window saves its weights beside the project."""
        return False

    # -- its code --------------------------------------------------------------------------------

    @property
    def made(self) -> bool:
        """Whether the program made the module of the user's code: by a call, or around a
        function."""
        return False

    @property
    def own_step(self) -> Callable[..., Any] | None:
        """The function `step` of its own code, if it has one."""
        return None

    @property
    @abstractmethod
    def variables(self) -> Mapping[str, Any]:
        """The names of the code around it."""

    def optimizers(self) -> dict[str, Optimizer]:
        """Those among its variables, by their names."""
        return optimizers_among(self.variables)

    def console_names(self) -> tuple[list[str], str]:
        """Expressions of the console that it is had by, and the source of its step: what another
        process has to be given."""
        return [], ""

    def value(self, expression: str, is_look: bool = False) -> object:
        """The value of an expression among the variables, or in a file that it names. For a look,
        it is computed once until code of the user's runs again. Raises LabError."""
        return value_of(self.lab, expression, self.variables, is_look)

    # -- batches and loss ------------------------------------------------------------------------

    @property
    def has_data(self) -> bool:
        return self.written.has_data

    @abstractmethod
    def data(self) -> CatalogueData | CodeData:
        """Batches without a loss. Raises LabError if there is no such data."""

    @abstractmethod
    def objective(self, *, is_look: bool = False) -> Objective:
        """Where batches and loss of a run come from. For a look (`is_look`), what the expressions
        of the data compute is computed once until code of the user's runs again. Raises LabError if
        the data or the step cannot be used."""

    @abstractmethod
    def usual_step(self) -> StepSnapshot:
        """The step of the usual task that fits the first batch. Raises LabError if none does."""

    def given_objects(self) -> Given:
        """The arguments of the DataLoader that the user's code has."""
        return given_by(self.training.data.loading, self.value)

    @contextmanager
    def running(self, generators: Sequence[torch.Generator]) -> Iterator[None]:
        """In this context the user's code runs, and the random numbers are those with which a run
        begins: a batch drawn in it is the first of the run's. Afterwards the global generators, and
        these of the data's own, stand where they stood."""
        stream = RandomStream(self.training.seed, torch.device("cpu"), generators)
        with self.lab.users_code(), stream:
            yield

    @contextmanager
    def on_first_batch(self) -> Iterator[tuple[Any, Callable[[], Any]]]:
        """In this context, as `running`: the first batch, and what runs the module on it."""
        objective = self.objective()
        with self.running(objective.generators):
            batch = first_batch(objective.batches(0, 0))
            yield batch, functools.partial(objective.outcome, batch)

    # -- files -----------------------------------------------------------------------------------

    def refusal(self, format: Format) -> LabError | None:
        """Why this subject cannot be exported in a format, if it is known before."""
        return None

    @property
    @abstractmethod
    def python(self) -> str:
        """A file of Python that defines the module. Raises LabError where the user has it."""

    @abstractmethod
    def example(self) -> Example:
        """The call that a program is written from. Raises LabError if there is no data."""

    @abstractmethod
    def package_code(self, still: nn.Module, example: Example) -> tuple[Code, str]:
        """The code of a package with the module, which is `still` now (`examples.still`), and why
        its number of samples is fixed ("" if it is free). Raises LabError."""

    @abstractmethod
    def script(self, objective: Objective, drawn: Drawn, path: Path) -> tuple[str, dict[str, Any]]:
        """The script of a run that is to lie at `path`, and what lies beside it besides the
        weights. Raises LabError for what no script can have."""

    def prove(self, script: str, path: Path) -> None:
        """Raises LabError if the module that the script defines is known to be another."""
        return


def require_agreement(lab: Lab, code: str) -> None:
    """Raises LabError unless the user has agreed to the Python of the document."""
    if lab.unagreed:
        raise LabError(
            f"“{code}” stands in the file that was opened. Nothing of it runs until you say so.",
            hint="“Allow its Python”, above the page, does; `--run-cells` on the command line.",
        )


def value_of(
    lab: Lab,
    expression: str,
    variables: Mapping[str, Any],
    is_look: bool = False,
    calls: bool = True,
) -> object:
    """As `Subject.value`; without `calls`, only of names, as `look_up` finds them."""
    require_agreement(lab, expression)
    reference = split_reference(expression)
    modules = nullcontext()
    if reference is not None:
        path, expression = reference
        file = lab.subjects.file(Path(path))
        variables, modules = file.variables, file.modules.current()
    if not calls:
        return lab.subjects.look_up(expression, variables)
    value = lab.subjects.value_once if is_look else lab.subjects.value
    with modules:
        return value(expression, variables, lab.output(), lab.control)


def file_of(lab: Lab, expression: str) -> PythonFile | None:
    """The file that an expression names, FILE.py:NAME. Raises LabError if it has not run."""
    reference = split_reference(expression)
    return None if reference is None else lab.subjects.file(Path(reference[0]))


def make_modules_current(lab: Lab, expression: str) -> None:
    """From now on the modules are current of the file that an expression names, or of the console.
    Raises as `file_of`."""
    file = file_of(lab, expression)
    if file is None:
        lab.console.namespace.make_modules_current()
    else:
        file.modules.become_current()


def first_batch(batches: Iterable[Any]) -> Any:
    """Raises LabError if there is none."""
    for batch in batches:
        return batch
    raise LabError("The data has no batch.", hint="Give data with samples.")


def first_weights(module: nn.Module) -> dict[str, Any]:
    """A copy of the module's state_dict, on the CPU."""
    return {
        name: value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value
        for name, value in module.state_dict().items()
    }
