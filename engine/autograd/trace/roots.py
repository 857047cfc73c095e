"""The tensor of the console whose graph has a node of a recorded call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from ...recording.recording import Call
from ..graph.deep_graphs import LEAF_SEQUENCE, guard_release


def root_over(call: Call, named: Mapping[str, Tensor]) -> str:
    """The name among `named` of a tensor whose graph has a node that `call` made; "" if there is
    none. Tensors of one number come first, then the oldest, then the shortest name."""
    if not call.makes_nodes:
        return ""
    found: list[tuple[bool, int, int, str]] = []
    for name, t in named.items():
        if not t.requires_grad or t.is_leaf:
            continue
        root = get_gradient_edge(t).node
        sequence = root._sequence_nr()
        if sequence != LEAF_SEQUENCE and sequence >= call.first and _leads_to(root, call):
            found.append((t.numel() != 1, sequence, len(name), name))
    return min(found)[-1] if found else ""


def _leads_to(root: Any, call: Call) -> bool:
    """Whether a node of the call is under `root`. Only nodes as new as the call are walked: an
    operation is newer than those whose results it uses."""
    seen, waiting = {root}, [root]
    walked = []
    is_there = False
    while waiting and not is_there:
        fn = waiting.pop()
        walked.append(fn)
        is_there = call.holds(fn._sequence_nr())
        for following, _ in fn.next_functions:
            if following is None or following in seen:
                continue
            if call.first <= following._sequence_nr() != LEAF_SEQUENCE:
                seen.add(following)
                waiting.append(following)
    guard_release([*walked, *waiting])
    return is_there
