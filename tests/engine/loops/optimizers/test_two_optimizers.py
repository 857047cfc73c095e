"""Loops with several optimizers and several losses: each drawn figure against plain Python's, which
runs the same code."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engine.loops.hooks import steps_shown
from engine.loops.loss_lines import LossLines
from engine.loops.own_loop import OwnLoop
from engine.loops.step_losses import Root, StepLosses
from engine.protocol import (
    LOSS_PART,
    LoopSnapshot,
    RunFileCommand,
    Snapshot,
)
from engine.system.control import Control
from tests.engine.attaching import Script
from tests.engine.loops.test_loop_looks import histograms, lines
from tests.engine.loops.test_own_loops import Desk

# Each appends to `seen` what the step that follows has learned from: its optimizer's name, its
# losses by name, and the norm of its gradients.
BEGIN = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
seen = []
def tell(name, optimizer, **losses):
    found = [p.grad.flatten() for g in optimizer.param_groups for p in g["params"]]
    norm = torch.cat(found).norm().item()
    seen.append((name, {key: loss.item() for key, loss in losses.items()}, norm))
G, D = nn.Sequential(nn.Linear(4, 4)), nn.Sequential(nn.Linear(4, 1))
optimizerD = torch.optim.SGD(D.parameters(), lr=0.05)
optimizerG = torch.optim.SGD(G.parameters(), lr=0.02)
x, y = torch.randn(32, 4), torch.randn(32, 1)
"""
GAN = """
bce = nn.BCEWithLogitsLoss()
for step in range(40):
    real, noise = torch.randn(16, 4) + 2, torch.randn(16, 4)
    D.zero_grad()
    errD_real = bce(D(real), torch.ones(16, 1))
    errD_real.backward()
    errD_fake = bce(D(G(noise).detach()), torch.zeros(16, 1))
    errD_fake.backward()
    tell("optimizerD", optimizerD, errD_real=errD_real, errD_fake=errD_fake)
    optimizerD.step()
    G.zero_grad()
    errG = bce(D(G(noise)), torch.ones(16, 1))
    errG.backward()
    tell("optimizerG", optimizerG, errG=errG)
    optimizerG.step()
"""
GAN_OF_THREE = """
bce = nn.BCEWithLogitsLoss()
for step in range(30):
    real, noise = torch.randn(16, 4) + 2, torch.randn(16, 4)
    for parameter in D.parameters():
        parameter.grad = None
    errD_real = bce(D(real), torch.ones(16, 1))
    errD_real.backward()
    errD_fake = bce(D(G(noise).detach()), torch.zeros(16, 1))
    errD_fake.backward()
    mixed = (real + noise).requires_grad_()
    (slope,) = torch.autograd.grad(D(mixed).sum(), mixed, create_graph=True)
    penalty = (slope.norm(dim=1) - 1).square().mean()
    penalty.backward()
    optimizerD.param_groups[0]["params"][1].grad = D[0].bias.grad
    tell("optimizerD", optimizerD, errD_real=errD_real, errD_fake=errD_fake, penalty=penalty)
    optimizerD.step()
    optimizerG.zero_grad(set_to_none=False)
    errG = bce(D(G(noise)), torch.ones(16, 1))
    errG.backward()
    tell("optimizerG", optimizerG, errG=errG)
    optimizerG.step()
"""
ACTOR_CRITIC = """
for step in range(30):
    optimizerD.zero_grad()
    optimizerG.zero_grad()
    loss = F.mse_loss(D(G(x)), y)
    loss.backward()
    tell("optimizerD", optimizerD, loss=loss)
    optimizerD.step()
    tell("optimizerG", optimizerG, loss=loss)
    optimizerG.step()
"""
ANEW = """
optimizer = torch.optim.SGD(D.parameters(), lr=0.1)
for step in range(40):
    if step % 13 == 5:
        optimizer = torch.optim.Adam(D.parameters(), lr=0.01)
    optimizer.zero_grad()
    loss = F.mse_loss(D(x), y)
    loss.backward()
    tell("optimizer", optimizer, loss=loss)
    optimizer.step()
"""
GROUPS = """
optimizer = torch.optim.SGD(
    [{"params": D.parameters()}, {"params": G.parameters(), "lr": 0.01}], lr=0.1
)
for step in range(30):
    optimizer.zero_grad()
    loss = F.mse_loss(D(G(x)), y)
    loss.backward()
    tell("optimizer", optimizer, loss=loss)
    optimizer.step()
"""
ACCUMULATED = """
optimizer = torch.optim.SGD(D.parameters(), lr=0.1)
for step in range(20):
    parts = []
    for part in range(4):
        loss = F.mse_loss(D(x[8 * part : 8 * part + 8]), y[8 * part : 8 * part + 8]) / 4
        loss.backward()
        parts.append(loss.item())
    tell("optimizer", optimizer, loss=torch.tensor(parts, dtype=torch.float64).sum())
    optimizer.step()
    optimizer.zero_grad()
"""
IN_AN_OBJECT = """
class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(4, 4), nn.Linear(4, 1)
        self.optims = {
            "actor": torch.optim.SGD(self.actor.parameters(), lr=0.1),
            "critic": torch.optim.SGD(self.critic.parameters(), lr=0.2),
        }

    def learn(self):
        for name in ("critic", "actor"):
            self.optims[name].zero_grad()
        value = F.mse_loss(self.critic(x), y)
        value.backward()
        tell("agent.optims['critic']", self.optims["critic"], value=value)
        self.optims["critic"].step()
        policy = -self.critic(self.actor(x)).mean()
        policy.backward()
        tell("agent.optims['actor']", self.optims["actor"], policy=policy)
        self.optims["actor"].step()
agent = Agent()
for step in range(30):
    agent.learn()
"""
RESTING = """
with torch.no_grad():
    D[0].weight.fill_(10), G[0].weight.fill_(0)
for each in (optimizerD, optimizerG):
    each.param_groups[0]["lr"] = 0.0
"""
IN_A_LIST = """
models = [nn.Linear(4, 1), nn.Linear(4, 1)]
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
def turn(model, optimizer, name):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    tell(name, optimizer, loss=loss)
    optimizer.step()
for step in range(20):
    for number, (model, optimizer) in enumerate(zip(models, optimizers)):
        turn(model, optimizer, f"optimizers[{number}]")
"""
LOOPS = {
    "GAN": GAN,
    "three backward calls": GAN_OF_THREE,
    "one loss": ACTOR_CRITIC,
    "made anew": ANEW,
    "two groups": GROUPS,
    "accumulated": ACCUMULATED,
    "in a list": IN_A_LIST,
}
Seen = list[tuple[str, dict[str, float], float]]


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.session.close()


