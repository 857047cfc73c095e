"""The operations of a line, the tensors between them, and a runner for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Literal

import torch

from ...system.errors import LabError
from .layout import Layout

Kind = Literal["view", "same", "copy", "in place"]


class NoRule(LabError):
    """The line may run, but its result is not predicted here."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"There is no rule for {what}.",
            hint="Run the line in the console to see what it does.",
        )


@dataclass(frozen=True)
class Outcome:
    """The results that torch will return, whether they have new memory, and why.

    The kinds: view, a new tensor over an operand's memory; same, the operand itself; copy, new
    memory; in place, a changed operand. `reasoning` is the rule, step by step. `many` means that
    torch returns a tuple or list of `results`, even of one; they may have `names`. `unless` says
    for what torch may still refuse the operation: too many numbers would have to be read to know.
    `work` counts elements that are read or multiplied.
    """

    kind: Kind
    results: tuple[Layout, ...]
    why: str = ""
    reasoning: tuple[str, ...] = ()
    many: bool = False
    names: tuple[str, ...] = ()
    unless: str = ""
    work: int = 0

    @property
    def result(self) -> Layout:
        return self.results[0]


class Refusal(Exception):
    """torch will raise: what is wrong, and what to try. `said` is torch's message, if known;
    `raises` the error's class or a base of it, if predicted."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        reasoning: Sequence[str] = (),
        raises: type[Exception] | None = None,
        said: str = "",
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.reasoning = tuple(reasoning)
        self.raises = raises
        self.said = said


@dataclass(eq=False)
class Term:
    """A tensor in an expression: a variable (`leaf`), or a result of `step` (number `place`, if
    there are several).

    `is_small` means that the steps before it are tried on small copies, `is_readable` that its
    numbers take little work."""

    text: str
    layout: Layout
    runner: Callable[[], Runner]
    leaf: torch.Tensor | None = None
    step: Step | None = None
    place: int | None = None
    is_small: bool = False
    is_readable: bool = True

    def compute(self) -> torch.Tensor:
        return self.runner().tensor(self)

    def read(self, most: int) -> torch.Tensor | None:
        """Its numbers; None if they are more than `most` or take long to compute."""
        known = self.is_readable and self.layout.device != "meta" and self.layout.numel <= most
        return self.compute().detach() if known else None


@dataclass(eq=False)
class Step:
    """One operation of a line, with an `outcome`, or a `refusal` if torch will raise. `run` is
    torch's function, `args` and `kwargs` its arguments, `operands` the tensors among these."""

    source: str
    operation: str
    run: Callable[..., Any]
    runner: Callable[[], Runner]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    operands: tuple[Term, ...] = ()
    outcome: Outcome | None = None
    refusal: Refusal | None = None

    def compute(self) -> Any:
        """torch's result. The step and those before it run once."""
        return self.runner().run(self).given

    def given(self, place: int, *names: str, default: Any = None) -> Any:
        """The argument at a place or with one of the names, else `default`."""
        for name in names:
            if name in self.kwargs:
                return self.kwargs[name]
        return self.args[place] if len(self.args) > place else default


@dataclass(frozen=True)
class RunResult:
    """The result or error of an operation, with its operands' versions and storage sizes before."""

    operands: tuple[torch.Tensor, ...]
    versions: tuple[int, ...]
    nbytes: tuple[int, ...]
    given: Any = None
    error: Exception | None = None
    warned: tuple[str, ...] = ()

    @property
    def tensors(self) -> tuple[Any, ...]:
        return tuple(self.given) if isinstance(self.given, tuple | list) else (self.given,)

    @property
    def written(self) -> list[int]:
        """The numbers of the operands that it wrote to."""
        pairs = zip(self.operands, self.versions, strict=True)
        return [i for i, (t, version) in enumerate(pairs) if _version(t) != version]


class Runner:
    """Runs each step of a line once, with the tensor that `leaf` gives for each variable.

    The state of the random generators does not change, and warnings are not shown."""

    def __init__(
        self,
        leaf: Callable[[torch.Tensor], torch.Tensor],
        around: Callable[[], AbstractContextManager[Any]],
        arguments: Callable[[Step], Sequence[Any]] = lambda step: step.args,
    ) -> None:
        self._leaf = leaf
        self._around = around
        self._arguments = arguments
        self._ran: dict[Step, RunResult] = {}

    def tensor(self, term: Term) -> torch.Tensor:
        if term.step is None:
            assert term.leaf is not None
            with self._around():
                return self._leaf(term.leaf)
        given = self.run(term.step).given
        return given if term.place is None else given[term.place]

    def run(self, step: Step) -> RunResult:
        """The result of a step. Raises torch's error."""
        if step not in self._ran:
            self._ran[step] = self._run(step)
        if (error := self._ran[step].error) is not None:
            raise error
        return self._ran[step]

    def ran(self, step: Step) -> RunResult:
        """The result of a step, or torch's error in it."""
        try:
            return self.run(step)
        except LabError:
            raise
        except Exception:  # torch raises errors of many types
            return self._ran[step]

    def _run(self, step: Step) -> RunResult:
        operands = tuple(self.tensor(term) for term in step.operands)
        versions = tuple(map(_version, operands))
        nbytes = tuple(t.untyped_storage().nbytes() for t in operands)
        given, failed = None, None
        with without_side_effects(operands) as warned:
            try:
                args = with_terms(self._arguments(step), self.tensor)
                kwargs = with_terms(dict(step.kwargs), self.tensor)
                with self._around():
                    given = step.run(*args, **kwargs)
            except LabError:
                raise
            except Exception as error:  # torch raises errors of many types
                failed = error
        return RunResult(operands, versions, nbytes, given, failed, tuple(warned))


@contextmanager
def without_side_effects(operands: Sequence[torch.Tensor] = ()) -> Iterator[list[str]]:
    """Restores the random generators and catches warnings, whose texts it adds to the list that it
    yields. Warnings that torch shows only once are shown every time here, so that torch will still
    show them to the user."""
    always = torch.is_warn_always_enabled()
    devices = {t.device.index or 0 for t in operands if t.device.type == "cuda"}
    messages: list[str] = []
    with ExitStack() as stack:
        if torch.cuda.is_available() or not devices:
            stack.enter_context(torch.random.fork_rng(devices=sorted(devices)))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        torch.set_warn_always(True)
        try:
            yield messages
        finally:
            torch.set_warn_always(always)
            messages += dict.fromkeys(str(warning.message) for warning in caught)


def _version(t: torch.Tensor) -> int:
    return 0 if t.is_inference() else t._version


_PLAIN = (
    int, float, complex, str, slice, NoneType, type(Ellipsis),
    torch.dtype, torch.device, torch.memory_format, torch.layout,
)  # fmt: skip


def with_terms(value: Any, change: Callable[[Term], Any]) -> Any:
    """`value`, also a list, tuple or dict, with `change(term)` for each Term. Raises NoRule for an
    object that is not plain: code of its own might run."""
    if isinstance(value, Term):
        return change(value)
    if isinstance(value, list):
        return [with_terms(item, change) for item in value]
    if isinstance(value, tuple):
        return tuple(with_terms(item, change) for item in value)
    if isinstance(value, dict):
        return {key: with_terms(item, change) for key, item in value.items()}
    if not isinstance(value, _PLAIN):
        raise NoRule(f"{value!r} as an argument")
    return value


def terms_in(value: Any) -> tuple[Term, ...]:
    found: list[Term] = []
    with_terms(value, found.append)
    return tuple(found)
