"""The next update of one element is what torch's own optimizer does in its next step."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from engine.system.errors import LabError
from engine.training.optimization.next_update import next_update

CASES = [
    ("SGD", {"lr": 0.1}, set()),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, {"momentum_buffer"}),
    ("Adam", {"amsgrad": True}, {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}),
    ("Adam", {"fused": True}, {"step", "exp_avg", "exp_avg_sq"}),
    ("AdamW", {"weight_decay": 0.5}, {"step", "exp_avg", "exp_avg_sq"}),
    ("NAdam", {}, {"step", "mu_product", "exp_avg", "exp_avg_sq"}),
    ("RMSprop", {"momentum": 0.5}, {"step", "square_avg", "momentum_buffer"}),
    ("Rprop", {}, {"step", "prev", "step_size"}),
    ("Adafactor", {}, {"step", "row_var", "col_var"}),
    ("Muon", {}, {"momentum_buffer"}),
    ("SparseAdam", {}, {"step", "exp_avg", "exp_avg_sq"}),
]


def stepped(kind: str, params: dict, steps: int = 3) -> tuple[nn.Parameter, torch.optim.Optimizer]:
    """A parameter after some steps, with the gradient of the next one."""
    torch.manual_seed(0)
    parameter = nn.Parameter(torch.randn(3, 4))
    optimizer = getattr(torch.optim, kind)([parameter], **params)
    for number in range(steps + 1):
        gradient = torch.randn(3, 4)
        parameter.grad = gradient.to_sparse() if kind == "SparseAdam" else gradient
        if number < steps:
            optimizer.step()
    return parameter, optimizer


@pytest.mark.parametrize(("kind", "params", "names"), CASES)
def test_it_is_the_next_step_of_torch(kind, params, names):
    parameter, optimizer = stepped(kind, params)
    found = next_update(parameter, optimizer, (1, -2)).element
    assert parameter.grad is not None
    assert found.index == (1, 2) and found.optimizer == kind
    assert found.value == parameter[1, 2].item()
    assert found.gradient == parameter.grad.to_dense()[1, 2].item()
    assert found.state.keys() == names
    for name, value in optimizer.state[parameter].items():
        if isinstance(value, torch.Tensor) and value.shape == (3, 4):
            assert found.state[name] == value[1, 2].item()
    if kind == "Adafactor":
        state = optimizer.state[parameter]
        assert found.state["row_var"] == state["row_var"][1, 0].item()
        assert found.state["col_var"] == state["col_var"][0, 2].item()
    optimizer.step()
    assert found.after == parameter[1, 2].item()
    assert found.update or kind == "Rprop"  # its gradient has changed its sign
    assert found.update is not None and found.value + found.update == found.after


def test_the_optimizer_and_its_hooks_see_nothing():
    parameter, optimizer = stepped("Adam", {})
    before = (parameter.detach().clone(), optimizer.state[parameter]["exp_avg"].clone())
    versions = parameter._version, optimizer.state[parameter]["exp_avg"]._version
    seen = []
    hook = register_optimizer_step_pre_hook(lambda *args: seen.append(args))
    own = optimizer.register_step_pre_hook(lambda *args: seen.append(args))
    next_update(parameter, optimizer)
    hook.remove()
    own.remove()
    assert seen == [] and [*optimizer.state] == [parameter]
    assert parameter.equal(before[0]) and optimizer.state[parameter]["exp_avg"].equal(before[1])
    assert versions == (parameter._version, optimizer.state[parameter]["exp_avg"]._version)
    assert optimizer.param_groups[0]["params"] == [parameter]


def test_the_rule_and_the_options_are_those_of_its_group():
    first, second = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    groups = [{"params": [first]}, {"params": [second], "lr": 0.5, "weight_decay": 0.25}]
    optimizer = torch.optim.SGD(groups, lr=0.125)
    second.grad = torch.tensor([1.0, -3.0])
    found = next_update(second, optimizer).element
    assert found.rule == "old − lr · (grad + weight_decay · old)"
    assert found.options == {"lr": 0.5, "weight_decay": 0.25}
    assert (found.index, found.gradient, found.update) == ((1,), -3.0, 0.5 * 3 - 0.5 * 0.25)


def test_a_scaled_gradient_is_scaled_down():
    parameter = nn.Parameter(torch.zeros(1))
    parameter.grad = torch.tensor([8.0])
    found = next_update(parameter, torch.optim.SGD([parameter], lr=1.0), scale=4.0).element
    assert (found.gradient, found.after) == (2.0, -2.0) and parameter.grad.item() == 8.0


class Mine(torch.optim.SGD):
    pass


def test_what_is_not_known_is_said():
    parameter = nn.Parameter(torch.tensor([2.0, 3.0]))
    found = next_update(parameter, None).element
    assert (found.index, found.value, found.gradient, found.update) == ((0,), 2.0, None, None)
    assert "No optimizer" in found.note
    assert "no gradient" in next_update(parameter, torch.optim.SGD([parameter])).element.note
    parameter.grad = torch.ones(2)
    assert "not of torch.optim" in next_update(parameter, Mine([parameter])).element.note
    lbfgs = torch.optim.LBFGS([parameter])
    lbfgs.step(lambda: (parameter * parameter).sum())
    found = next_update(parameter, lbfgs).element
    assert "several times" in found.note and found.state == {} and found.update is None
    parameter.requires_grad_(False)
    assert "frozen" in next_update(parameter, torch.optim.SGD([parameter])).element.note


def test_special_parameters():
    scalar = nn.Parameter(torch.tensor(2.0))
    scalar.grad = torch.tensor(4.0)
    assert next_update(scalar, torch.optim.SGD([scalar], lr=0.25)).element.after == 1.0
    for bad in (torch.zeros(0), torch.zeros(1) + 0j):
        with pytest.raises(LabError):
            next_update(nn.Parameter(bad), None)
    with pytest.raises(LabError, match="dim 0 has 2"):
        next_update(nn.Parameter(torch.ones(2)), None, (2,))
    with pytest.raises(LabError, match="needs 1"):
        next_update(nn.Parameter(torch.ones(2)), None, (1, 1))


@pytest.mark.parametrize(("kind", "params", "names"), CASES)
def test_the_whole_is_what_torch_keeps_and_its_next_step(kind, params, names):
    parameter, optimizer = stepped(kind, params)
    whole = {name: t.clone() for name, t in next_update(parameter, optimizer).whole}
    before = parameter.detach().clone()
    state = {
        name: value.clone()
        for name, value in optimizer.state[parameter].items()
        if isinstance(value, torch.Tensor) and value.shape == before.shape
    }
    assert [*whole] == ["parameter", "gradient", *state, "next update"]
    assert state.keys() <= names
    assert parameter.grad is not None
    assert torch.equal(whole["parameter"], before)
    assert torch.equal(whole["gradient"], parameter.grad.to_dense())
    assert all(torch.equal(whole[name], value) for name, value in state.items())
    optimizer.step()
    assert torch.equal(whole["next update"], parameter.detach() - before)


def test_of_the_whole_there_is_what_is_known():
    parameter = nn.Parameter(torch.ones(2, 2))
    assert [name for name, _ in next_update(parameter, None).whole] == ["parameter"]
    parameter.grad = torch.ones(2, 2)
    lbfgs = torch.optim.LBFGS([parameter])
    assert [n for n, _ in next_update(parameter, lbfgs).whole] == ["parameter", "gradient"]
