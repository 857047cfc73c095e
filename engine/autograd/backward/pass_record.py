"""Records a backward pass for the journal, from which scripts are written."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from ...console.journal import Edit, Journal, Leaf, Pass, Place
from ...protocol import breakpoint_words
from ...random_states import random_states
from ...recording.writes import version_of
from ..graph.reading import Node
from .pass_control import PassControl
from .roots import Subject
from .stepping import SteppedPass


class PassRecord:
    """The record of the pass under way; `facts` gives what a script needs of it. `again` and
    `options` are fields of Pass."""

    def __init__(
        self,
        journal: Journal,
        subject: Subject,
        stepped: SteppedPass,
        *,
        again: bool,
        **options: Any,
    ) -> None:
        self._journal, self._subject, self._stepped = journal, subject, stepped
        self._again, self._options = again, options
        passes = [entry for entry in journal.entries if isinstance(entry, Pass)]
        self._parent = passes[-1] if again or subject.written.of else None
        self._before = (None if again else subject.random) or random_states()
        self._after = self._before
        self._trouble = ""
        self._versions = self._read_versions()
        journal.begin_pass()

    def moved(self) -> None:
        """Record a move of the pass."""
        went_back = self._stepped.position < self._journal.position
        self._journal.move_pass(self._stepped.position)
        self._after = self._journal.read_states()
        if not went_back:
            return
        if self._after != self._before:
            self._trouble = "the pass drew random numbers, and has gone back"
        if any(getattr(t, "_post_accumulate_grad_hooks", None) for t in self._shown.values()):
            self._look_for_writes(self._versions, "the pass went back")

    @contextmanager
    def runs_twice(self) -> Iterator[None]:
        """To be entered around code that calls the user's hooks once more."""
        versions = self._read_versions()
        try:
            yield
        finally:
            self._look_for_writes(versions, "Compare ran them once more")

    def facts(self, control: PassControl) -> Pass:
        """The pass as it stands, for the journal."""
        stepped, subject, journal = self._stepped, self._subject, self._journal
        places = _Places(stepped, subject, control.modules, self._options["real_engine"])
        return Pass(
            owner=weakref.ref(subject.owner),
            roots=subject.written,
            parent=self._parent,
            again=self._again,
            before=self._before,
            after=self._after,
            position=stepped.position,
            size=len(stepped.plan),
            at=places.at(stepped.position),
            events=tuple(replace(e, at=places.at(e.position)) for e in journal.events or ()),
            edits=tuple(_edits(control, places)),
            leaves={name: places.leaf(t) for name, t in self._shown.items()},
            found=tuple(g is not None for g in stepped.captured),
            breakpoints=tuple(_breakpoints(control, places)),
            trouble=self._trouble,
            **self._options,
        )

    def end(self, control: PassControl) -> None:
        self._journal.end_pass(self.facts(control))

    @property
    def _shown(self) -> dict[str, Tensor]:
        return self._subject.shown

    def _look_for_writes(self, before: dict[str, int | None], when: str) -> None:
        changed = [n for n, v in self._read_versions().items() if v != before.get(n)]
        if changed:
            self._trouble = f"hooks of your own have changed {changed[0]}, and {when}"

    def _read_versions(self) -> dict[str, int | None]:
        return {name: version_of(t) for name, t in self._shown.items() if t.is_leaf}


class _Places:
    """How a script finds the nodes of a pass."""

    def __init__(
        self, stepped: SteppedPass, subject: Subject, modules: dict[int, str], real_engine: bool
    ) -> None:
        self.stepped = stepped
        self._subject, self._modules, self._real_engine = subject, modules, real_engine
        self._leaves = {id(n.variable): n for n in stepped.graph.nodes if n.is_leaf}

    @cached_property
    def _numbers(self) -> list[int]:
        """The number of each node among the nodes of the same name, from 1."""
        counts: Counter[str] = Counter()
        numbers = []
        for node in self.stepped.graph.nodes:
            counts[name := node.fn.name()] += 1
            numbers.append(counts[name])
        return numbers

    def of(self, node: Node) -> Place:
        label = node.label if node.is_leaf else next(iter(self._subject.results_of(node)), "")
        word = label if node.is_leaf and label else node.op
        module = self._modules.get(node.id, "")
        return Place(node.fn.name(), self._numbers[node.id], word, label or module)

    def at(self, position: int) -> Place | None:
        """See Pass.at."""
        plan = self.stepped.plan
        near = plan[position:] if self._real_engine else reversed(plan[:position])
        node = next(filter(self.stepped.runs, near), None)
        return None if node is None else self.of(node)

    def leaf(self, t: Tensor) -> Leaf:
        node = self._leaves.get(id(t))
        if node is None and not t.is_leaf:
            node = self.stepped.graph.get(get_gradient_edge(t).node)
        if node is None:
            return Leaf(None, None)
        try:
            position = self.stepped.step_position(node) - 1
        except ValueError:  # it is not on the way to an input
            position = None
        return Leaf(self.of(node), position)


def _edits(control: PassControl, places: _Places) -> Iterator[Edit]:
    for node_id, edits in control.expressions.items():
        node = places.stepped.graph.nodes[node_id]
        place, outputs = places.of(node), len(node.fn._input_metadata)
        for e in edits.values():
            seed = e.seed if e.draws else None
            yield Edit(place, e.expression, e.output, outputs, e.copies, seed, e.names)


def _breakpoints(control: PassControl, places: _Places) -> Iterator[tuple[str, Place | None]]:
    """Each breakpoint in words, and the first node at which it holds."""
    for state in control.breakpoints.states:
        point = state.breakpoint
        off = "" if point.enabled else " (off)"
        node = None
        if point.condition == "always" and point.on in ("node", "op"):
            at = (n for n in places.stepped.plan if control.breakpoints.is_at(point, n))
            node = next(at, None)
        yield breakpoint_words(point) + off, None if node is None else places.of(node)
