"""Answers with all that is known of one node, read without running or unpacking anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..autograd.backward.backward_pass import BackwardPass
from ..autograd.graph.hooks import hooks_on
from ..autograd.graph.node_facts import SavedTensor, storage_id
from ..autograd.graph.reading import Node
from ..autograd.graph.stale import StaleSave, stale_saves
from ..lab import Lab
from ..protocol import (
    NodeCaller,
    NodeDetailCommand,
    NodeDetailSnapshot,
    NodeEnd,
    SavedValue,
)
from ..system.errors import LabError, sendable
from ..tensors.summary import shown_values

MAX_TEXT = 200
MAX_SHARED = 12
_OPEN_END = 2**63 - 1
_OUR_METADATA = "tensorlab_guard"

FREED = "Nothing that it saved is left: a backward pass has freed it."
LIKE_BEFORE = (
    "Its module ran often and was not looked into this time: the line and the module are those of"
    " an earlier call that made the same nodes."
)
NOT_LOOKED_INTO = (
    "Its module ran often and was not looked into this time, and it made other nodes than before:"
    " its lines are recorded when it runs again."
)

CUT_TEXTS = {
    "detach": "cut by detach()",
    "no_grad": "cut by no_grad",
    "frozen": "a frozen parameter",
    "input": "data that requires no grad",
    "integer": "a dtype that has no gradient",
    "unknown": "it needs no gradient",
}


def node_detail(lab: Lab, command: NodeDetailCommand) -> Iterator[NodeDetailSnapshot]:
    """Answer with a NodeDetailSnapshot. Raises LabError if there is no pass, or no such node."""
    yield detail(lab.backward.require(), command.node)


def detail(backward: BackwardPass, node_id: int) -> NodeDetailSnapshot:
    """All facts of the node, from the graph, the recording and torch's own object."""
    graph = backward.stepper.graph
    if not 0 <= node_id < len(graph.nodes):
        raise LabError(
            f"There is no node {node_id} in the graph.", hint="Choose a node of the graph shown."
        )
    node = graph.nodes[node_id]
    saved = node.saved
    return NodeDetailSnapshot(
        node=node_id,
        name=node.name,
        sequence=node.sequence,
        also_called=tuple(_other_names(backward, node)),
        saved=tuple(_saved_values(backward, node, saved)),
        settings=tuple(_settings(node)),
        outputs=tuple(_outputs(backward, node)),
        inputs=tuple(_inputs(backward, node)),
        callers=tuple(_callers(backward, node)),
        metadata=tuple(
            (sendable(str(key)), _text(value))
            for key, value in node.fn.metadata.items()
            if key != _OUR_METADATA
        ),
        hooks=hooks_on(node, own=backward.stepper.own_hooks),
        note=" ".join(_notes(backward, node)),
    )


def _notes(backward: BackwardPass, node: Node) -> Iterator[str]:
    if node.is_freed:
        yield FREED
    call = backward.subject.provenance.call(node)
    if call is not None and call.is_like:
        yield LIKE_BEFORE
    elif call is not None and call.index < 0:
        yield NOT_LOOKED_INTO


def _callers(backward: BackwardPass, node: Node) -> Iterator[NodeCaller]:
    provenance = backward.subject.provenance
    chain = provenance.chain(node)
    if chain and chain[-1].module and not any(call.kind == "module" for call in chain):
        path = chain[-1].module  # a light recording has functions only, each with its module path
        yield NodeCaller(kind="module", name=_module(path, provenance.classes.get(path, "")))
    for call in chain:
        name = _module(call.module, call.name) if call.kind == "module" else sendable(call.name)
        yield NodeCaller(kind=call.kind, name=name, source=call.source)


def _other_names(backward: BackwardPass, node: Node) -> Iterator[str]:
    """The other names of a parameter that several modules share."""
    variable = node.variable
    names = [name for name, t in backward.subject.names.items() if t is variable]
    if variable is not None:
        yield from (sendable(name) for name in reversed(names) if name != node.label)


def _module(path: str, title: str) -> str:
    return sendable(f"{path} ({title})" if path and title else path or title)


