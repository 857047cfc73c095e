"""What was done in a backward pass, as facts from which a script can do it once more."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from ...console.journal import Cell, Journal
from ...protocol import breakpoint_words
from ...random_states import States, random_states
from ...recording.writes import version_of
from ..graph.reading import Graph, Node
from .debugger import Debugger
from .stepping import SteppedPass


@dataclass(frozen=True)
class Given:
    """The gradient that backward starts with at a root: none for a scalar, ones, what the
    expression `text` gives, a tensor full of it, or a tensor made of it."""

    text: str = ""
    how: Literal["none", "ones", "as it is", "full", "tensor"] = "none"


@dataclass(frozen=True)
class Roots:
    """Where passes start: at what `expressions` of the console give; at the gradient that the pass
    before has found for the tensor `of`; else at the model's loss, made by forward run `run`."""

    expressions: tuple[str, ...] = ()
    gradients: tuple[Given, ...] = (Given(),)
    of: str = ""
    run: int = 0


@dataclass(frozen=True)
class Place:
    """How a node is found: as number `number` of those called `name` on the way down from the
    roots, level by level; `label` is the leaf that it adds to, or the tensor that it made, and
    `module` the path of the module that did."""

    name: str
    number: int
    op: str
    label: str = ""
    is_leaf: bool = False
    module: str = ""


@dataclass(frozen=True)
class Edit:
    """`expression` replaced the gradient for an output. `copies`: it may write into what it gets;
    `seed`: it draws random numbers, as after torch.manual_seed."""

    expression: str
    output: int
    copies: bool
    seed: int | None
    names: tuple[str, ...]


@dataclass(frozen=True)
class EditedNode:
    """`turn` is the node's place in the plan, `outputs` how many gradients it is given."""

    place: Place
    turn: int
    outputs: int
    edits: tuple[Edit, ...]


@dataclass
class Zeroing:
    """`.grad`s were emptied while the pass stood at `position`; it has gone back to `lowest`
    since."""

    set_to_none: bool
    position: int
    lowest: int


@dataclass(eq=False)
class Pass:
    """A pass of `world`, a namespace or a forward pass. What is known only at its end is read by
    `end`. `first` is the pass of which it repeats the roots, itself if of none; `previous` the
    pass before it. `clears`: `.grad`s were set to None when it began."""

    world: weakref.ref[Any]
    roots: Roots
    stepped: SteppedPass | None
    shown: Mapping[str, Tensor]
    previous: Pass | None
    first: Pass | None
    cells_before: int
    before: States
    after: States
    retain_graph: bool = True
    create_graph: bool = False
    real_engine: bool = False
    clears: bool = False
    inputs: tuple[str, ...] = ()
    events: list[Cell | Zeroing] = field(default_factory=list)
    """What was done while it stood somewhere."""
    trouble: str = ""
    """Why it cannot be repeated."""
    went_back: bool = False
    position: int = 0
    size: int = 0
    edits: tuple[EditedNode, ...] = ()
    leaves: dict[str, tuple[Place | None, int | None]] = field(default_factory=dict)
    """Tensors whose `.grad` is shown: their node, and its place in the plan."""
    around: tuple[Place | None, Place | None] = (None, None)
    """The last node that ran and the one after it."""
    nodes_around: dict[int, tuple[Place | None, Place | None]] = field(default_factory=dict)
    """The same for each position at which something was done."""
    found: tuple[bool, ...] = ()
    """Which inputs have got a gradient."""
    breakpoints: tuple[tuple[str, Place | None], ...] = ()

    def __post_init__(self) -> None:
        self._versions = self._read_versions()

    @property
    def is_at_end(self) -> bool:
        return self.position == self.size

    @property
    def cells(self) -> list[Cell]:
        """Those that ran in its midst."""
        return [event for event in self.events if isinstance(event, Cell)]

    @property
    def draws(self) -> frozenset[str]:
        """The generators of random numbers from which it, or a cell in its midst, has drawn."""
        spans = ((each.before, each.after) for each in (self, *self.cells))
        return frozenset(k for old, new in spans for k, v in new.items() if old.get(k) != v)

    @property
    def start(self) -> Pass:
        """The pass whose roots come from no other pass."""
        first = self.first or self
        return first.previous.start if first.roots.of and first.previous else first

    def moved(self) -> None:
        """The pass stands somewhere else than before."""
        if self.stepped is None:
            return
        position, self.position = self.position, self.stepped.position
        self.after = random_states()
        if self.position >= position:
            return
        self.went_back = True
        for each in self.events:
            each.lowest = min(each.lowest, self.position)
        if any(getattr(t, "_post_accumulate_grad_hooks", None) for t in self.shown.values()):
            self._look_for_writes(self._versions, "the pass went back")

    @contextmanager
    def runs_twice(self) -> Iterator[None]:
        """The hooks of the user's run once more inside this."""
        versions = self._read_versions()
        try:
            yield
        finally:
            self._look_for_writes(versions, "Compare ran them once more")

    def _look_for_writes(self, before: dict[str, int | None], when: str) -> None:
        changed = [n for n, v in self._read_versions().items() if v != before.get(n)]
        if changed:
            self.trouble = f"hooks of your own have changed {changed[0]}, and {when}"

    def end(self, debugger: Debugger, subject: Any) -> None:
        """Read from the pass, as it stands, all that a script needs."""
        stepped = self.stepped
        if stepped is None or not stepped.plan:
            return
        self.position, self.size = stepped.position, len(stepped.plan)
        places = _Places(stepped.graph, subject, debugger.modules)
        self.edits = tuple(
            EditedNode(
                places.of(node := stepped.graph.nodes[node_id]),
                stepped.step_position(node_id) - 1,
                len(node.fn._input_metadata),
                tuple(
                    Edit(e.expression, e.output, e.copies, e.seed if e.draws else None, e.names)
                    for e in edits.values()
                ),
            )
            for node_id, edits in debugger.expressions.items()
        )
        self.leaves = {}
        for name, node in nodes_of(stepped.graph, self.shown):
            turn = None if node is None else _turn(stepped, node)
            self.leaves[name] = (None if node is None else places.of(node)), turn
        if 0 < self.position < self.size:
            self.around = _around(stepped, self.position, places)
        self.nodes_around = {
            each.position: _around(stepped, each.position, places) for each in self.events
        }
        self.found = tuple(g is not None for g in stepped.captured)
        self.breakpoints = tuple(_breakpoints(debugger, stepped, places))

    def close(self) -> None:
        """Let go of the graph."""
        self.stepped, self.shown = None, {}

    def _read_versions(self) -> dict[str, int | None]:
        return {name: version_of(t) for name, t in self.shown.items() if t.is_leaf}


