"""The findings about one cell or run, and the names that the user's code has for things."""

from __future__ import annotations

import ast
import linecache
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from ..operations.failures.reading import ArgumentTexts
from ..protocol import Finding, FindingKind
from ..recording.compiled import own_modules, own_path
from ..recording.recording import Place
from ..subjects.written import written
from ..system.errors import sendable
from ..system.user_files import UsersFrames, is_user_file

LOSSES = (
    F.cross_entropy,
    F.nll_loss,
    F.mse_loss,
    F.l1_loss,
    F.smooth_l1_loss,
    F.huber_loss,
    F.binary_cross_entropy,
    F.binary_cross_entropy_with_logits,
)
"""Functions that compare what a model gave with a target."""
MAX_NAMED = 3
"""The most names of one list that are written out; the rest are counted."""


class Notes:
    """Tells each finding once for its kind and line. `variables` are those of the code's module.

    `steps` counts the optimizer steps. `is_waiting`: whether a finding is told depends on the next
    backward.
    """

    def __init__(
        self, tell: Callable[[Finding], None], variables: Mapping[str, Any] | None = None
    ) -> None:
        self.steps = 0
        self.is_waiting = False
        self._tell = tell
        self._variables = {} if variables is None else variables
        self._frames = UsersFrames()
        self._told: set[tuple[FindingKind, Place | None, str]] = set()

    def find(
        self,
        kind: FindingKind,
        text: str,
        evidence: Iterable[str],
        fix: str,
        place: Place | None = None,
        what: str = "",
    ) -> None:
        """Tell a finding, unless one of this kind about this line (and `what`) was told."""
        key = kind, place, what
        if key in self._told:
            return
        self._told.add(key)
        file, line = place or ("", 0)
        lines = tuple(sendable(each) for each in evidence)
        self._tell(Finding(kind, sendable(text), lines, sendable(fix), sendable(file), line))

    # -- where the code is -----------------------------------------------------------------------

    def frame(self) -> FrameType | None:
        """The innermost frame of the user's code that runs."""
        return self._frames.innermost(2)

    def place(self) -> Place | None:
        """The line that it is at."""
        return self._frames.place(2)

    def source(self, place: Place | None) -> str:
        return "" if place is None else linecache.getline(*place).strip()

    def fixed_line(
        self,
        frame: FrameType | None,
        values: Sequence[Any],
        argument: int,
        keyword: str,
        change: Callable[[str], str],
        otherwise: str,
    ) -> str:
        """The line of the call that `frame` makes, with `change` applied to one argument: number
        `argument` of `values`, or `keyword`. If it cannot be read there: `otherwise`."""
        if frame is None:
            return otherwise
        texts = ArgumentTexts(frame, frame.f_lasti, values)
        node = texts.of_keyword(keyword) or texts.of_argument(argument)
        if node is None or node.lineno != node.end_lineno:
            return otherwise
        line = linecache.getline(frame.f_code.co_filename, node.lineno).encode()
        old = line[node.col_offset : node.end_col_offset].decode()
        simple = ast.Name | ast.Attribute | ast.Call | ast.Subscript
        new = change(old if isinstance(node, simple) else f"({old})")
        fixed = line[: node.col_offset] + new.encode() + line[node.end_col_offset :]
        return fixed.decode().strip()

    # -- what things are called ------------------------------------------------------------------

    def scopes(self) -> Iterator[Mapping[str, Any]]:
        """The variables that the user's code sees now: the innermost function's first."""
        frame = self._frames.innermost(2)
        while frame is not None:
            if frame.f_locals is not frame.f_globals and is_user_file(frame.f_code.co_filename):
                yield frame.f_locals
            frame = frame.f_back
        yield self._variables

    def name_of(self, value: object, otherwise: str) -> str:
        for scope in self.scopes():
            for name, held in list(scope.items()):
                if held is value and isinstance(name, str) and name != "_":
                    return name
        return otherwise

    def modules(self) -> dict[str, nn.Module]:
        """The modules that the user's code sees now, by name."""
        found: dict[str, nn.Module] = {}
        for scope in self.scopes():
            for name, held in list(scope.items()):
                if issubclass(type(held), nn.Module) and held not in found.values():
                    found.setdefault(name, held)
        return found


class Names:
    """The names of parameters by the modules that hold them, and of optimizers. It keeps neither
    alive. What was seen once is known later, when no code of the user's runs."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._modules: dict[str, weakref.ref[nn.Module]] = {}

    def look(self) -> None:
        """Learn the names that the user's code sees now."""
        for name, module in self._notes.modules().items():
            self._modules[name] = weakref.ref(module)

    @property
    def modules(self) -> dict[str, nn.Module]:
        alive = {name: reference() for name, reference in self._modules.items()}
        return {name: module for name, module in alive.items() if module is not None}

    def parameters(self, wanted: Sequence[Tensor]) -> list[str]:
        """A name for each parameter: that in its module, else its shape."""
        known: dict[int, str] = {}
        for name, module in self.modules.items():
            for path, parameter in module.named_parameters(name, remove_duplicate=False):
                known.setdefault(id(parameter), own_path(path))
        return [
            known.get(id(p), "") or self._notes.name_of(p, f"a parameter of shape {shape(p)}")
            for p in wanted
        ]

    def written(self, wanted: Sequence[Tensor]) -> list[str]:
        """Python for these parameters: modules of which no parameter is missing, then the rest."""
        left = {id(p): p for p in wanted}
        found = []
        for name, root in self.modules.items():
            for path, part, _ in own_modules(root):
                inside = [id(p) for p in part.parameters()]
                if inside and all(key in left for key in inside):
                    found.append(f"{name}{written(root, path)}.parameters()")
                    left = {key: p for key, p in left.items() if key not in inside}
        for name, root in self.modules.items():
            for path, parameter in root.named_parameters():
                if left.pop(id(parameter), None) is not None:
                    found.append(f"{name}{written(root, own_path(path))}")
        return found + [self._notes.name_of(p, "parameter") for p in left.values()]

    def module(self, module: nn.Module) -> str:
        """The name of a module, in the module that holds it; "" if none is known."""
        for name, root in self.modules.items():
            for path, inside, _ in own_modules(root):
                if inside is module:
                    return f"{name}.{path}" if path else name
        return ""

    def optimizer(self, optimizer: Optimizer) -> str:
        return self._notes.name_of(optimizer, "optimizer")


def shape(t: Tensor) -> str:
    return str(tuple(t.shape))


def listed(names: Sequence[str]) -> str:
    """`a, b, c and 4 more`"""
    more = len(names) - MAX_NAMED
    shown = ", ".join(names[:MAX_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def is_plain(value: object) -> bool:
    """Whether it is a tensor of torch's own class."""
    return type(value) is Tensor or type(value) is nn.Parameter


def argument(args: tuple, kwargs: Mapping[str, Any], place: int, name: str) -> Any:
    return args[place] if len(args) > place else kwargs.get(name)


def node_name(t: Tensor) -> str:
    """The name of the node that made it; "" for a leaf."""
    node = t.grad_fn
    return "" if node is None else node.name()


def all_zero(t: Tensor) -> bool:
    """Whether every element is 0. The numbers are read, which waits for a device."""
    dense = t.coalesce().values() if t.is_sparse else t
    return not bool(torch.count_nonzero(dense))