def _saved_values(
    backward: BackwardPass, node: Node, saved: tuple[SavedTensor, ...]
) -> Iterator[SavedValue]:
    holders = _holders(backward, {each.storage_id for each in saved if each.data is not None}, node)
    stale = {each.saved.name: each for each in stale_saves([node])}
    shown = shown_values([(each.name, each.data) for each in saved])
    for each, value in zip(saved, shown, strict=True):
        overwritten: StaleSave | None = stale.get(each.name)
        note = each.note
        if overwritten is not None:
            note = "overwritten since it was saved: this is what it holds now"
        names = holders.get(each.storage_id, []) if each.data is not None else []
        more = [f"{len(names) - MAX_SHARED} more"] if len(names) > MAX_SHARED else []
        yield SavedValue(
            name=each.name,
            value=value,
            storage_bytes=each.storage_bytes,
            shared_with=(*names[:MAX_SHARED], *more),
            version=None if overwritten is None else overwritten.version,
            saved_version=None if overwritten is None else overwritten.saved_version,
            note=note,
        )


def _holders(backward: BackwardPass, storages: set[int], asked: Node) -> dict[int, list[str]]:
    """Everything else that holds these storages, by storage: names of tensors, then other nodes."""
    found: dict[int, list[str]] = {storage: [] for storage in storages}
    if not storages:
        return found
    for name, t in reversed(list(backward.subject.names.items())):
        storage = storage_id(t)
        if storage in found:
            found[storage].append(sendable(name))
    for node in backward.stepper.graph.nodes:
        if node is asked:
            continue
        for storage in {each.storage_id for each in node.saved if each.data is not None}:
            if storage in found:
                found[storage].append(f"#{node.id}")
    return found


def _settings(node: Node) -> Iterator[tuple[str, str]]:
    """The node's saved values that are no tensors: `dim`, `p`, and what a custom Function put on
    ctx."""
    kind = type(node.fn)
    for attribute in dir(kind):
        name = attribute.removeprefix("_saved_")
        if name == attribute or hasattr(kind, f"_raw_saved_{name}"):
            continue
        try:
            value = getattr(node.fn, attribute)
        except RuntimeError as error:
            yield name, str(error).partition("\n")[0]
        else:
            yield name, _text(_signed(value))
    if node.is_custom:
        for name, value in vars(node.fn).items():
            yield sendable(name), _text(value)


def _signed(value: Any) -> Any:
    """The number as the user wrote it: torch gives a negative dim as a large unsigned number, and
    the end of an open slice as the largest integer."""
    if isinstance(value, tuple | list):
        return type(value)(_signed(item) for item in value)
    if isinstance(value, int) and not isinstance(value, bool):
        if value >= 2**63:
            return value - 2**64
        return "the end" if value == _OPEN_END else value
    return value


def _outputs(backward: BackwardPass, node: Node) -> Iterator[NodeEnd]:
    graph = backward.stepper.graph
    users: dict[int, list[int]] = {}
    for edge in graph.edges:
        if edge.target == node.id:
            users.setdefault(edge.output, []).append(edge.source)
    roots = {output for root, output in graph.roots if root == node.id}
    for place, (spec, device) in enumerate(zip(node.outputs, node.devices, strict=True)):
        text = "the root: backward starts here" if place in roots else ""
        if spec.dtype == "unknown":
            yield NodeEnd(spec=None, nodes=(), text="no gradient comes here: integers, or None")
            continue
        if not text and place not in users:
            text = "not used"
        yield NodeEnd(spec=spec, nodes=tuple(users.get(place, ())), text=text, device=device)


def _inputs(backward: BackwardPass, node: Node) -> Iterator[NodeEnd]:
    cuts = {cut.input: cut for cut in backward.subject.provenance.cuts(node)}
    for place, (fn, output_nr) in enumerate(node.fn.next_functions):
        if fn is not None:
            target = backward.stepper.graph.node_of(fn)
            yield NodeEnd(
                spec=target.outputs[output_nr],
                nodes=(target.id,),
                device=target.devices[output_nr],
                output=output_nr if len(target.outputs) > 1 else None,
            )
            continue
        cut = cuts.get(place)
        text = "no gradient goes here"
        if cut is not None:
            text = CUT_TEXTS[cut.reason] + (f": {cut.label}" if cut.label else "")
        yield NodeEnd(spec=None, nodes=(), text=text)


def _text(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:  # a user's object may raise anything
        text = f"{type(value).__name__} ({error})"
    return sendable(text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…")
