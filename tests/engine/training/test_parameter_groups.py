"""Options of the optimizer for some modules, and frozen ones, against loops of plain torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from engine.datasets.load import load_dataset
from engine.project.document import DataSetup, ParamGroup, Schedule, TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.loop import TrainingLoop

SETUP = TrainingSetup(
    data=DataSetup("moons", {"samples": 100}),
    optimizer="optim.AdamW",
    optimizer_params={"lr": 0.05, "weight_decay": 0.2},
    batch_size=32,
    epochs=3,
    seed=7,
)
STEPS = 9
FIRST = ParamGroup("0", {"lr": 0.01})
FROZEN = ParamGroup("0", {}, frozen=True)


class Net(nn.Sequential):
    def __init__(self) -> None:
        torch.manual_seed(1)
        super().__init__(
            nn.Linear(2, 16),
            nn.LayerNorm(16),
            nn.Tanh(),
            nn.Sequential(nn.Linear(16, 8), nn.Linear(8, 2)),
        )


Groups = Callable[[Any], list]
Before = Callable[[int, Any, torch.optim.Optimizer], object]


def plain(groups: Groups, before: Before = lambda step, net, optimizer: None, **options) -> Net:
    """Trains by hand; `before` is called before each step."""
    net = Net()
    optimizer = torch.optim.AdamW(groups(net), **{"lr": 0.05, "weight_decay": 0.2, **options})
    dataset = load_dataset(SETUP.data)
    for step in range(STEPS):
        before(step, net, optimizer)
        x, y = dataset.train_batch(step % 3, 32, SETUP.seed, step // 3)
        optimizer.zero_grad()
        cross_entropy(net(x), y).backward()
        optimizer.step()
    return net


def trained(setup: TrainingSetup, changes: dict[int, TrainingSetup] | None = None) -> TrainingLoop:
    """Trains with Train's loop; `changes` are set-ups by the step after which they hold."""
    loop = TrainingLoop(Net(), setup)
    for _ in loop.steps():
        if changes and loop.step in changes and loop.batch:  # right after the step
            loop.adjust(changes[loop.step])
    loop.close()
    return loop


def check_same(loop: TrainingLoop, expected: nn.Module) -> None:
    pairs = zip(loop.model.named_parameters(), expected.parameters(), strict=True)
    for (name, found), wanted in pairs:
        assert torch.equal(found, wanted), name
        assert found.requires_grad


def test_a_module_has_options_of_its_own() -> None:
    def groups(net: Any) -> list:
        rest = [*net[1].parameters(), *net[3].parameters()]
        return [{"params": rest}, {"params": net[0].parameters(), "lr": 0.01}]

    check_same(trained(replace(SETUP, groups=(FIRST,))), plain(groups))


def test_the_innermost_module_decides() -> None:
    both = (ParamGroup("3", {"lr": 0.5}), ParamGroup("3.1", {"lr": 0.002, "weight_decay": 0.0}))

    def groups(net: Any) -> list:
        rest = [*net[0].parameters(), *net[1].parameters()]
        inner = {"params": net[3][1].parameters(), "lr": 0.002, "weight_decay": 0.0}
        return [{"params": rest}, {"params": net[3][0].parameters(), "lr": 0.5}, inner]

    for order in (both, both[::-1]):
        check_same(trained(replace(SETUP, groups=order)), plain(groups))


def test_biases_and_norms_without_weight_decay() -> None:
    def groups(net: Any) -> list:
        bare = [net[0].bias, *net[1].parameters(), net[3][0].bias, net[3][1].bias]
        weights = [net[0].weight, net[3][0].weight, net[3][1].weight]
        return [{"params": weights}, {"params": bare, "weight_decay": 0.0}]

    check_same(trained(replace(SETUP, decay="weights")), plain(groups))


def test_an_optimizer_without_weight_decay_needs_no_choice() -> None:
    setup = replace(SETUP, optimizer="optim.Rprop", optimizer_params={}, decay="weights")
    assert len(trained(setup).optimizer.param_groups) == 1


