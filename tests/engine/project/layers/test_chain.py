"""Models of blocks from state_dicts: torch's own modules are the oracle."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import pytest
import torch
from torch import nn

from engine.exporting.weights_fit import find_fit, load_fit, under_names
from engine.models.live import LiveModel
from engine.project import wiring
from engine.project.layers.chain import MAX_TENSORS, Found, NoChain, model_of
from engine.project.layers.layers_of_keys import parts_of, usual_group, within


def shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {key: tuple(value.shape) for key, value in module.state_dict().items()}


def kinds(found: Found) -> list[str]:
    return [block.kind.removeprefix("nn.") for block in found.model.blocks]


def params(found: Found, name: str) -> dict:
    return next(block.params for block in found.model.blocks if block.name == name)


def live(found: Found, module: nn.Module) -> nn.Module:
    """The blocks with the weights of the module, all of them."""
    made = LiveModel(found.model, 1).module
    state = under_names(module.state_dict(), found.branches)
    fit = find_fit(state, made)
    assert fit.is_whole and not fit.unexpected and not fit.is_renamed
    load_fit(state, made, fit)
    return made.eval()


class Case(NamedTuple):
    """A module of torch that computes what its chain of blocks does; `size` is that of a batch."""

    module: nn.Module
    kinds: list[str]
    size: tuple[int, ...]


def images(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 3))


CASES = {
    "linear": Case(nn.Linear(3, 4), ["Linear"], (2, 3)),
    "norms": Case(
        nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2, bias=False)),
        ["Linear", "BatchNorm1d", "Linear"],
        (5, 4),
    ),
    "images": Case(
        images(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.GroupNorm(1, 6)),
        ["Conv2d", "BatchNorm2d", "GroupNorm", "AdaptiveAvgPool2d", "Flatten", "Linear"],
        (2, 3, 32, 32),
    ),
    "groups": Case(
        nn.Sequential(nn.Conv1d(4, 6, (5,), padding=2), nn.Conv1d(6, 12, 1, groups=3), nn.PReLU()),
        ["Conv1d", "Conv1d", "PReLU"],
        (2, 4, 32),
    ),
    "transposed": Case(
        nn.Sequential(nn.ConvTranspose2d(3, 5, 2), nn.PReLU(5)),
        ["ConvTranspose2d", "PReLU"],
        (2, 3, 32, 32),
    ),
    "tokens": Case(
        nn.Sequential(
            OrderedDict(
                embedding=nn.Embedding(11, 6),
                encoder=nn.TransformerEncoderLayer(6, 1, 10, batch_first=True),
                norm=nn.LayerNorm(6),
                rms=nn.RMSNorm(6),
                head=nn.Linear(6, 11, bias=False),
            )
        ),
        ["Embedding", "TransformerEncoderLayer", "LayerNorm", "RMSNorm", "Linear"],
        (2, 16),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_blocks_compute_what_torchs_chain_does(name: str) -> None:
    case = CASES[name]
    for module in case.module.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            assert module.running_mean is not None
            nn.init.normal_(module.running_mean)
    found = model_of(shapes(case.module))
    assert kinds(found) == ["Input", *case.kinds, "Output"]
    assert wiring.check(found.model) == ()
    x = torch.randint(11, case.size) if name == "tokens" else torch.randn(case.size)
    with torch.no_grad():
        torch.testing.assert_close(live(found, case.module)(x), case.module.eval()(x))


def test_recurrent_layers_and_attention_have_all_that_their_tensors_tell() -> None:
    module = nn.ModuleDict(
        {
            "rnn": nn.LSTM(8, 16, 2, bidirectional=True, proj_size=5),
            "gru": nn.GRU(10, 4, bias=False),
            "att": nn.MultiheadAttention(4, 2, bias=False),
        }
    )
    found = model_of(shapes(module))
    assert kinds(found) == ["Input", "LSTM", "GRU", "MultiheadAttention", "Output"]
    assert params(found, "rnn") == {
        "input_size": 8, "hidden_size": 16, "num_layers": 2, "bidirectional": True,
        "proj_size": 5, "batch_first": True,
    }  # fmt: skip
    assert params(found, "gru")["bias"] is params(found, "att")["bias"] is False
    assert "1 head in attention" in " ".join(found.notes)
    live(found, module)


def test_identities_stand_where_numbers_leave_modules_out_and_the_notes_say_what_is_not_known():
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 2))
    found = model_of({**shapes(module), "scale": (3, 3, 3)})
    assert [block.name for block in found.model.blocks] == [
        "x", "linear_0", "identity_1", "identity_2", "linear_3", "output1"
    ]  # fmt: skip
    assert found.branches == {"linear_0": "0", "linear_3": "3"}
    assert found.notes[0].endswith("Activations, dropout, pooling and additions are not in it.")
    assert found.notes[1:] == (
        "2 blocks Identity stand where the numbers of the keys leave modules out.",
        "Of no layer that is known, left out: scale.",
    )
    conv = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    assert kinds(model_of(shapes(conv)))[2:5] == ["AdaptiveAvgPool2d", "Flatten", "Linear"]
    conv.insert(1, nn.Identity())
    assert kinds(model_of(shapes(conv)))[2:4] == ["Identity", "AdaptiveAvgPool2d"]


def test_layers_in_the_order_of_their_names_are_joined_where_the_order_of_the_keys_is_none() -> (
    None
):
    state = {"l10.weight": (2, 8), "l2.weight": (8, 4), "l1.weight": (4, 3)}
    assert list(model_of(state).branches) == ["l1", "l2", "l10"]


def test_layers_of_a_sequential_come_by_their_numbers_though_a_file_sorts_text() -> None:
    """All sizes are equal: they would join in any order. safetensors has integers first."""
    module = nn.Sequential(*(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()) * 4, nn.Linear(8, 8))
    state = {f"body.{key}": value for key, value in shapes(module).items()}
    integers = sorted(key for key in state if key.endswith("tracked"))
    keys = [*integers, *sorted(state.keys() - set(integers)), "a_head.weight", "a_head.bias"]
    state |= {"a_head.weight": (8, 8), "a_head.bias": (8,)}
    branches = list(model_of({key: state[key] for key in keys}).branches)
    numbers = [0, 1, 3, 4, 6, 7, 9, 10, 12]
    assert branches == [*(f"body_{number}" for number in numbers), "a_head"]


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"a.weight": (4, 3), "b.weight": (4, 3)}, "b takes 3 features, and a gives 4 features"),
        ({"a.weight": (4, 3), "emb.weight": (9, 4)}, "emb takes indices, and a gives 4 features"),
        ({"a.weight": (4, 3, 3), "b.weight": (2, 4, 3, 3)}, "b takes 4 channels, and a gives 4"),
        ({"a.weight": (4, 3, 1, 1, 1)}, "There is no block for Conv3d(3, 4, 1×1×1) (a)"),
        ({"a.weight": (0, 3), "b": (2,)}, "suggest no layers"),
        ({f"l{n}.weight": (1, 1) for n in range(MAX_TENSORS + 1)}, "It has 2,001 tensors"),
        ({}, "suggest no layers"),
    ],
)
def test_what_is_no_chain_is_told(state: dict, why: str) -> None:
    with pytest.raises(NoChain) as raised:
        model_of(state)
    assert why in str(raised.value)


def test_the_state_dict_of_a_checkpoint_is_found_among_other_things() -> None:
    state = {"optimizer/0/m": (3,), "model/a.weight": (3, 2), "model_x/b": (1,)}
    assert usual_group(state) == "model"
    assert within(state, "model") == {"a.weight": (3, 2)}
    assert usual_group(["a.weight"]) == "" and within(state, "") == state
    assert within({"a.0.w": (1,), "a.10.w": (2,)}, "a.1") == {}


def test_tensors_get_the_names_of_the_modules_that_stand_for_their_branches() -> None:
    a, b, c = torch.zeros(3).unbind()
    state = {"h.1.attn.w": a, "h.10.w": b, "other": c}
    named = under_names(state, {"block": "h.1", "last": "h.10"})
    assert list(named) == ["block.attn.w", "last.w", "other"] and named["last.w"] is b
    assert list(under_names({"weight": a}, {"linear1": ""})) == ["linear1.weight"]


@pytest.mark.parametrize("around", ["", "body"])
def test_an_encoder_layer_is_one_part_wherever_it_lies(around: str) -> None:
    module = nn.TransformerEncoderLayer(6, 1, 10)
    shapes = {
        f"{around}.{name}".lstrip("."): tuple(tensor.shape)
        for name, tensor in module.state_dict().items()
    }
    parts, left_out = parts_of(shapes)
    assert [(part.path, part.layer.kind) for part in parts] == [(around, "TransformerEncoderLayer")]
    assert parts[0].layer.params == {"d_model": 6, "dim_feedforward": 10} and left_out == []
    del shapes[f"{around}.norm2.weight".lstrip(".")], shapes[f"{around}.norm2.bias".lstrip(".")]
    assert len(parts_of(shapes)[0]) == 4  # its parts one by one
