"""Loss, optimizer and device from their names, against torch's own."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from engine.project import catalogue
from engine.system.errors import LabError
from engine.training.components.devices import find_device
from engine.training.components.losses import make_loss
from engine.training.components.optimizers import make_optimizer, step, update_together


def predictions() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(8, 4, generator=generator), torch.randint(4, (8,), generator=generator)


def test_cross_entropy_is_torchs() -> None:
    prediction, labels = predictions()
    loss = make_loss("nn.CrossEntropyLoss", {"label_smoothing": 0.1})
    expected = F.cross_entropy(prediction, labels, label_smoothing=0.1)
    assert torch.equal(loss(prediction, labels), expected)


def test_mse_compares_with_one_hot_rows() -> None:
    prediction, labels = predictions()
    rows = torch.zeros(8, 4)
    rows[torch.arange(8), labels] = 1.0
    assert torch.equal(
        make_loss("nn.MSELoss", {})(prediction, labels), F.mse_loss(prediction, rows)
    )


def test_mse_of_characters_has_their_classes_along_dimension_1() -> None:
    prediction, labels = torch.rand(2, 4, 3), torch.tensor([[0, 3, 1], [2, 2, 0]])
    expected = F.mse_loss(prediction, torch.eye(4)[labels].transpose(1, 2))
    assert torch.equal(make_loss("nn.MSELoss", {})(prediction, labels), expected)


def test_mse_of_numbers_is_torchs_and_never_broadcasts() -> None:
    prediction, numbers = torch.rand(8, 1), torch.rand(8, 1)
    loss = make_loss("nn.MSELoss", {})
    assert torch.equal(loss(prediction, numbers), F.mse_loss(prediction, numbers))
    with pytest.raises(LabError, match=r"shape \(8, 3\), the target \(8, 1\)"):
        loss(torch.rand(8, 3), numbers)


def test_a_loss_that_gives_no_scalar_is_refused() -> None:
    with pytest.raises(LabError, match=r"reduction.*mean, sum"):
        make_loss("nn.MSELoss", {"reduction": "none"})


def test_an_unknown_loss_or_parameter_is_refused() -> None:
    with pytest.raises(LabError, match=r"cannot have nn\.CTCLoss: it takes sequences"):
        make_loss("nn.CTCLoss", {})
    with pytest.raises(LabError, match="no parameter 'beta'"):
        make_loss("nn.MSELoss", {"beta": 1.0})


@pytest.mark.parametrize("kind", list(catalogue.optimizers()))
def test_an_optimizer_without_parameters_has_torchs_defaults(kind: str) -> None:
    parameters = [nn.Parameter(torch.zeros(2, 2))]
    optimizer = make_optimizer(kind, {}, parameters)
    expected = getattr(torch.optim, kind.removeprefix("optim."))(parameters)
    assert type(optimizer) is type(expected)
    assert optimizer.defaults == expected.defaults


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize(
    "options", [{}, {"weight_decay": 0.03, "amsgrad": True}, {"maximize": True, "eps": 1e-3}]
)
def test_parameters_that_are_updated_together_get_the_same_bits(kind: Any, options: dict) -> None:
    def trained(together: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        shapes = [(33, 20), (33,), (3, 2, 5), ()]
        parameters = [nn.Parameter(torch.randn(shape)) for shape in shapes]
        groups = [{"params": parameters[:2]}, {"params": parameters[2:], "lr": 0.02}]
        optimizer = kind(groups, lr=0.01, **options)
        if together:
            update_together(optimizer)
            assert all(group["foreach"] for group in optimizer.param_groups)
        for number in range(20):
            for place, parameter in enumerate(parameters):
                gets_one = (number + place) % 4 > 0
                parameter.grad = torch.randn_like(parameter) if gets_one else None
            step(optimizer)
        state = [value for slots in optimizer.state.values() for value in slots.values()]
        return [parameter.detach() for parameter in parameters] + state

    for ours, plain in zip(trained(True), trained(False), strict=True):
        assert torch.equal(ours, plain)


def test_large_parameters_and_other_optimizers_are_updated_as_torch_does() -> None:
    small, half = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3, dtype=torch.float16))
    large = nn.Parameter(torch.ones(2**18 + 1))
    for optimizer in (
        torch.optim.Adam([small, large]),
        torch.optim.Adam([small, half]),
        torch.optim.NAdam([small]),  # its bits would differ
    ):
        update_together(optimizer)
        assert not any(group["foreach"] for group in optimizer.param_groups)


def test_who_wants_to_know_of_a_step_is_told() -> None:
    def optimizer() -> torch.optim.Optimizer:
        parameter = nn.Parameter(torch.ones(2))
        parameter.grad = torch.ones(2)
        return torch.optim.SGD([parameter], lr=0.5)

    told: list[str] = []
    own = optimizer()
    own.register_step_pre_hook(lambda *_: told.append("before"))
    own.register_step_post_hook(lambda *_: told.append("after"))
    step(own)
    assert told == ["before", "after"]
    for register in (register_optimizer_step_pre_hook, register_optimizer_step_post_hook):
        handle = register(lambda *_: told.append("any"))
        step(optimizer())
        handle.remove()
    assert told[2:] == ["any", "any"]
    with torch.autograd.profiler.profile() as profile:
        step(optimizer())
    names = [event.name for event in profile.function_events or ()]
    assert "Optimizer.step#SGD.step" in names
    scheduled = optimizer()
    scheduler = torch.optim.lr_scheduler.StepLR(scheduled, 1)
    step(scheduled)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of a scheduler before the optimizer
        scheduler.step()
    plain = optimizer()
    step(plain)
    assert plain.param_groups[0]["params"][0].tolist() == [0.5, 0.5]


def test_an_optimizer_gets_its_parameters() -> None:
    parameters = [nn.Parameter(torch.zeros(2))]
    optimizer = make_optimizer(
        "optim.AdamW", {"lr": 0.5, "betas": (0.5, 0.75), "amsgrad": True}, parameters
    )
    group = optimizer.param_groups[0]
    assert (group["lr"], group["betas"], group["amsgrad"]) == (0.5, (0.5, 0.75), True)


def test_an_optimizer_leaves_frozen_parameters_out() -> None:
    frozen = nn.Parameter(torch.zeros(2), requires_grad=False)
    free = nn.Parameter(torch.zeros(2))
    assert make_optimizer("optim.SGD", {}, [frozen, free]).param_groups[0]["params"] == [free]


def test_what_no_optimizer_can_do_is_refused_in_words() -> None:
    parameters = [nn.Parameter(torch.zeros(2))]
    with pytest.raises(LabError, match=r"no optimizer 'optim\.Newton'"):
        make_optimizer("optim.Newton", {}, parameters)
    with pytest.raises(LabError, match="no parameters to learn"):
        make_optimizer("optim.SGD", {}, [])
    with pytest.raises(LabError, match="lr"):
        make_optimizer("optim.SGD", {"lr": "fast"}, parameters)
    with pytest.raises(LabError, match="Nesterov"):
        make_optimizer("optim.SGD", {"nesterov": True}, parameters)


def test_devices_by_name() -> None:
    assert find_device("cpu") == torch.device("cpu")
    with pytest.raises(LabError, match="not a name of a device"):
        find_device("gpu")
    with pytest.raises(LabError, match="no device 'cuda:99'"):
        find_device("cuda:99")


@pytest.mark.parametrize(
    ("name", "found"),
    [("cuda", "cuda:0"), ("cuda:1", "cuda:1"), ("cuda:2", ""), ("mps", "mps"), ("meta", "")],
)
@pytest.mark.parametrize("usable", [True, False])
def test_gpus_are_found_up_to_their_number(monkeypatch, name: str, found: str, usable) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: usable)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: usable)
    if found and usable:
        assert find_device(name) == torch.device(found)
    else:
        with pytest.raises(LabError, match=f"no device '{name}' that torch can use"):
            find_device(name)
