"""A slice of the loss landscape against plain torch, and the model that it leaves as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from engine.system.errors import LabError
from engine.training.landscape.directions import directions
from engine.training.landscape.surface import Surface, multiples
from engine.training.objectives.code_objective import CodeObjective
from engine.training.objectives.objective import CatalogueObjective

Make = Callable[[], nn.Sequential]


def test_each_filter_of_a_direction_is_as_long_as_that_of_the_weights() -> None:
    torch.manual_seed(0)
    conv, bias = torch.randn(3, 2, 5, 5), torch.randn(3)
    conv[1] = 0
    (first, none), (second, _) = directions([conv, bias], 2, seed=4)
    torch.testing.assert_close(first.flatten(1).norm(dim=1), conv.flatten(1).norm(dim=1))
    torch.testing.assert_close(second.flatten(1).norm(dim=1), conv.flatten(1).norm(dim=1))
    assert not none.any() and not torch.equal(first, second)
    assert not directions([torch.randn(4, 3), bias], 1, seed=4)[0][1].any()
    (again, _), _ = directions([conv, bias], 2, seed=4)
    assert torch.equal(first, again)
    assert not torch.equal(first, directions([conv], 1, seed=5)[0][0])


def test_weights_of_one_dim_only_move_as_a_whole() -> None:
    ((found,),) = directions([torch.tensor([3.0, 4.0])], 1, seed=0)
    assert found.norm().item() == pytest.approx(5.0)


def test_multiples_have_the_weights_themselves_in_the_middle() -> None:
    assert multiples(5, 0.5) == (-0.5, -0.25, 0.0, 0.25, 0.5)


@pytest.mark.parametrize("is_plane", [False, True])
def test_the_losses_are_those_of_a_plain_model(make_mlp: Make, moons, is_plane: bool) -> None:
    """Of 100 moons 80 are trained with; two batches of 32 are taken."""
    model = make_mlp()
    model.train()
    model(torch.randn(64, 2))  # its running statistics move
    objective = CatalogueObjective(model, moons)
    along = multiples(3, 0.7)
    surface = Surface(model, objective, along, is_plane, batches=2, seed=6)
    assert len(list(surface.points())) == surface.total == (9 if is_plane else 3)
    assert surface.samples == 64

    dataset = CatalogueObjective(model, moons).dataset
    rows = dataset.order(moons.seed, 0)[:64]
    x, y = dataset.x_train[rows], dataset.y_train[rows]
    plain = copy.deepcopy(model).eval()
    names, weights = zip(*plain.named_parameters(), strict=True)
    chosen = directions([w.detach() for w in weights], 2 if is_plane else 1, seed=6)
    places = [(a, b) for a in along for b in along] if is_plane else [(a,) for a in along]
    for place, loss in zip(places, surface.losses, strict=True):
        moved = [w.detach().clone() for w in weights]
        for multiple, direction in zip(place, chosen, strict=True):
            moved = [w + multiple * d for w, d in zip(moved, direction, strict=True)]
        output = functional_call(plain, dict(zip(names, moved, strict=True)), x)
        assert loss == pytest.approx(nn.functional.cross_entropy(output, y).item(), rel=1e-5)


@pytest.mark.parametrize("stopped_after", [2, 99])
def test_the_model_is_bit_for_bit_as_before(make_mlp: Make, moons, stopped_after: int) -> None:
    model = make_mlp()
    model(torch.randn(8, 2)).sum().backward()
    list(model.modules())[2].eval()  # the BatchNorm
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    gradients = [p.grad for p in model.parameters()]
    numbers = [None if g is None else g.clone() for g in gradients]
    places = [p.data_ptr() for p in model.parameters()]
    modes = [m.training for m in model.modules()]
    versions = [p._version for p in model.parameters()]
    points = Surface(
        model, CatalogueObjective(model, moons), multiples(5, 1.0), False, 1, 0
    ).points()
    random = torch.get_rng_state()
    for number, _ in enumerate(points):
        if number == stopped_after:
            points.close()  # type: ignore[attr-defined]
            break
    assert torch.equal(torch.get_rng_state(), random)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name]), name
    assert [p.data_ptr() for p in model.parameters()] == places
    assert [m.training for m in model.modules()] == modes
    assert [p._version for p in model.parameters()] == versions
    for p, gradient, number in zip(model.parameters(), gradients, numbers, strict=True):
        assert p.grad is gradient
        assert gradient is not None and number is not None and torch.equal(gradient, number)


def test_frozen_weights_stay_and_a_model_without_any_is_told() -> None:
    frozen = nn.Linear(2, 3).requires_grad_(False)
    model = nn.Sequential(frozen, nn.Linear(3, 1, bias=False))
    x = torch.randn(8, 2)
    seen: list[Tensor] = []

    def step(batch: list[Tensor]) -> Tensor:
        seen.append(frozen.weight.clone())
        return model(batch[0]).square().mean()

    objective = CodeObjective(step, x, None, 8)
    list(Surface(model, objective, (-1.0, 0.0, 1.0), False, 1, 0).points())
    assert len(seen) == 3 and all(torch.equal(w, frozen.weight) for w in seen)
    model.requires_grad_(False)
    with pytest.raises(LabError, match="no parameters that learn"):
        Surface(model, objective, (-1.0, 0.0, 1.0), False, 1, 0)
