"""The module that names and shapes of tensors tell, beside torch's own modules."""

from __future__ import annotations

from itertools import product

import pytest
from torch import nn

from engine.project.layers.layer import Layer, holder, layer_of, suggested

MODULES = [
    *(nn.Linear(3, 5, bias=bias) for bias in (True, False)),
    nn.LayerNorm(4), nn.LayerNorm([3, 4]), nn.RMSNorm(4), nn.GroupNorm(2, 4),
    nn.Embedding(7, 3), nn.PReLU(), nn.PReLU(5),
    *(getattr(nn, f"Conv{n}d")(3, 5, 2, bias=has) for n, has in product((1, 2, 3), (True, False))),
    *(getattr(nn, f"ConvTranspose{n}d")(3, 5, 2) for n in (1, 2, 3)),
    nn.Conv2d(3, 5, (2, 7)), nn.ConvTranspose2d(3, 5, (2, 7)), nn.Conv2d(3, 3, 2),
    *(nn.BatchNorm1d(4, affine=affine) for affine in (True, False)),
    *(nn.MultiheadAttention(4, 2, bias=bias) for bias in (True, False)),
    *(kind(3, 4, layers, bias=bias, bidirectional=both)
      for kind in (nn.LSTM, nn.GRU, nn.RNN)
      for layers, bias, both in ((1, True, False), (3, True, False), (1, False, True))),
    nn.LSTM(3, 4, proj_size=2),
]  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_a_module_of_the_layer_has_the_same_tensors(module: nn.Module) -> None:
    """Made with the parameters that are told; what tensors leave open may be another kind."""
    shapes = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    layer = layer_of(shapes)
    if layer is None:
        assert type(module) not in (nn.Linear, nn.Embedding, nn.LSTM, nn.BatchNorm1d)
        return
    own = type(module).__name__
    kinds = [layer.kind, *layer.others]
    assert any(own in (kind, f"{kind}1d", f"{kind}2d", f"{kind}3d") for kind in kinds), layer
    assert layer.rest == () and suggested(shapes) == layer.words != ""
    if own != layer.kind or own in ("MultiheadAttention",):
        return
    again = getattr(nn, layer.kind)(**layer.params)
    assert {n: tuple(t.shape) for n, t in again.state_dict().items()} == shapes


def test_tensors_that_the_module_does_not_have_are_left_over() -> None:
    layer = layer_of({"weight": (5, 3), "bias": (5,), "scale": (5,)})
    assert layer is not None and (layer.kind, layer.rest) == ("Linear", ("scale",))
    assert suggested({"scale": (3,)}) == "" and layer_of({}) is None


def test_numbered_modules_are_in_a_container() -> None:
    assert holder(["0", "1", "2"]) == holder(["0"]) == "Sequential or ModuleList?"
    for names in ([], ["1", "2"], ["0", "2"], ["1", "0"], ["a"]):
        assert holder(names) == ""


@pytest.mark.parametrize(
    ("shapes", "kind", "params", "words", "others"),
    [
        ({"weight": (5, 3), "bias": (5,)}, "Linear",
         {"in_features": 3, "out_features": 5}, "Linear(3, 5)", ()),
        ({"weight": (5, 3)}, "Linear", {"in_features": 3, "out_features": 5, "bias": False},
         "Linear(3, 5) or Embedding(5, 3)?", ("Embedding",)),
        ({"weight": (4,), "bias": (4,)}, "LayerNorm", {"normalized_shape": 4},
         "LayerNorm(4)?", ("GroupNorm",)),
        ({"weight": (4,)}, "RMSNorm", {"normalized_shape": 4},
         "RMSNorm(4)?", ("PReLU", "LayerNorm")),
        ({"weight": (5, 3, 2, 2), "bias": (5,)}, "Conv2d",
         {"in_channels": 3, "out_channels": 5, "kernel_size": 2}, "Conv2d(3, 5, 2×2)", ()),
        ({"weight": (5, 3, 2, 7)}, "Conv2d",
         {"in_channels": 3, "out_channels": 5, "kernel_size": (2, 7), "bias": False},
         "Conv2d(3, 5, 2×7)", ()),
        ({"weight": (5, 3, 2), "bias": (3,)}, "ConvTranspose1d",
         {"in_channels": 5, "out_channels": 3, "kernel_size": 2}, "ConvTranspose1d(5, 3, 2)", ()),
        ({"weight": (3, 3, 2), "bias": (3,)}, "Conv1d",
         {"in_channels": 3, "out_channels": 3, "kernel_size": 2}, "Conv1d(3, 3, 2)", ()),
    ],
)  # fmt: skip
def test_what_a_layer_is_told_to_be(shapes, kind, params, words, others) -> None:
    assert layer_of(shapes) == Layer(kind, params, words, others)


def test_recurrent_tensors_that_do_not_fit_are_no_layer() -> None:
    fits = {"weight_ih_l0": (16, 3), "weight_hh_l0": (16, 4)}
    layer = layer_of(fits)
    assert layer is not None and (layer.kind, layer.words) == ("LSTM", "LSTM(3, 4)")
    assert layer.params == {"input_size": 3, "hidden_size": 4, "bias": False}
    for bad in ({"weight_hh_l0": (16,)}, {"weight_ih_l0": (16,)}, {"weight_hh_l0": (20, 4)},
                {"weight_hh_l0": (16, 0)}, {"weight_hr_l0": (2,)}):  # fmt: skip
        assert layer_of(fits | bad) is None