def plain(source: str) -> dict[str, Any]:
    """The variables after the code has run without the program."""
    names = {"torch": torch, "nn": nn, "F": F, "__name__": "plain"}
    exec(compile(source, "<plain>", "exec"), names)
    return names


def assert_drawn(loops: list[LoopSnapshot], seen: Seen) -> list[int]:
    """As `assert_rows`, to the end of the loop; returns the steps that have a row."""
    last = loops[-1]
    assert last.step == len(seen) and last.error is None
    return [step for loop in loops for step in assert_rows(loop, seen)]


def assert_rows(loop: LoopSnapshot, seen: Seen, is_whole: bool = True) -> list[int]:
    """Each number in the rows is that of its step; returns the steps that have a row. `is_whole`:
    no number is left out."""
    columns = loop.steps
    for at, step in enumerate(columns.step):
        name, losses, norm = seen[step - 1]
        assert loop.lines[loop.line_of_step.get(step, 0)].optimizer == name
        if is_whole or columns.loss[at] is not None:
            assert columns.loss[at] == pytest.approx(sum(losses.values()), rel=1e-6)
        if is_whole or columns.gradient_norm[at] is not None:
            assert columns.gradient_norm[at] == pytest.approx(norm, rel=1e-5)
        for key, values in columns.figures.items():
            part = key.removeprefix(LOSS_PART)
            if part != key and not math.isnan(values[at]):
                assert values[at] == pytest.approx(losses[part], rel=1e-6)
    assert all((line.first_bad, line.bad_steps) == (0, 0) for line in loop.lines)
    return list(columns.step)


