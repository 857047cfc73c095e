"""One step per format version: from a decoded file of that version to one of the next.

A step may count on the fields of its version only; KeyError names one that is missing.
"""

from __future__ import annotations

from collections.abc import Callable


def _from_0(document: dict) -> dict:
    """Migrate version 0, a draft of the format: it has blocks and wires at the top level, each wire
    as a list of four strings, the data set as a name, and no view."""
    document = dict(document)
    blocks = document.pop("blocks")
    ends = ("source", "source_port", "target", "target_port")
    wires = [dict(zip(ends, wire, strict=True)) for wire in document.pop("wires")]
    document["model"] = {"blocks": blocks, "wires": wires}
    training = dict(document.get("training", {}))
    if "data" in training:
        training["data"] = {"kind": training["data"]}
    document["training"] = training
    return document


def _from_1(document: dict) -> dict:
    """Migrate version 1, which knew no subject but the canvas."""
    return document


def _from_2(document: dict) -> dict:
    """Migrate version 2, whose training has no schedule, accumulation, clipping or precision."""
    return document


MIGRATIONS: dict[int, Callable[[dict], dict]] = {0: _from_0, 1: _from_1, 2: _from_2}
"""The step from version n to n + 1, by n."""
