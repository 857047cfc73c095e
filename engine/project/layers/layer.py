"""Which module of torch.nn the tensors of a state_dict suggest, by their names and shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..document import ParamValue

Shape = tuple[int, ...]
_CONVOLUTIONS = {3: "Conv1d", 4: "Conv2d", 5: "Conv3d"}
_GATES = {1: "RNN", 3: "GRU", 4: "LSTM"}
_OF_RECURRENT = re.compile(r"(weight|bias)_(ih|hh|hr)_l\d+(_reverse)?")
_OF_ATTENTION = re.compile(r"in_proj_weight|in_proj_bias|out_proj\.(weight|bias)")
_OF_BATCH_NORM = re.compile(r"weight|bias|running_mean|running_var|num_batches_tracked")
_OTHER_TENSORS = re.compile(r"weight|bias")


class Layer(NamedTuple):
    """A module. `kind` is its name in torch.nn, which has no 1d or 2d where the tensors do not tell
    it; `others` are kinds whose tensors look the same. `params` are those that the tensors tell.
    `words` are the module as one would write it; what the tensors leave open ends in a question
    mark. `rest` are names of tensors that such a module does not have."""

    kind: str
    params: dict[str, ParamValue]
    words: str
    others: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()


def layer_of(tensors: Mapping[str, Shape]) -> Layer | None:
    """The module whose own tensors have these names and shapes; None if they tell nothing."""
    known = _OTHER_TENSORS
    if "running_mean" in tensors:
        layer, known = _batch_norm(tensors), _OF_BATCH_NORM
    elif len(tensors.get("in_proj_weight", ())) == 2:
        layer, known = _attention(tensors), _OF_ATTENTION
    elif "weight_ih_l0" in tensors:
        layer, known = _recurrent(tensors), _OF_RECURRENT
    elif "weight" in tensors:
        layer = _of_weight(tensors["weight"], tensors.get("bias"))
    else:
        return None
    rest = tuple(name for name in tensors if not known.fullmatch(name))
    return layer and layer._replace(rest=rest)


def suggested(tensors: Mapping[str, Shape]) -> str:
    """The module in words; "" if the names tell nothing."""
    layer = layer_of(tensors)
    return layer.words if layer else ""


def _of_weight(weight: Shape, bias: Shape | None) -> Layer | None:
    given: dict[str, ParamValue] = {} if bias else {"bias": False}
    dims = len(weight)
    params: dict[str, ParamValue]
    if dims > 1 and bias == weight:
        return Layer("LayerNorm", {"normalized_shape": weight}, f"LayerNorm({weight})")
    if dims in _CONVOLUTIONS:
        kind, sides = _CONVOLUTIONS[dims], weight[2:]
        channels = weight[1], weight[0]
        if bias == (weight[1],) and weight[0] != weight[1]:
            kind, channels = kind.replace("Conv", "ConvTranspose"), weight[:2]
        size = sides[0] if len(set(sides)) == 1 else sides
        params = {
            "in_channels": channels[0], "out_channels": channels[1], "kernel_size": size, **given
        }  # fmt: skip
        told = "×".join(map(str, sides))
        return Layer(kind, params, f"{kind}({channels[0]}, {channels[1]}, {told})")
    if dims == 2:
        params = {"in_features": weight[1], "out_features": weight[0], **given}
        words = f"Linear({weight[1]}, {weight[0]})"
        if bias == (weight[0],):
            return Layer("Linear", params, words)
        words += f" or Embedding({weight[0]}, {weight[1]})?"
        return Layer("Linear", params, words, ("Embedding",))
    if dims == 1 and bias == weight:
        params = {"normalized_shape": weight[0]}
        return Layer("LayerNorm", params, f"LayerNorm({weight[0]})?", ("GroupNorm",))
    if dims == 1:
        params = {"normalized_shape": weight[0]}
        return Layer("RMSNorm", params, f"RMSNorm({weight[0]})?", ("PReLU", "LayerNorm"))
    return None


def _batch_norm(tensors: Mapping[str, Shape]) -> Layer | None:
    if not (mean := tensors["running_mean"]):
        return None
    given = {} if "weight" in tensors else {"affine": False}
    return Layer("BatchNorm", {"num_features": mean[0], **given}, f"BatchNorm({mean[0]})")


def _attention(tensors: Mapping[str, Shape]) -> Layer:
    size = tensors["in_proj_weight"][1]
    given = {} if "in_proj_bias" in tensors else {"bias": False}
    return Layer("MultiheadAttention", {"embed_dim": size, **given}, f"MultiheadAttention({size})")


def _recurrent(tensors: Mapping[str, Shape]) -> Layer | None:
    inner, hidden = tensors["weight_ih_l0"], tensors.get("weight_hh_l0", ())
    projected = tensors.get("weight_hr_l0", ())
    if len(hidden) != 2 or len(inner) != 2 or len(projected) not in (0, 2):
        return None
    size = projected[1] if projected else hidden[1]
    kind = _GATES.get(hidden[0] // size, "") if size else ""
    params: dict[str, ParamValue] = {"input_size": inner[1], "hidden_size": size}
    layers = sum(bool(re.fullmatch(r"weight_ih_l\d+", name)) for name in tensors)
    if layers > 1:
        params["num_layers"] = layers
    if "bias_ih_l0" not in tensors:
        params["bias"] = False
    if "weight_ih_l0_reverse" in tensors:
        params["bidirectional"] = True
    if projected:
        params["proj_size"] = projected[0]
    return Layer(kind, params, f"{kind}({inner[1]}, {size})") if kind else None


def holder(names: list[str]) -> str:
    """The container, in words, whose modules have these names; "" if it is not known."""
    numbered = names == [str(number) for number in range(len(names))]
    return "Sequential or ModuleList?" if names and numbered else ""