def test_a_frozen_module_stays_and_is_free_again_afterwards() -> None:
    def freeze(step: int, net: Any, optimizer: torch.optim.Optimizer) -> None:
        net[0].requires_grad_(False)

    def groups(net: Any) -> list:
        rest = [*net[1].parameters(), *net[3].parameters()]
        return [{"params": rest}, {"params": net[0].parameters()}]

    loop = trained(replace(SETUP, groups=(FROZEN,)))
    expected = plain(groups, freeze)
    check_same(loop, expected)
    assert torch.equal(expected.get_parameter("0.weight"), Net().get_parameter("0.weight"))


# -- while a run goes on --------------------------------------------------------------------------


def one(net: Net) -> Sequence[nn.Parameter]:
    return list(net.parameters())


def test_options_and_frozen_modules_change_between_two_steps() -> None:
    """Steps 0-1 plain, 2-4 the first module frozen, 5-6 free with another rate for it, 7 on with
    other betas and a decay for all."""

    def before(step: int, net: Any, optimizer: torch.optim.Optimizer) -> None:
        rest, first = optimizer.param_groups
        net[0].requires_grad_(not 2 <= step < 5)
        if step == 2:
            net[0].zero_grad()
        if step == 5:
            first["lr"] = 0.01
        if step == 7:
            rest["betas"] = first["betas"] = (0.5, 0.9)

    def groups(net: Any) -> list:
        rest = [*net[1].parameters(), *net[3].parameters()]
        return [{"params": rest}, {"params": net[0].parameters()}]

    later = {**SETUP.optimizer_params, "betas": (0.5, 0.9)}
    changes = {
        2: replace(SETUP, groups=(FROZEN,)),
        5: replace(SETUP, groups=(FIRST,)),
        7: replace(SETUP, groups=(FIRST,), optimizer_params=later),
    }
    loop = trained(SETUP, changes)
    check_same(loop, plain(groups, before))
    assert [(mark.step, mark.text) for mark in loop.marks.all] == [
        (2, "0 frozen"),
        (5, "0 learns again, 0: lr 0.05 → 0.01"),
        (7, "betas (0.9, 0.999) → (0.5, 0.9)"),
    ]


def test_another_module_gets_the_options_on_the_way() -> None:
    torch.manual_seed(1)
    net = nn.Sequential(*(nn.Linear(2, 2, bias=False) for _ in range(3)))
    slow = [ParamGroup(name, {"lr": 0.01}) for name in ("2", "1")]
    loop = TrainingLoop(net, replace(SETUP, groups=(slow[0],)))
    next(steps := loop.steps())

    def of_rates() -> dict[float, list[int]]:
        place = {id(layer.weight): n for n, layer in enumerate(net)}
        groups = loop.optimizer.param_groups
        return {group["lr"]: [place[id(p)] for p in group["params"]] for group in groups}

    assert of_rates() == {0.05: [0, 1], 0.01: [2]}
    loop.adjust(replace(SETUP, groups=(slow[1],)))
    assert of_rates() == {0.05: [0, 2], 0.01: [1]}
    steps.close()
    loop.close()


def test_a_module_that_is_frozen_on_the_way_loses_its_gradient_and_no_other() -> None:
    """Without zero_grad, the next update would use it."""
    loop = TrainingLoop(Net(), SETUP)
    steps = loop.steps()
    next(steps)
    loop.adjust(replace(SETUP, groups=(FROZEN,)))
    without = {name for name, p in loop.model.named_parameters() if p.grad is None}
    assert without == {"0.weight", "0.bias"}
    steps.close()
    loop.close()


def test_several_changes_at_one_step_have_one_mark() -> None:
    loop = TrainingLoop(Net(), SETUP)
    next(steps := loop.steps())
    for lr in (0.1, 0.2, 0.3):
        loop.adjust(replace(SETUP, optimizer_params={**SETUP.optimizer_params, "lr": lr}))
    assert [(mark.step, mark.text) for mark in loop.marks.all] == [(1, "lr 0.05 → 0.3")]
    loop.adjust(SETUP)
    assert loop.marks.all == ()
    loop.adjust(replace(SETUP, clip_norm=1.0, decay="weights"))
    (mark,) = loop.marks.all
    assert mark.text == "no decay of biases and norms, clip_norm 0 → 1"
    steps.close()