def begin_pass(journal: Journal, subject: Any, stepped: SteppedPass, **options: Any) -> Pass:
    """A pass begins. One over the roots of the pass under way is another of the same."""
    running = journal.current
    again = running is not None and running.roots is subject.written
    passes = [entry for entry in journal.entries if isinstance(entry, Pass)]
    before = random_states() if again or subject.random is None else subject.random
    made = Pass(
        world=weakref.ref(subject.world),
        roots=subject.written,
        stepped=stepped,
        shown=subject.shown,
        previous=passes[-1] if passes else None,
        first=(running.first or running) if again and running is not None else None,
        cells_before=journal.cells,
        before=before,
        after=before,
        size=len(stepped.plan),
        **options,
    )
    journal.entries.append(made)
    journal.current = made
    return made


class _Places:
    """Finds for nodes of a graph how a script finds them."""

    def __init__(self, graph: Graph, subject: Any, modules: Mapping[int, str]) -> None:
        self._graph, self._subject, self._modules = graph, subject, modules

    @cached_property
    def _numbers(self) -> list[int]:
        """For each node how many of its name there are down to it."""
        counts: Counter[str] = Counter()
        numbers = []
        for node in self._graph.nodes:
            counts[name := node.fn.name()] += 1
            numbers.append(counts[name])
        return numbers

    def of(self, node: Node) -> Place:
        is_named = node.is_leaf and bool(node.label)
        label = node.label if node.is_leaf else self._subject.result_name(node)
        number = 0 if is_named else self._numbers[node.id]
        module = self._modules.get(node.id, "")
        return Place(node.fn.name(), number, node.op, label, node.is_leaf, module)


def nodes_of(graph: Graph, tensors: Mapping[str, Tensor]) -> Iterable[tuple[str, Node | None]]:
    """For each of the tensors the node that adds to its `.grad`, or that made it."""
    leaves = {id(node.variable): node for node in graph.nodes if node.is_leaf}
    for name, t in tensors.items():
        node = leaves.get(id(t))
        if node is None and not t.is_leaf:
            node = graph.get(get_gradient_edge(t).node)
        yield name, node


def _turn(stepped: SteppedPass, node: Node) -> int | None:
    try:
        return stepped.step_position(node) - 1
    except ValueError:
        return None


def _around(
    stepped: SteppedPass, position: int, places: _Places
) -> tuple[Place | None, Place | None]:
    """The last node that runs before a position, and the first after it."""
    ran = [n for n in stepped.plan[:position] if stepped.runs(n)][-1:]
    will = [n for n in stepped.plan[position:] if stepped.runs(n)][:1]
    return places.of(ran[0]) if ran else None, places.of(will[0]) if will else None


def _breakpoints(
    debugger: Debugger, stepped: SteppedPass, places: _Places
) -> Iterable[tuple[str, Place | None]]:
    """Each breakpoint in words, and the first node at which it holds."""
    for state in debugger.breakpoints.states:
        point = state.breakpoint
        off = "" if point.enabled else " (off)"
        node = None
        if point.condition == "always" and point.on in ("node", "op"):
            at = (n for n in stepped.plan if debugger.breakpoints.is_at(point, n))
            node = next(at, None)
        yield breakpoint_words(point) + off, None if node is None else places.of(node)
