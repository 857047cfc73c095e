"""The call of the forward pass that made a node, found by torch's sequence numbers.

Every new node gets the next number of its thread. So a call made exactly the nodes between the
numbers that `torch.autograd._get_sequence_nr()` gives before and after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import torch

from ...protocol import GraphCut
from ...recording.recording import (
    Call,
    GradientCut,
    Recorded,
    Slot,
    find_recording,
    source_line,
)
from ...system.errors import sendable
from .reading import Graph, Kind, Node, sequences_of

NameOf = Callable[[torch.Tensor], str]
"""The name of a tensor, or ""."""


class Provenance:
    """Finds the calls that made nodes, in recordings of the thread that ran forward.

    `name_of` gives the name of a parameter or variable, `owner_of` the path of the module that
    holds a parameter. Nodes numbered below `shared_below` may be of another thread: their calls
    are not looked for.
    """

    def __init__(
        self,
        recordings: Sequence[Recorded] = (),
        name_of: NameOf = lambda t: "",
        owner_of: NameOf = lambda t: "",
        shared_below: int = 0,
    ) -> None:
        self._recordings, self._name_of, self.owner_of = recordings, name_of, owner_of
        self._shared_below = shared_below

    @property
    def classes(self) -> dict[str, str]:
        """The class name of each module path that ran."""
        return {path: name for each in self._recordings for path, name in each.classes.items()}

    def call(self, node: Node) -> Call | None:
        """The innermost call in which the node was made; None if that was not recorded."""
        return self.calls((node,))[0]

    def calls(
        self, nodes: Sequence[Node], sequences: Sequence[int] | None = None
    ) -> list[Call | None]:
        """`call` of each of these, found together; None for leaves. `sequences` are the nodes' own,
        where they are known."""
        if not self._recordings:
            return [None] * len(nodes)
        sequences = sequences or sequences_of(nodes)
        found = self._recordings[-1].calls_of(sequences)  # most nodes are the newest's
        for place, (node, sequence, call) in enumerate(zip(nodes, sequences, found, strict=True)):
            if sequence < 0:
                continue
            if call is None:
                recording = find_recording(self._recordings, sequence)
                found[place] = call = None if recording is None else recording.call_of(sequence)
            # Another thread's node may have the number of a node of this thread.
            if call is not None and (sequence < self._shared_below or not _agree(call, node.kind)):
                found[place] = None
        return found

    def chain(self, node: Node) -> list[Call]:
        """The calls in which the node was made, outermost first; empty if none was recorded."""
        recording = None if self.call(node) is None else self._recording(node.sequence)
        return [] if recording is None else recording.chain_of(node.sequence)

    def _recording(self, sequence: int) -> Recorded | None:
        if not self._recordings or sequence < self._shared_below:
            return None
        return find_recording(self._recordings, sequence)

    def module(self, node: Node, call: Call | None) -> str:
        """The path of the innermost module in which the node was made, or which holds the leaf;
        "" if that was not recorded. `call` is `self.call(node)`."""
        variable = node.variable
        if variable is not None:
            return self.owner_of(variable)
        return "" if call is None else call.module

    def cuts(self, node: Node, call: Call | None = None) -> Iterator[GraphCut]:
        """The node's inputs that get no gradient, each with the reason that was recorded. `call` is
        `self.call(node)`, where that is known."""
        call = call or self.call(node)
        slots = () if call is None else _slots(call, node.op)
        if not slots:
            return
        targets = [fn is not None for fn, _ in node.fn.next_functions]
        for input_nr, slot in enumerate(_aligned(slots, targets) or ()):
            if isinstance(slot, GradientCut):
                yield self._cut(node, input_nr, slot)

    def _cut(self, node: Node, input_nr: int, cut: GradientCut) -> GraphCut:
        tensor = cut.tensor()
        source = None if cut.place is None else source_line(cut.place)
        name = "" if tensor is None else self._name_of(tensor)
        return GraphCut(
            node=node.id,
            input=input_nr,
            reason=cut.reason,
            label=sendable(name) or (source.text if source is not None else ""),
            source=source,
        )


def _agree(call: Call, kind: Kind) -> bool:
    """Whether this operator makes this kind of node: `aten::nll_loss_forward`, NllLossBackward0."""
    if call.node:
        return call.node == kind.name
    if call.kind == "function" and kind.is_custom:
        return f"{call.name}Backward" == kind.name
    if call.kind != "op":
        return True
    return _is_made_by(kind.op, call.name)


@lru_cache(maxsize=4_096)
def _is_made_by(op: str, aten: str) -> bool:
    name = aten.rpartition("::")[2].partition(".")[0]
    return name.replace("_", "").startswith(op.replace("_", ""))


def _slots(call: Call, op: str) -> Sequence[Slot]:
    """The call's tensor arguments in the order of the node's inputs; empty where it is unknown."""
    if call.kind == "function" and call.name == "linear":  # x, weight, bias
        x, weight, *bias = call.slots or (True, True)
        in_order = {"addmm": (*bias, x, weight), "mm": (x, weight)}
        return in_order.get(op, ())
    if call.kind == "function" and op == "convolution":  # x, weight, bias
        return (*call.slots, *(False,) * (3 - len(call.slots)))
    if call.kind == "function" and call.name == "matmul" and op in ("mm", "bmm", "mv", "dot"):
        return call.slots[:2]
    if call.kind == "op" or call.end - call.first == 1:
        return call.slots
    return ()  # a function made several nodes: its arguments are not the inputs of one of them


def _aligned(slots: Sequence[Slot], targets: Sequence[bool]) -> Sequence[Slot] | None:
    """The call's tensor arguments, one for each input of the node; None where that is uncertain.

    A node has an input for each argument that torch could differentiate, in their order. Some
    operations count integer tensors among these, some do not.
    """
    could = [s for s in slots if not (isinstance(s, GradientCut) and s.reason == "integer")]
    defined = [slot for slot in slots if slot is not False]
    for candidates in (slots, could, defined):
        if [slot is True for slot in candidates] == list(targets):
            return candidates
    return None


def origins(graph: Graph, sequence_ranges: Mapping[str, tuple[int, int]]) -> dict[int, str]:
    """Node id -> key of the range [start, end) that holds the node's sequence number.

    A leaf belongs to the range of all its users: AccumulateGrad has no number of its own. Nodes in
    no range, and leaves with users in several, are left out. The ranges must not overlap, and must
    come from the thread that ran the forward pass.
    """
    ranges = sorted((start, end, key) for key, (start, end) in sequence_ranges.items())
    starts = [start for start, _, _ in ranges]
    found: dict[int, str] = {}
    for node in graph.nodes:
        if node.is_leaf:
            continue
        place = bisect_right(starts, node.sequence) - 1
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