def assert_same_weights(mine: dict[str, Any], of_torch: dict[str, Any]) -> None:
    for name in ("D", "G"):
        for a, b in zip(mine[name].parameters(), of_torch[name].parameters(), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("source", LOOPS.values(), ids=LOOPS)
def test_the_rows_of_a_cell_have_the_losses_of_their_optimizer(desk: Desk, source: str) -> None:
    of_torch = plain(BEGIN + source)
    loops = desk.run(BEGIN + source)
    assert desk.end.ok
    drawn = assert_drawn(loops, of_torch["seen"])
    names = [name for name, _, _ in of_torch["seen"]]
    for name in set(names):  # the first steps of each optimizer have rows
        first = [number for number, each in enumerate(names, 1) if each == name][:8]
        assert set(first) <= set(drawn)
    assert_same_weights(dict(desk.variables), of_torch)


def test_lines_have_the_names_of_optimizers_and_losses(desk: Desk) -> None:
    def named(source: str) -> list[tuple[str, tuple[str, ...], bool]]:
        last = desk.run(BEGIN + source)[-1]
        assert desk.end.ok
        return [(line.optimizer, line.losses, line.is_sum) for line in last.lines]

    both = ("optimizerD", ("errD_real", "errD_fake"), True), ("optimizerG", ("errG",), False)
    assert named(GAN) == list(both)
    three = ("optimizerD", ("errD_real", "errD_fake", "penalty"), True)
    assert named(GAN_OF_THREE) == [three, both[1]]
    assert named(ACTOR_CRITIC) == [
        ("optimizerD", ("loss",), False),
        ("optimizerG", ("loss",), False),
    ]
    assert named(ANEW) == named(GROUPS) == [("optimizer", ("loss",), False)]
    assert named(ACCUMULATED) == [("optimizer", ("loss",), True)]
    assert named(GAN.replace("errG.backward()", "(errG * 1).backward()"))[1][1] == ("errG * 1",)


def test_optimizers_in_a_list_have_the_names_of_their_places(desk: Desk) -> None:
    last = desk.run(BEGIN + IN_A_LIST)[-1].lines
    assert [line.optimizer for line in last] == ["optimizers[0]", "optimizers[1]"]
    last = desk.run(BEGIN + "optimizer = None\n" + IN_A_LIST)[-1].lines
    assert len({line.optimizer for line in last}) == 2  # it is a name of both by turns


def test_what_is_inside_of_an_object_has_its_name(desk: Desk) -> None:
    of_torch = plain(BEGIN + IN_AN_OBJECT)
    loops = desk.run(BEGIN + IN_AN_OBJECT)
    named = [(line.optimizer.rpartition(".")[2], line.losses) for line in loops[-1].lines]
    assert named == [("optims['critic']", ("value",)), ("optims['actor']", ("policy",))]
    losses = [sum(each.values()) for _, each, _ in of_torch["seen"]]
    for loop in loops:
        for step, loss in zip(loop.steps.step, loop.steps.loss, strict=True):
            assert loss == pytest.approx(losses[step - 1], rel=1e-6)


def test_two_losses_of_one_optimizer_that_take_turns_have_names(desk: Desk) -> None:
    loops = desk.run(
        BEGIN
        + """
for step in range(12):
    optimizerD.zero_grad()
    if step % 2:
        odd = F.mse_loss(D(x), y)
        odd.backward()
        tell("optimizerD", optimizerD, odd=odd)
    else:
        even = F.l1_loss(D(x), y)
        even.backward()
        tell("optimizerD", optimizerD, even=even)
    optimizerD.step()
"""
    )
    assert_drawn(loops, desk.variables["seen"])
    (line,) = loops[-1].lines
    assert (line.losses, line.is_sum) == (("even", "odd"), False)
    parts = [v for loop in loops for v in loop.steps.figures.get(f"{LOSS_PART}odd", ())]
    assert sum(not math.isnan(value) for value in parts) == 6


def test_histograms_and_norms_tell_the_parameters_of_two_modules_apart(desk: Desk) -> None:
    desk.run(BEGIN + RESTING + GAN)
    names = {"D.0.weight", "D.0.bias", "G.0.weight", "G.0.bias"}
    assert set(lines(desk).names) == set(histograms(desk, "").names) == names
    for name, value in (("D.0.weight", 10.0), ("G.0.weight", 0.0)):
        found = histograms(desk, name)
        assert set(found.lows) == set(found.highs) == {value}
        assert len(found.steps) > 3


def test_modules_in_a_list_have_names_of_their_own_though_a_name_was_used_before(
    desk: Desk,
) -> None:
    desk.run(BEGIN + "optimizer = model = None\n" + IN_A_LIST)
    paths = [name for name in lines(desk).names if name.endswith(".weight")]
    assert len(paths) == 2 and "models[1].weight" in paths


def test_the_loop_of_a_file_has_the_same_lines(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "gan.py"
    path.write_text(BEGIN + GAN)
    desk.said.clear()
    desk.session.handle(RunFileCommand(id=1, path=str(path)))
    loops = [each for each in desk.said if isinstance(each, LoopSnapshot)]
    assert_drawn(loops, plain(BEGIN + GAN)["seen"])
    assert [line.losses for line in loops[-1].lines] == [("errD_real", "errD_fake"), ("errG",)]
    assert {"D.0.weight", "G.0.weight"} <= set(lines(desk).names)


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_script_that_is_attached_to_has_the_same_lines(script_of: Any, where: str) -> None:
    watch = "import tensorlab as lab\nlab.watch(D, G, wait=True)\n"
    source = BEGIN.replace("x, y =", f"{watch}x, y =") if where == "after" else watch.replace(
        "D, G, ", "") + BEGIN  # fmt: skip
    running: Script = script_of(source + GAN)
    running.address()
    window = running.attach()
    said: list[Snapshot] = window.to_end()
    running.end()
    loops = [each for each in said if isinstance(each, LoopSnapshot)]
    assert_drawn(loops, plain(BEGIN + GAN)["seen"])
    last = loops[-1].lines
    assert [line.optimizer for line in last] == ["optimizerD", "optimizerG"]
    assert [line.losses for line in last] == [("errD_real", "errD_fake"), ("errG",)]


@pytest.fixture
def script_of(tmp_path: Path, sockets: Path, process_server: None) -> Iterator[Any]:
    started: list[Script] = []

    def start(source: str) -> Script:
        started.append(Script(tmp_path / "train.py", source))
        return started[-1]

    yield start
    for each in started:
        each.kill()


# -- steps that are not finite ---------------------------------------------------------------------

NAN_AT = """
net = nn.Linear(6, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
inputs, targets = torch.rand(64, 6) + 0.5, torch.rand(64, 1)
for step in range(1, 1001):
    optimizer.zero_grad()
    scale = {healthy} if step < 141 or step > {until} else 0.0
    loss = ((net(inputs) - targets) ** 2).mean() + torch.log(torch.tensor(scale)) * {weight}
    loss.backward()
    optimizer.step()
"""


def test_the_first_loss_that_is_not_finite_is_told_exactly(desk: Desk) -> None:
    """Though few of so many fast steps have a row."""
    last = desk.run(BEGIN + NAN_AT.format(healthy=1.0, until=1000, weight=0.0))[-1]
    (line,) = last.lines
    assert (line.first_bad, line.bad_from, line.bad_steps, line.bad_since) == (141, 141, 860, 141)
    last = desk.run(BEGIN + NAN_AT.format(healthy=1.0, until=150, weight=1.0))[-1]
    (line,) = last.lines  # infinite, and finite again: a constant has no gradient
    assert (line.first_bad, line.bad_from, line.bad_steps, line.bad_since) == (141, 141, 10, 0)


def test_steps_before_the_first_that_is_followed_may_have_been_the_first_bad_one() -> None:
    """As where a window attaches to a script whose loss is NaN already."""
    losses = StepLosses(is_begun_inside=True)
    shown = LossLines(lambda thing: "sgd", lambda: losses.is_late)
    losses.begin(lambda root: "", shown.of)
    weight = nn.Parameter(torch.ones(1))
    sgd = torch.optim.SGD([weight])
    losses.know([sgd])
    for step in (501, 502, 503):
        root = (weight * math.nan).sum()
        weight.grad = None
        losses.begin_backward([_root(root)], is_named=False)
        root.backward()
        losses.end_backward(has_failed=False)
        losses.end_step(sgd, step)
    shown.add(losses.take(), 0)
    (line,) = shown.lines()
    assert (line.bad_from, line.first_bad, line.bad_steps, line.bad_since) == (1, 501, 3, 501)


def test_a_step_that_another_has_followed_is_not_the_last_of_who_asks_anew() -> None:
    """A window may come between the end of a step and what is drawn of it: the thread of the loop
    has not followed that step, and the one before was followed for a window that has gone."""
    losses = StepLosses(is_begun_inside=True)
    sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))])
    losses.begin(lambda root: "", lambda optimizer: 0)
    losses.end_step(sgd, 1)
    assert losses.last() is not None
    losses.end()
    assert losses.last() is None
    losses.begin(lambda root: "", lambda optimizer: 0)
    assert losses.last() is None and losses.take() == []
    losses.end_step(sgd, 3)
    last = losses.last()
    assert last is not None and last.step == 3 and losses.take() == [last]


def test_a_step_whose_loss_is_not_known_is_on_the_line_of_its_optimizer() -> None:
    sent: list[LoopSnapshot] = []
    loop = OwnLoop("loop", Control(), sent.append, name_of=lambda thing: names[id(thing)])
    optimizers = [torch.optim.SGD([nn.Parameter(torch.ones(1))]) for _ in range(2)]
    names = dict(zip(map(id, optimizers), ("first", "second"), strict=True))
    with steps_shown(loop, losses=loop.losses):
        for step in range(1, 7):
            for optimizer in optimizers:
                (parameter,) = optimizer.param_groups[0]["params"]
                parameter.square().sum().backward()
                loop.losses.is_on = step != 4
                optimizer.step()
        last = loop.last(None, None)
    assert last is not None and [line.optimizer for line in last.lines] == ["first", "second"]
    rows = {step: row for each in (*sent, last) for step, row in each.line_of_step.items()}
    assert rows == {step: 1 for step in (2, 4, 6, 8, 10, 12)}


def _root(scalar: torch.Tensor) -> Any:
    return Root(scalar, scalar)
