"""The operations of a line and the tensors between them, and the worlds in which they run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Literal

import torch

from ...errors import LabError
from .layout import Layout

Kind = Literal["view", "same", "copy", "in place"]


class NoRule(LabError):
    """The line may well run, but what it does is not predicted here."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"There is no rule for {what}.",
            hint="Run the line in the console to see what it does.",
        )


@dataclass(frozen=True)
class Outcome:
    """What torch will give back, whether it has memory of its own, and why.

    view: a new tensor over an operand's memory; same: the operand itself; copy: new memory;
    in place: an operand, changed. `reasoning` is the rule, step by step. `many`: torch returns a
    tuple (or list) of `results`, even of one, which may have `names`. `unless` names what torch
    may still refuse it for, because too many numbers would have to be read to know. `work` counts
    elements read or multiplied.
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
    """Torch will raise: what is wrong, what to try, torch's own words where they are known and,
    where it is predicted, the error's class (one of its subclasses may come)."""

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
    """A tensor in an expression: a variable, or a result of `step` (its `place`, of several).

    `is_small`: the steps that lead to it are tried on copies of few elements. `read` gives its
    numbers, where computing them costs little. `compute` runs what leads to it, once."""

    text: str
    layout: Layout
    world: Callable[[], World]
    leaf: torch.Tensor | None = None
    step: Step | None = None
    place: int | None = None
    is_small: bool = False
    is_readable: bool = True

    def compute(self) -> torch.Tensor:
        return self.world().tensor(self)

    def read(self, most: int) -> torch.Tensor | None:
        """Its numbers, unless they are more than `most` or take long to compute."""
        known = self.is_readable and self.layout.device != "meta" and self.layout.numel <= most
        return self.compute().detach() if known else None


@dataclass(eq=False)
class Step:
    """One operation of a line. `refusal` in place of `outcome` where torch will raise. `args` and
    `kwargs` are all that it is given, with its tensors as `operands` has them; `run` is torch's
    function."""

    source: str
    operation: str
    run: Callable[..., Any]
    world: Callable[[], World]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    operands: tuple[Term, ...] = ()
    outcome: Outcome | None = None
    refusal: Refusal | None = None

    def compute(self) -> Any:
        """Run it, and what comes before it, once: what torch gives."""
        return self.world().run(self).given

    def given(self, place: int, *names: str, default: Any = None) -> Any:
        """An argument by its place or one of its names."""
        for name in names:
            if name in self.kwargs:
                return self.kwargs[name]
        return self.args[place] if len(self.args) > place else default


@dataclass(frozen=True)
class Ran:
    """What an operation gave, or raised, with the versions of its operands before and the sizes
    of their storages."""

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
        """The operands that it wrote to."""
        pairs = zip(self.operands, self.versions, strict=True)
        return [i for i, (t, version) in enumerate(pairs) if _version(t) != version]


class World:
    """Where the steps of a line run, each once: on what `leaf` gives for its variables.

    Random numbers are drawn aside, and warnings kept: both are left for the line itself."""

    def __init__(
        self,
        leaf: Callable[[torch.Tensor], torch.Tensor],
        around: Callable[[], AbstractContextManager[Any]],
        arguments: Callable[[Step], Sequence[Any]] = lambda step: step.args,
    ) -> None:
        self._leaf = leaf
        self._around = around
        self._arguments = arguments
        self._ran: dict[Step, Ran] = {}

    def tensor(self, term: Term) -> torch.Tensor:
        if term.step is None:
            assert term.leaf is not None
            with self._around():
                return self._leaf(term.leaf)
        given = self.run(term.step).given
        return given if term.place is None else given[term.place]

    def run(self, step: Step) -> Ran:
        """Raises what torch raises."""
        if step not in self._ran:
            self._ran[step] = self._run(step)
        if (error := self._ran[step].error) is not None:
            raise error
        return self._ran[step]

    def ran(self, step: Step) -> Ran:
        """The same, with the error in it."""
        try:
            return self.run(step)
        except LabError:
            raise
        except Exception:  # torch raises what it likes
            return self._ran[step]

    def _run(self, step: Step) -> Ran:
        operands = tuple(self.tensor(term) for term in step.operands)
        versions = tuple(map(_version, operands))
        nbytes = tuple(t.untyped_storage().nbytes() for t in operands)
        given, failed = None, None
        with aside(operands) as warned:
            try:
                args = with_terms(self._arguments(step), self.tensor)
                kwargs = with_terms(dict(step.kwargs), self.tensor)
                with self._around():
                    given = step.run(*args, **kwargs)
            except LabError:
                raise
            except Exception as error:  # it is the answer
                failed = error
        return Ran(operands, versions, nbytes, given, failed, tuple(warned))


@contextmanager
def aside(operands: Sequence[torch.Tensor] = ()) -> Iterator[list[str]]:
    """Leaves random numbers and warnings as they were; yields the list that gets the warnings.
    Those that torch gives once are given every time meanwhile, so that none is used up here."""
    always = torch.is_warn_always_enabled()
    devices = {t.device.index or 0 for t in operands if t.device.type == "cuda"}
    told: list[str] = []
    with ExitStack() as stack:
        if torch.cuda.is_available() or not devices:
            stack.enter_context(torch.random.fork_rng(devices=sorted(devices)))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        torch.set_warn_always(True)
        try:
            yield told
        finally:
            torch.set_warn_always(always)
            told += dict.fromkeys(str(warning.message) for warning in caught)


def _version(t: torch.Tensor) -> int:
    return 0 if t.is_inference() else t._version


_PLAIN = (
    int, float, complex, str, slice, NoneType, type(Ellipsis),
    torch.dtype, torch.device, torch.memory_format, torch.layout,
)  # fmt: skip


def with_terms(value: Any, change: Callable[[Term], Any]) -> Any:
    """`value`, a list or the like, with something else in place of its tensors. Raises NoRule for
    what is no plain value: it might do more than be read."""
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
