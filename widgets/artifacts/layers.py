"""Which module of torch.nn the tensors of a state_dict suggest, by their names and shapes."""

from __future__ import annotations

from collections.abc import Mapping

Shape = tuple[int, ...]
_CONVOLUTIONS = {3: "Conv1d", 4: "Conv2d", 5: "Conv3d"}
_GATES = {1: "RNN", 3: "GRU", 4: "LSTM"}


def suggested(tensors: Mapping[str, Shape]) -> str:
    """The module whose own tensors have these names and shapes, as one would write it; "" if the
    names tell nothing. What the tensors leave open ends in a question mark."""
    weight, bias = tensors.get("weight"), tensors.get("bias")
    if "running_mean" in tensors:
        return f"BatchNorm({tensors['running_mean'][0]})" if tensors["running_mean"] else ""
    if "in_proj_weight" in tensors and len(tensors["in_proj_weight"]) == 2:
        return f"MultiheadAttention({tensors['in_proj_weight'][1]})"
    if "weight_ih_l0" in tensors:
        return _recurrent(tensors["weight_ih_l0"], tensors.get("weight_hh_l0"))
    if weight is None:
        return ""
    if len(weight) in _CONVOLUTIONS:
        kind, size = _CONVOLUTIONS[len(weight)], "×".join(map(str, weight[2:]))
        return f"{kind}({weight[1]}, {weight[0]}, {size})"
    if len(weight) == 2:
        if bias == (weight[0],):
            return f"Linear({weight[1]}, {weight[0]})"
        return f"Linear({weight[1]}, {weight[0]}) or Embedding({weight[0]}, {weight[1]})?"
    if len(weight) == 1:
        return f"LayerNorm({weight[0]})?" if bias == weight else f"RMSNorm({weight[0]})?"
    return ""


def _recurrent(inner: Shape, hidden: Shape | None) -> str:
    if hidden is None or len(hidden) != 2 or len(inner) != 2 or not hidden[1]:
        return ""
    kind = _GATES.get(hidden[0] // hidden[1], "")
    return f"{kind}({inner[1]}, {hidden[1]})" if kind else ""


def holder(names: list[str]) -> str:
    """What holds modules of these names."""
    numbered = names == [str(number) for number in range(len(names))]
    return "Sequential or ModuleList?" if names and numbered else ""