# -- resumed --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(),
        Schedule("lr_scheduler.StepLR", {"step_size": 2}, "step"),
        Schedule("lr_scheduler.CosineAnnealingLR", {"T_max": 9}, "step"),
        Schedule("lr_scheduler.ReduceLROnPlateau", {"patience": 0, "threshold": 1.0}),
    ],
)
@pytest.mark.parametrize("pieces", [2, 7])
def test_groups_are_resumed_bit_for_bit(schedule: Schedule, pieces: int) -> None:
    setup = replace(SETUP, groups=(FIRST, ParamGroup("3.0", {}, True)), decay="weights")
    setup = replace(setup, schedule=schedule)
    straight = trained(setup)
    killed = TrainingLoop(Net(), setup)
    steps = killed.steps()
    for _ in range(pieces):
        next(steps)
    steps.close()
    path = checkpoint_files.save(killed.checkpoint("run"))
    killed.close()
    resumed = TrainingLoop(Net(), setup)
    resumed.restore(checkpoint_files.load(path))
    for _ in resumed.steps():
        pass
    resumed.close()
    check_same(resumed, straight.model)


def test_a_run_is_resumed_with_other_groups() -> None:
    schedule = Schedule("lr_scheduler.ExponentialLR", {"gamma": 0.5}, "step")
    first = replace(SETUP, groups=(FIRST,), schedule=schedule)
    other = replace(first, groups=(ParamGroup("3", {"lr": 0.2}), ParamGroup("1", {}, True)))
    changed = trained(first, {4: other})
    killed = TrainingLoop(Net(), first)
    steps = killed.steps()
    while killed.step < 4:
        next(steps)
    steps.close()
    saved = killed.checkpoint("run")
    resumed = TrainingLoop(Net(), other)
    resumed.restore(saved)
    for _ in resumed.steps():
        pass
    resumed.close()
    check_same(resumed, changed.model)
    rest, third, _ = resumed.optimizer.param_groups
    assert rest["lr"] == pytest.approx(0.05 * 0.5**STEPS)
    assert third["lr"] == pytest.approx(0.2 * 0.5**STEPS)


# -- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"groups": (ParamGroup("gone"),)}, "no module “gone”"),
        ({"groups": (ParamGroup("0", {"speed": 1}),)}, "no parameter 'speed'"),
        ({"groups": (ParamGroup("", {}, True),)}, "All parameters are frozen"),
        ({"groups": (FIRST,), "optimizer": "optim.LBFGS", "optimizer_params": {}}, "LBFGS"),
        (
            {"groups": (FIRST,), "schedule": Schedule("lr_scheduler.OneCycleLR", {"max_lr": 0.1})},
            "OneCycleLR sets one rate for all parameters: “0” cannot have its own",
        ),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_frozen(changes: dict, words: str) -> None:
    net = Net()
    with pytest.raises(LabError, match=words):
        TrainingLoop(net, replace(SETUP, **changes))
    assert all(parameter.requires_grad for parameter in net.parameters())


def test_a_change_that_is_refused_changes_nothing() -> None:
    loop = TrainingLoop(Net(), SETUP)
    next(steps := loop.steps())
    with pytest.raises(LabError, match="no module “gone”"):
        loop.adjust(replace(SETUP, groups=(ParamGroup("gone"),), clip_norm=1.0))
    assert loop.setup == SETUP and loop.marks.all == ()
    steps.close()


def test_the_rate_of_each_module_with_its_own_is_a_figure(make_mlp, moons) -> None:
    setup = replace(
        moons,
        optimizer="optim.SGD",
        optimizer_params={"lr": 0.1},
        decay="weights",
        groups=(ParamGroup("4", {"lr": 0.01}),),
        schedule=replace(moons.schedule, kind="lr_scheduler.ExponentialLR", params={"gamma": 0.5}),
    )
    loop = TrainingLoop(make_mlp(), setup)
    for _ in loop.steps():
        pass
    columns, _ = loop.metrics.drain(with_cuda=False)
    assert list(columns.figures) == ["lr of 4"]
    rates = zip(columns.learning_rate, columns.figures["lr of 4"], strict=True)
    assert [pair for pair in rates] == [
        pytest.approx((0.1 * 0.5**epoch, 0.01 * 0.5**epoch)) for epoch in range(3) for _ in range(3)
    ]
    loop.close()
