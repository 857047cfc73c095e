"""The live model: built as torch builds it, and its weights outlive edits."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.models.live import LiveModel
from engine.project.document import Block, Model, Wire, replace
from engine.system.errors import LabError
from tests.engine.models.strategies import chain, new_block


def mlp(hidden: int = 16) -> Model:
    return chain(
        ("Input", {"shape": (1, 8, 8)}),
        ("nn.Flatten", {}),
        ("nn.Linear", {"out_features": hidden}),
        ("nn.ReLU", {}),
        ("nn.Linear", {"in_features": hidden, "out_features": 10}),
        ("Output", {}),
    )


def weights(live: LiveModel) -> dict[str, torch.Tensor]:
    return {key: value.clone() for key, value in live.module.state_dict().items()}


def test_it_is_what_nn_sequential_would_be():
    live = LiveModel(mlp(), seed=0)
    plain = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    plain.load_state_dict(
        dict(zip(plain.state_dict(), live.module.state_dict().values(), strict=True))
    )
    x = torch.randn(5, 1, 8, 8)
    assert torch.equal(live.module(x), plain(x))
    assert list(live.module.state_dict()) == [
        "linear_b2.weight", "linear_b2.bias", "linear_b4.weight", "linear_b4.bias"
    ]  # fmt: skip
    assert live.parameters == sum(p.numel() for p in plain.parameters())


def test_new_blocks_come_to_the_device_of_the_weights_and_without_weights_to_the_cpu():
    without = chain(("Input", {"shape": (8,)}), ("nn.ReLU", {}), ("Output", {}))
    live = LiveModel(without, seed=0)
    assert live.device == torch.device("cpu") and live.parameters == 0
    live.sync(mlp(), seed=0)
    assert live.device == torch.device("cpu")
    live.module.to("meta")
    live.sync(mlp(hidden=20), seed=0)
    assert {p.device.type for p in live.module.parameters()} == {"meta"}


def test_the_seed_decides_the_weights_and_nothing_else_is_drawn():
    state = torch.get_rng_state()
    one, same, other = (weights(LiveModel(mlp(), seed)) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not torch.equal(one["linear_b2.weight"], other["linear_b2.weight"])


def test_an_edit_keeps_the_weights_of_all_other_blocks():
    live = LiveModel(mlp(), seed=0)
    with torch.no_grad():
        live.module.get_parameter("linear_b2.weight").add_(1)
        live.module.get_parameter("linear_b4.weight").add_(1)
    before = weights(live)
    model = mlp()
    wider = tuple(
        replace(b, params={**b.params, "bias": False}) if b.id == "b4" else b for b in model.blocks
    )
    live.sync(replace(model, blocks=wider), seed=0)
    after = weights(live)
    assert torch.equal(after["linear_b2.weight"], before["linear_b2.weight"])
    assert not torch.equal(after["linear_b4.weight"], before["linear_b4.weight"])
    assert "linear_b4.bias" not in after


def test_moving_a_block_rebuilds_nothing():
    live = LiveModel(mlp(), seed=0)
    module = live.module
    moved = tuple(replace(block, x=block.x + 8) for block in mlp().blocks)
    assert live.sync(replace(mlp(), blocks=moved), seed=0) is module


def test_a_new_seed_starts_only_untrained_blocks_anew():
    live = LiveModel(mlp(), seed=0)
    with torch.no_grad():
        live.module.get_parameter("linear_b2.bias").add_(1)
    before = weights(live)
    live.sync(mlp(), seed=1)
    after, fresh = weights(live), weights(LiveModel(mlp(), seed=1))
    assert torch.equal(after["linear_b2.weight"], before["linear_b2.weight"])
    assert torch.equal(after["linear_b4.weight"], fresh["linear_b4.weight"])


def test_reset_forgets_trained_weights():
    live = LiveModel(mlp(), seed=0)
    before = weights(live)
    with torch.no_grad():
        live.module.get_parameter("linear_b2.weight").zero_()
    live.reset(mlp(), seed=0)
    assert all(torch.equal(value, before[key]) for key, value in weights(live).items())


def test_a_model_that_cannot_run_leaves_the_old_one_standing():
    live = LiveModel(mlp(), seed=0)
    module = live.module
    broken = replace(mlp(), wires=mlp().wires[1:])
    with pytest.raises(LabError) as error:
        live.sync(broken, seed=0)
    assert error.value.problems[0].block == "b1"
    assert live.module is module and live.model == mlp()
    with pytest.raises(LabError):
        live.reset(broken, seed=0)
    assert live.sync(mlp(), seed=0) is module


def test_the_states_of_an_lstm_can_be_passed_on():
    sizes = {"input_size": 8, "hidden_size": 4}
    first = new_block("a", "nn.LSTM", sizes)
    second = new_block("b", "nn.LSTM", {"input_size": 4, "hidden_size": 4})
    model = Model(
        (
            Block("i", "Input", "x", {"shape": (5, 8)}),
            first,
            second,
            Block("o", "Output", "out"),
        ),
        (
            Wire("i", "x", "a", "input"),
            Wire("a", "output", "b", "input"),
            Wire("a", "h_n", "b", "h_0"),
            Wire("a", "c_n", "b", "c_0"),
            Wire("b", "output", "o", "x"),
        ),
    )
    module = LiveModel(model, seed=0).module
    x = torch.randn(2, 5, 8)
    a, b = module.get_submodule(first.name), module.get_submodule(second.name)
    output, states = a(x)
    assert torch.equal(module(x), b(output, states)[0])
