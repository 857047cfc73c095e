"""The layers whose tensors a state_dict has, in the order of its keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from ..document import ParamValue
from .layer import Layer, Shape, layer_of

NESTS = ("model", "state_dict", "model_state_dict", "module", "net", "weights")
"""Names under which checkpoints keep the state_dict, beside other things."""
_ENCODER_PARTS = {"self_attn", "linear1", "linear2", "norm1", "norm2"}


class Part(NamedTuple):
    """A layer, and the branch of the keys that has its tensors."""

    path: str
    layer: Layer


def usual_group(keys: Iterable[str]) -> str:
    """The group of a checkpoint that has the state_dict beside other things; "" if none has."""
    groups = {key.partition("/")[0] for key in keys if "/" in key}
    return next((name for name in NESTS if name in groups), "")


def within(tensors: Mapping[str, Shape], group: str) -> dict[str, Shape]:
    """The tensors of a group, under what comes after its name; all for ""."""
    if not group:
        return dict(tensors)
    at = len(group)
    return {
        key[at + 1 :]: shape
        for key, shape in tensors.items()
        if key.startswith(group) and key[at : at + 1] in ("/", ".")
    }


def parts_of(tensors: Mapping[str, Shape]) -> tuple[list[Part], list[str]]:
    """The layers with the branches that they stand for, and the keys of no layer."""
    groups: dict[str, dict[str, Shape]] = {}
    for key, shape in tensors.items():
        place = max(key.rfind("."), key.rfind("/"))
        groups.setdefault(key[: max(place, 0)], {})[key[place + 1 :]] = shape
    encoders = _encoders(groups)
    for path in [path for path, own in groups.items() if "in_proj_weight" in own]:
        inner = groups.pop(f"{path}.out_proj" if path else "out_proj", {})
        groups[path].update({f"out_proj.{name}": shape for name, shape in inner.items()})
    parts: dict[str, Part] = {}
    left_out = []
    for path, own in groups.items():
        around = path.rpartition(".")[0]
        if around in encoders:
            parts.setdefault(around, Part(around, encoders[around]))
        elif (layer := layer_of(own)) and not layer.rest and all(map(all, own.values())):
            parts[path] = Part(path, layer)
        else:
            left_out += [f"{path}.{key}" if path else key for key in own]
    return list(parts.values()), left_out


def _encoders(groups: Mapping[str, Mapping[str, Shape]]) -> dict[str, Layer]:
    """The branches that are an nn.TransformerEncoderLayer: its parts lie there, and nothing
    else."""
    inner: dict[str, set[str]] = {}
    for path in groups:
        around, _, name = path.removesuffix(".out_proj").rpartition(".")
        inner.setdefault(around, set()).add(name)
    found = {}
    for around, names in inner.items():
        first = groups.get(f"{around}.linear1" if around else "linear1", {})
        weight = first.get("weight", ())
        if names == _ENCODER_PARTS and "bias" in first and len(weight) == 2 and all(weight):
            params: dict[str, ParamValue] = {"d_model": weight[1], "dim_feedforward": weight[0]}
            words = f"TransformerEncoderLayer({weight[1]})"
            found[around] = Layer("TransformerEncoderLayer", params, words)
    return found


def in_order(parts: list[Part]) -> list[Part]:
    """In the order of the keys, but numbers among themselves in theirs: a Sequential runs so, and
    some formats sort keys as text."""
    ranks: dict[str, int] = {}
    inner: dict[str, list[str]] = {}
    for path in (part.path for part in parts):
        for around, whole in _steps(path):
            if whole not in ranks:
                ranks[whole] = len(ranks)
                inner.setdefault(around, []).append(whole)
    for around, several in inner.items():
        numbers = [whole[len(around) + bool(around) :] for whole in several]
        if all(map(str.isdecimal, numbers)):
            ranks.update(zip(several, map(int, numbers), strict=True))
    return sorted(parts, key=lambda part: [ranks[whole] for _, whole in _steps(part.path)])


def _steps(path: str) -> list[tuple[str, str]]:
    """Each branch that a path leads through, behind the one around it."""
    names = path.split(".")
    wholes = [".".join(names[:end]) for end in range(len(names) + 1)]
    return list(pairwise(wholes))


def by_name(path: str) -> list[tuple[int, int, str]]:
    """Sorts layer10 behind layer2."""
    found = re.findall(r"\d+|\D+", path)
    return [(0, int(each), "") if each.isdecimal() else (1, 0, each) for each in found]
