"""`lab`, the object through which a cell's code speaks to the lab."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..loops.logged import LoggedTensors, as_logged, histogram, image
from ..loops.logged_numbers import LoggedNumbers
from ..system.errors import LabError

StepOf = Callable[[Iterable[str]], int]
MAX_FIGURES = 24
"""Different names in one cell: each has a plot of its own."""


class UsersLab:
    """`lab.log(accuracy=0.9)` draws named figures at an optimizer step of a loop, or at the step of
    Train that calls it, in Train's plots. `lab.hold()` holds the code there, as
    `breakpoint()` does. `lab.subject` is the module that the workspaces work on; `subject` finds
    it. `lab.open("net.onnx")["fc.weight"]` is a tensor of a file, nothing of which is run."""

    def __init__(self, subject: Callable[[], nn.Module] | None = None) -> None:
        self._subject = subject
        self._names: set[str] = set()
        self._figures: dict[str, Tensor | float] = {}
        self._is_in_step = False
        self._step_of: StepOf = lambda names: 1
        self._newest: dict[str, int] = {}  # the step of each name
        self.numbers, self.tensors = LoggedNumbers(), LoggedTensors()

    def log(self, step: int | None = None, **figures: Any) -> None:
        """Draw figures: numbers, or tensors of one element. Of a larger tensor, and of
        `lab.histogram(tensor)`, the elements are drawn over the steps of a loop; of
        `lab.image(tensor)` the images are shown.
        What is logged after `optimizer.step()` is drawn at that step, and what is logged before it
        at the step that comes; or both at `step`, unless these figures were drawn further on. In a
        loop in which no optimizer of torch's steps, a step ends where a figure is logged again.

        Raises TypeError for other values, and ValueError for complex tensors and for more than 24
        names in a cell. In a step of Train larger tensors are refused.
        """
        self.add(figures, step)

    def add(self, figures: Mapping[str, Any], step: int | None = None) -> int:
        """Draw figures as `log`, and raise as it does. The step that they are drawn at; 0 in a step
        of Train."""
        tensors = {}
        if not self._is_in_step:
            found = {name: as_logged(name, value) for name, value in figures.items()}
            tensors = {name: each for name, each in found.items() if each is not None}
        numbers = {n: _figure(n, value) for n, value in figures.items() if n not in tensors}
        if len(self._names | figures.keys()) > MAX_FIGURES:
            raise ValueError(f"lab.log takes at most {MAX_FIGURES} different names in a cell")
        self._names |= figures.keys()
        if self._is_in_step:
            self._figures |= numbers
            return 0
        newest = max((self._newest.get(name, 0) for name in figures), default=0)
        counted = self._step_of(figures)
        at = max(newest, counted if step is None or step < newest else int(step))
        self._newest |= dict.fromkeys(figures, at)
        self.numbers.add(at, numbers)
        self.tensors.add(tensors, at)
        return at

    @contextmanager
    def counted(self, step_of: StepOf) -> Iterator[None]:
        """What is logged in this context under some names belongs to step `step_of(names)`."""
        before, self._step_of = self._step_of, step_of
        try:
            yield
        finally:
            self._step_of = before

    histogram = staticmethod(histogram)
    image = staticmethod(image)

    @property
    def logged(self) -> Mapping[str, Tensor]:
        """Copies of the newest tensors that were logged, by name."""
        return self.tensors.newest

    @property
    def subject(self) -> nn.Module:
        """The module that the workspaces work on. Raises LabError if there is none."""
        if self._subject is None:
            raise LabError("No workspace works on these variables.")
        return self._subject()

    def open(self, path: str | PathLike[str]) -> Mapping[str, Tensor]:
        """The tensors of a file or folder by their keys, each read when it is asked for. Raises
        LabError for a file that cannot be read, or that asks for more than to be read."""
        from ..artifacts.tensors import TensorsOf

        return TensorsOf(Path(path))

    def hold(self) -> None:
        """Hold the code here, to look at its variables."""
        breakpoint()

    def begin_cell(self) -> None:
        """Forget what an earlier cell has logged."""
        self._names.clear()
        self._newest.clear()
        self.numbers.forget()
        self.tensors.begin()

    @contextmanager
    def logging(self) -> Iterator[dict[str, Tensor | float]]:
        """A context that gives the figures logged in it; those of a loop around it stay."""
        before = self._names, self._figures, self._is_in_step
        self._names, self._figures, self._is_in_step = set(), {}, True
        try:
            yield self._figures
        finally:
            self._names, self._figures, self._is_in_step = before

    def __repr__(self) -> str:
        return "<lab: lab.log(name=value) adds a figure to the plots of a loop>"


def _figure(name: str, value: Any) -> Tensor | float:
    """A copy of the value, which the user's code may change later."""
    if not isinstance(value, Tensor):
        try:
            return float(value)
        except (TypeError, ValueError):
            kind = type(value).__name__
            raise TypeError(f"lab.log({name}=...) takes a number, not {kind}") from None
    if value.numel() != 1 or value.is_complex():
        shape = tuple(value.shape)
        raise ValueError(
            f"lab.log({name}=...) takes a real number or a tensor of one element, not a tensor of"
            f" {value.dtype} with shape {shape}"
        )
    with torch.DisableTorchFunction(), torch.no_grad():
        return value.detach().reshape(()).to(torch.float32, copy=True)
