"""Losses, and outputs of a model, that are kept with their graph."""

from __future__ import annotations

import gc
import linecache
import re
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..recording.modes import Running, Tell
from ..recording.recording import Place
from .notes import LOSSES, Names, Notes, argument, counted, is_plain

LOOKED_EVERY = 16
"""After this many losses the check looks which of them, and of the outputs, are still kept."""
MIN_KEPT = 3


_Holder = list | deque | dict
_Seen = deque[tuple[weakref.ref[Tensor], int]]
"""Tensors, each with the number of steps before it."""


class _Total(NamedTuple):
    """The sum that a line has computed last, and how many losses the line has added to one."""

    sum: weakref.ref[Tensor]
    count: int

    def is_in(self, value: object) -> bool:
        """Whether a value is this sum, or the sum times a number."""
        known = self.sum()
        return known is not None and _is_of(value, known)


class Keeping:
    """Remembers by weak references on which losses backward was called, and what loss functions
    got, and looks which of them live on in a list or dict, and which losses were added to a running
    total. `outputs` are the loss functions."""

    def __init__(self, notes: Notes, names: Names) -> None:
        self._notes = notes
        self._losses: _Seen = deque(maxlen=LOOKED_EVERY)
        self._outputs: _Seen = deque(maxlen=LOOKED_EVERY)
        self._count = 0
        self._file = ""
        self._added: dict[Place | None, _Total] = {}
        self._names = names
        self.told: Mapping[Callable, Tell] = dict.fromkeys(
            (Tensor.add, Tensor.add_, torch.add), self._add
        )
        self.outputs: Mapping[Callable, Tell] = dict.fromkeys(LOSSES, self._judged)

    def saw_loss(self, loss: Tensor) -> None:
        if self._count % LOOKED_EVERY == LOOKED_EVERY - 1:
            self.look()
        self._count += 1
        self._file = (self._notes.place() or ("",))[0]
        self._losses.append((weakref.ref(loss), self._notes.steps))

    def _judged(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        """A loss function gets what a model gave."""
        output = argument(args, kwargs, 0, "input")
        if is_plain(output) and output.grad_fn is not None and self._notes.steps:
            self._outputs.append((weakref.ref(output), self._notes.steps))

    def look(self) -> None:
        """Tell of a list or dict that holds losses, or outputs, of several steps."""
        held = self._kept(self._losses)
        if held is not None:
            self._tell_kept(*held)
        held = self._kept(self._outputs)
        if held is not None:
            self._tell_outputs(*held)

    def _kept(self, seen: _Seen) -> tuple[_Holder, int] | None:
        """What holds some of them, with their graphs, of different steps."""
        alive = [(t, step) for t, step in ((r(), n) for r, n in seen) if t is not None]
        alive = [(t, step) for t, step in alive if t.grad_fn is not None]
        steps = {step for _, step in alive}
        if len(alive) < MIN_KEPT or (self._notes.steps and len(steps) < MIN_KEPT):
            return None
        return _holder([t for t, _ in alive], [alive, *alive])

    def _tell_outputs(self, holder: _Holder, held: int) -> None:
        name, place = self._notes.name_of(holder, ""), None
        found = self._line(name or _attribute(holder))
        if found is not None:
            place, name = found
        kind = type(holder).__name__
        line = self._notes.source(place)
        one = re.search(r"(?:\.append\(|\] = )([A-Za-z_]\w*)\)?\s*$", line)
        fix = f"{name or 'outputs'}.append(output.detach())"
        if one is not None:
            fix = f"{line[: one.start(1)]}{one[1]}.detach(){line[one.end(1) :]}".strip()
        self._notes.find(
            "kept_graph",
            f"`{name or f'A {kind}'}` holds outputs of a model with their graphs: each keeps the"
            " nodes of its whole forward pass alive, and memory grows with every step.",
            (
                f"{held} of the last {len(self._outputs)} outputs that a loss function got are in"
                f" the {kind} of {counted(len(holder), 'element')}, with their grad_fn",
            ),
            fix,
            place,
            name,
        )

    def _tell_kept(self, holder: _Holder, held: int) -> None:
        name, place = self._notes.name_of(holder, ""), None
        found = self._line(name or _attribute(holder))
        if found is not None:
            place, name = found
        kind = type(holder).__name__
        size = counted(len(holder), "element")
        added = "losses[step] = loss" if kind == "dict" else f"{name or 'losses'}.append(loss)"
        fix = self._without_graph(self._notes.source(place) or added)
        self._notes.find(
            "kept_graph",
            f"`{name or f'A {kind}'}` holds losses with their graphs: each keeps the nodes of its"
            " whole forward pass alive, and memory grows with every step.",
            (
                f"{held} of the last {len(self._losses)} losses that were looked at are"
                f" in the {kind} of {size}, with their grad_fn",
            ),
            fix,
            place,
            name,
        )

    def _line(self, name: str) -> tuple[Place, str] | None:
        """The line that adds to the holder with this name, and what it writes for the holder, in
        the file that calls backward; None if that is not one line."""
        if not name or not self._file:
            return None
        held = rf"""([\w.\[\]'"]*\b{re.escape(name)}\b['"\]]*)"""
        adds = re.compile(rf"{held}(?:\.append\(|\[[^=]*\] = )")
        lines = enumerate(linecache.getlines(self._file), 1)
        found = [(number, match[1]) for number, line in lines for match in adds.finditer(line)]
        return ((self._file, found[0][0]), found[0][1]) if len(found) == 1 else None

    def _without_graph(self, source: str) -> str:
        """The statement of a line that adds the loss, with the loss's number in its place."""
        last = self._losses[-1][0]()
        name = "loss" if last is None else self._notes.name_of(last, "loss")
        loss = re.compile(rf"""(?<![\w.'"]){re.escape(name)}(?![\w.('"])""")
        statement = next((s for s in reversed(source.split(";")) if loss.search(s)), "")
        if not statement:
            return f"{name}.item()  # or {name}.detach()"
        fixed = loss.sub(f"{name}.item()", statement.strip())
        return f"{fixed}  # or {name}.detach()"

    def _add(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        if not is_plain(result) or result.ndim or not result.requires_grad or not self._losses:
            return
        last = self._losses[-1][0]()
        if last is None or len(args) != 2 or not _is_of(args[1], last):
            return
        place = self._notes.place()
        before = self._added.get(place)
        is_total = any(total.is_in(args[0]) for total in self._added.values())
        count = before.count + 1 if before is not None and is_total else 1
        self._added[place] = _Total(weakref.ref(result), count)
        if count == MIN_KEPT:
            name = self._notes.name_of(last, "loss")
            self._notes.find(
                "kept_graph",
                f"A running total adds up `{name}` with its graph after backward: it keeps the"
                " graphs of all steps alive, and memory grows with every step.",
                (
                    f"`{self._notes.source(place)}` ran {count} times with a loss on which backward"
                    " had been called; the sum has a grad_fn",
                ),
                self._without_graph(self._notes.source(place)),
                place,
            )


def _holder(losses: list[Tensor], ours: list[object]) -> tuple[_Holder, int] | None:
    """The list, deque or dict of the user's that holds some of the losses, or tuples with them, and
    how many of them. Not one of `ours`."""
    tuples = [
        each
        for each in gc.get_referrers(*losses)
        if type(each) is tuple and not any(each is known for known in ours)
    ]
    wanted = {id(each) for each in (*losses, *tuples)}
    for first in (losses[0], *tuples[:1]):
        for holder in gc.get_referrers(first):
            if type(holder) not in (list, deque, dict) or any(holder is known for known in ours):
                continue
            if holder is losses or holder is tuples:
                continue
            if type(holder) is dict and "__name__" in holder:  # the variables of a module
                continue
            values = list(holder.values() if type(holder) is dict else holder)
            held = sum(id(each) in wanted for each in values)
            if held >= MIN_KEPT:
                return holder, held
    return None


def _attribute(holder: _Holder) -> str:
    """The attribute or key under which something else holds it."""
    for owner in gc.get_referrers(holder):
        names = owner if type(owner) is dict else getattr(owner, "__dict__", {})
        for name, value in list(names.items()):
            if value is holder and isinstance(name, str):
                return name
    return ""


def _is_of(value: object, loss: Tensor) -> bool:
    """Whether a value is the loss (or another scalar), or the loss times a number."""
    if value is loss:
        return True
    node = value.grad_fn if is_plain(value) else None  # pyright: ignore[reportAttributeAccessIssue]
    if node is None or not node.name().startswith(("MulBackward", "DivBackward")):
        return False
    return loss.grad_fn is not None and node.next_functions[0][0] == loss.grad_fn
