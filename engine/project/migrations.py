"""One step per format version: from a decoded file of that version to one of the next.

A step may count on the fields of its version only; KeyError names one that is missing.
"""

from __future__ import annotations

from collections.abc import Callable

from .soundness import FileProblem


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


def _from_3(document: dict) -> dict:
    """Migrate version 3, whose training could divide the model between processes by FSDP2."""
    return {**document, "training": without_sharding(document.get("training", {}))}


def without_sharding(training: dict) -> dict:
    """The training of version 3 as this one has it. Raises FileProblem if it needs FSDP2."""
    training = dict(training)
    if training.pop("sharding", "none") != "none":
        raise FileProblem(
            "Tensor Lab no longer divides a model between processes (FSDP2). Write “none” here to"
            " train with the whole model in each process (DistributedDataParallel).",
            "training.sharding",
        )
    return training


MIGRATIONS: dict[int, Callable[[dict], dict]] = {0: _from_0, 1: _from_1, 2: _from_2, 3: _from_3}
"""The step from version n to n + 1, by n."""
