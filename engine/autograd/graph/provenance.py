"""Which part of the forward pass made a node: exact, by torch's sequence numbers.

Every node gets the next number of its thread when it is made, so the numbers taken before and after
a call (`torch.autograd._get_sequence_nr()`) bracket exactly the nodes that the call made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from ...errors import sendable
from ...protocol import GraphCut
from ...recording.recording import (
    Call,
    GradientCut,
    Place,
    Recording,
    Slot,
    find_recording,
    source_line,
)
from .reading import Graph, Node

NameOf = Callable[[torch.Tensor], str]
"""The name of a tensor; empty where it has none."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What made a node: the innermost module's path, the torch function, the operator (`""` where
    operators were not recorded), and the line of the user's code."""

    module: str
    function: str
    aten: str
    place: Place | None


NOWHERE = Origin("", "", "", None)


class Provenance:
    """Finds the calls that made nodes, in recordings of the thread that ran forward.

    `name_of` names tensors (parameters, variables), `owner_of` tells the path of the module that
    holds a parameter. Nodes with numbers below `shared_below` may be of another thread: nothing is
    said of these.
    """

    def __init__(
        self,
        recordings: Sequence[Recording] = (),
        name_of: NameOf = lambda t: "",
        owner_of: NameOf = lambda t: "",
        shared_below: int = 0,
    ) -> None:
        self._recordings, self._name_of, self._owner_of = recordings, name_of, owner_of
        self._shared_below = shared_below

    @property
    def classes(self) -> dict[str, str]:
        """The class name of each module path that ran."""
        return {path: name for each in self._recordings for path, name in each.classes.items()}

    def chain(self, node: Node) -> list[Call]:
        """The calls around the node's making, from the outermost on; empty if it is not known."""
        if node.is_leaf or node.sequence < self._shared_below:
            return []
        recording = find_recording(self._recordings, node.sequence)
        chain = [] if recording is None else recording.chain_of(node.sequence)
        # A node of another thread has a number that belongs to something else here.
        return chain if chain and _agree(chain[-1], node) else []

    def origin(self, node: Node, chain: Sequence[Call] | None = None) -> Origin:
        """NOWHERE for what was not recorded; of a leaf only the module is known. `chain` is the
        node's, where the caller has it."""
        variable = node.variable
        if variable is not None:
            return Origin(self._owner_of(variable), "", "", None)
        chain = self.chain(node) if chain is None else chain
        if not chain:
            return NOWHERE
        last = chain[-1]
        function = next((call.name for call in reversed(chain) if call.kind == "function"), "")
        return Origin(last.module, function, last.name if last.kind == "op" else "", last.place)

    def cuts(self, node: Node, chain: Sequence[Call] | None = None) -> Iterator[GraphCut]:
        """Where the gradient's way ends at this node, as far as the recording tells why."""
        chain = self.chain(node) if chain is None else chain
        slots = _slots(chain[-1], node) if chain else ()
        if not slots:
            return
        targets = [fn is not None for fn, _ in node.fn.next_functions]
        if all(targets):
            return
        for input_nr, slot in enumerate(_aligned(slots, targets) or ()):
            if isinstance(slot, GradientCut):
                yield self._cut(node, input_nr, slot)

    def _cut(self, node: Node, input_nr: int, stop: GradientCut) -> GraphCut:
        tensor = stop.tensor()
        source = None if stop.place is None else source_line(stop.place)
        name = "" if tensor is None else self._name_of(tensor)
        return GraphCut(
            node=node.id,
            input=input_nr,
            reason=stop.reason,
            label=sendable(name) or (source.text if source is not None else ""),
            source=source,
        )


def _agree(call: Call, node: Node) -> bool:
    """Whether this operator makes this kind of node: `aten::nll_loss_forward`, NllLossBackward0."""
    if call.kind == "function" and node.is_custom:
        return f"{call.name}Backward" == node.name
    if call.kind != "op":
        return True
    name = call.name.rpartition("::")[2].partition(".")[0]
    return name.replace("_", "").startswith(node.op.replace("_", ""))


def _slots(call: Call, node: Node) -> Sequence[Slot]:
    """The tensor arguments of what made the node, in its order; empty where that is not known."""
    if call.kind == "function" and call.name == "linear":  # x, weight, bias
        x, weight, *bias = call.slots or (True, True)
        in_order = {"addmm": (*bias, x, weight), "mm": (x, weight)}
        return in_order.get(node.op, ())
    if call.kind == "function" and node.op == "convolution":  # x, weight, bias
        return (*call.slots, *(False,) * (3 - len(call.slots)))
    if call.kind == "function" and call.name == "matmul" and node.op in ("mm", "bmm", "mv", "dot"):
        return call.slots[:2]
    if call.kind == "op" or call.end - call.first == 1:
        return call.slots
    return ()  # of a function that made several nodes, arguments and inputs differ


def _aligned(slots: Sequence[Slot], targets: Sequence[bool]) -> Sequence[Slot] | None:
    """The call's tensor arguments by the node's inputs; None where that is not certain.

    torch gives a node an input for each argument that it could differentiate, in their order: for
    all of them, or all but those whose dtype knows no gradient.
    """
    could = [s for s in slots if not (isinstance(s, GradientCut) and s.reason == "integer")]
    defined = [slot for slot in slots if slot is not False]
    for candidates in (slots, could, defined):
        if [slot is True for slot in candidates] == list(targets):
            return candidates
    return None


def origins(graph: Graph, sequence_ranges: Mapping[str, tuple[int, int]]) -> dict[int, str]:
    """Node id -> key of the range [start, end) that holds the node's sequence number.

    A leaf (AccumulateGrad has no number of its own) belongs where all its users do. Nodes that
    no range holds, and leaves with users in several, are left out: never guessed. The ranges must
    not overlap and must come from the thread that ran the forward pass.
    """
    ranges = sorted((start, end, key) for key, (start, end) in sequence_ranges.items())
    starts = [start for start, _, _ in ranges]
    found: dict[int, str] = {}
    for node in graph.nodes:
        if node.is_leaf:
            continue
        place = bisect_right(starts, node.sequence) - 1
        while place >= 0 and ranges[place][1] == ranges[place][0]:
            place -= 1  # an empty range: its call made no node
        if place >= 0 and node.sequence < ranges[place][1]:
            found[node.id] = ranges[place][2]
    users: dict[int, set[str | None]] = {}
    for edge in graph.edges:
        if graph.nodes[edge.target].is_leaf:
            users.setdefault(edge.target, set()).add(found.get(edge.source))
    for leaf, keys in users.items():
        (key, *others) = keys
        if key is not None and not others:
            found[leaf] = key
    return found
