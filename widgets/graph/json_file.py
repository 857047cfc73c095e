"""An autograd graph as JSON that holds all of it.

Beside `"format": "tensorlab-graph"`, `"version": 1` and `open` (the boxes that were open), the
document has the fields of `GraphSnapshot`, and each node, edge, cut and so on is an object with the
fields of its struct in `engine.protocol.autograd_snapshots`, where all of them are explained:

- `root`: the expression whose graph it is, empty for the model's loss.
- `nodes`: in the order of their ids, with torch's `name`, `op`, `module` (path), `outputs` (`shape`
  and `dtype` of each output in forward), `saved_bytes`, `source` (`file`, `line`, `text`, or null).
- `edges`: `source` and `target` (ids, the gradient's way), `input` (of the source), `output` (of
  the target). Parallel edges are separate.
- `cuts`: where the gradient's way ends early; `stale`: saved tensors overwritten since.
- `modules`: the class name of each module path; `rules`: the rule in words of each node's name.
- `saved_bytes`: of all nodes together, storages that they share counted once.
- `plan`: ids in the engine's order; `truncated`: how many nodes the graph has beyond these.
"""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Struct, defstruct

from engine.protocol import GraphSnapshot

FORMAT, VERSION = "tensorlab-graph", 1
_OF_THE_MESSAGE = ("reply_to", "revision", "part", "parts")


def to_json(graph: GraphSnapshot, open_keys: frozenset[str] = frozenset()) -> str:
    """A graph and the keys of its open boxes as JSON; the module docstring explains the fields."""
    fields = {name: value for name, value in _plain(graph).items() if name not in _OF_THE_MESSAGE}
    document = {"format": FORMAT, "version": VERSION, **fields, "open": sorted(open_keys)}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def from_json(text: str | bytes) -> tuple[GraphSnapshot, frozenset[str]]:
    """The graph and the keys of the open boxes. Raises ValueError with the fault of the file."""
    try:
        document: dict[str, Any] = msgspec.json.decode(text, type=dict)
    except msgspec.DecodeError as error:
        raise ValueError(f"This is not a JSON file: {error}") from None
    if document.pop("format", None) != FORMAT:
        raise ValueError(f'This is not a graph of Tensor Lab: "format" is not "{FORMAT}"')
    version = document.pop("version", None)
    if version != VERSION:
        raise ValueError(f"This graph has version {version}; this program reads {VERSION}")
    try:
        open_keys = frozenset(msgspec.convert(document.pop("open", []), list[str]))
        graph = _real(msgspec.convert(document, _named(GraphSnapshot)))
    except msgspec.ValidationError as error:
        raise ValueError(f"The graph is not as it should be: {error}") from None
    _check_ids(graph)
    return graph, open_keys


def _check_ids(graph: GraphSnapshot) -> None:
    count = len(graph.nodes)
    if [node.id for node in graph.nodes] != list(range(count)):
        raise ValueError("The nodes' ids are not 0, 1, 2 and so on, in this order")
    ends = [end for edge in graph.edges for end in (edge.source, edge.target)]
    for node in (*ends, *(cut.node for cut in graph.cuts)):
        if not 0 <= node < count:
            raise ValueError(f"An edge or a cut names node {node}, but there are only {count}")
    count += graph.truncated  # a stale tensor may be of a node that was left out
    for node in (save.node for save in graph.stale):
        if not 0 <= node < count:
            raise ValueError(f"A stale tensor is of node {node}, but there are only {count}")


# -- structs that messages carry as arrays, by the names of their fields ---------------------------

_struct_of: dict[type, type[Struct]] = {}
"""Named struct -> the one it stands for."""


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return {name: _plain(inner) for name, inner in msgspec.structs.asdict(value).items()}
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return value


def _real(value: Any) -> Any:
    if isinstance(value, Struct):
        fields = msgspec.structs.asdict(value)
        return _struct_of[type(value)](**{name: _real(each) for name, each in fields.items()})
    if isinstance(value, tuple):
        return tuple(_real(inner) for inner in value)
    return value


@cache
def _named(kind: Any) -> Any:
    """A copy of a type in which each struct is written as an object with the names of its fields.
    Reading refuses other names."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        fields = []
        for field in msgspec.structs.fields(kind):
            default = {"default": field.default} if field.default is not NODEFAULT else {}
            if field.default_factory is not NODEFAULT:
                default = {"default_factory": field.default_factory}
            fields.append((field.name, _named(field.type), msgspec.field(**default)))
        named = defstruct(kind.__name__, fields, kw_only=True, forbid_unknown_fields=True)
        _struct_of[named] = kind
        return named
    inner = tuple(map(_named, get_args(kind)))
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return reduce(or_, inner)
    return origin.__class_getitem__(inner) if origin in (tuple, dict) else kind
