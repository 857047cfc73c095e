"""Loops that cells run: the figures of their steps, against what the same cell reads from torch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from engine.lab import holding
from engine.loops.hooks import gradient_norms
from engine.loops.own_loop import OwnLoop
from engine.project.document import HoldWhen
from engine.protocol import (
    MAX_SNAPSHOT_BYTES,
    CellSnapshot,
    LoopSnapshot,
    RunCellCommand,
    Snapshot,
    TrainCommand,
    VariablesSnapshot,
    encode_snapshot,
)
from engine.server.session import Session
from engine.system.control import Control
from engine.training.figures.pace import FREE_STEPS, Budget
from tests.engine.drawn import drawn
from tests.engine.handlers.test_training_handlers import MLP, SETUP

BEGIN = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))
x, y = torch.randn(32, 4), torch.randn(32, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
seen = []
def norm(module):
    return torch.cat([p.grad.flatten() for p in module.parameters()]).norm().item()
"""
LOOP = """
for i in range(20):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    seen.append((loss.item(), norm(net), optimizer.param_groups[0]["lr"]))
    optimizer.step()
"""


class Desk:
    """A session that runs cells."""

    def __init__(self) -> None:
        self.said: list[Snapshot] = []
        self.session = Session(self.said.append)
        self.variables = self.session.lab.console.namespace.variables
        self.cells = 0

    def run(self, source: str) -> list[LoopSnapshot]:
        """The snapshots of the loop of a cell."""
        self.said.clear()
        self.cells += 1
        self.session.handle(RunCellCommand(id=self.cells, source=source))
        return [snapshot for snapshot in self.said if isinstance(snapshot, LoopSnapshot)]

    @property
    def end(self) -> CellSnapshot:
        assert isinstance(self.said[-1], CellSnapshot)
        return self.said[-1]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def column(snapshots: list[LoopSnapshot], name: str) -> list[Any]:
    return [value for snapshot in snapshots for value in getattr(snapshot.steps, name)]


def figure(snapshots: list[LoopSnapshot], name: str) -> list[float]:
    """The values of a named figure in the rows that have one."""
    values = [v for s in snapshots for v in s.steps.figures.get(name, ())]
    return [value for value in values if not math.isnan(value)]


def assert_seen(desk: Desk, loops: list[LoopSnapshot]) -> None:
    """The figures are those that the cell itself has read."""
    losses, norms, rates = zip(*desk.variables["seen"], strict=True)
    assert column(loops, "step") == list(range(1, len(losses) + 1))
    assert column(loops, "loss") == list(losses)
    assert column(loops, "gradient_norm") == pytest.approx(norms, rel=1e-5)
    assert column(loops, "learning_rate") == list(rates)


BY_HAND = """
for i in range(50):
    loss = F.mse_loss(net(x), y)
    loss.backward()
    seen.append(loss.item())
    lab.log(loss=loss)
    lab.log(mean=x.mean() + i)
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
            p.grad = None
"""


def test_a_loop_without_an_optimizer_is_shown_by_what_it_logs(desk: Desk) -> None:
    loops = desk.run(BEGIN + BY_HAND)
    assert desk.end.ok and (loops[-1].step, loops[-1].state) == (50, "finished")
    assert column(loops, "step") == list(range(1, 51))
    assert column(loops, "loss") == desk.variables["seen"]
    mean = desk.variables["x"].mean()
    points = [each.logged["mean"] for each in loops if "mean" in each.logged]
    assert [step for each in points for step in each.steps] == list(range(1, 51))
    values = [value for each in points for value in each.values]
    assert values == [float(mean + i) for i in range(50)]


def test_what_is_logged_beside_an_optimizer_is_no_step(desk: Desk) -> None:
    loop = LOOP + "    lab.log(after=i)\n    lab.log(after=i)\n"
    assert_seen(desk, desk.run(BEGIN + loop + "lab.log(after=0)\n"))
    assert desk.run("lab.log(accuracy=0.9)") == []  # nor is one figure a loop


def test_the_norms_of_sparse_gradients_are_those_of_dense_ones() -> None:
    norms = []
    for is_sparse in (True, False):
        torch.manual_seed(0)
        table = torch.nn.Embedding(5, 3, sparse=is_sparse)
        other = torch.nn.Linear(3, 1)
        other(table(torch.tensor([1, 3, 3]))).square().sum().backward()
        optimizer = torch.optim.SGD([*table.parameters(), *other.parameters()], lr=0.1)
        norms.append([float(norm) for norm in gradient_norms(optimizer)])
    assert norms[0] == pytest.approx(norms[1], rel=1e-6) and len(norms[0]) == 3


def test_a_loops_figures_are_torchs_own(desk: Desk) -> None:
    scheduled = LOOP + "    scheduler.step()\n"
    loops = desk.run(
        BEGIN + "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)\n" + scheduled
    )
    assert desk.end.ok
    assert_seen(desk, loops)
    assert len(set(column(loops, "learning_rate"))) == 4
    assert {loop.title for loop in loops} == {"Loop in cell 1"}
    assert [loop.state for loop in loops] == ["running"] * (len(loops) - 1) + ["finished"]
    assert (loops[-1].step, loops[-1].device, loops[-1].error) == (20, "cpu", None)
    times = column(loops, "step_ms")
    assert math.isnan(times[0]) and all(0 < ms < 60_000 for ms in times[1:])
    assert all(size > 2**20 for size in column(loops, "rss_bytes"))
    assert column(loops, "cuda_allocated_bytes") == []  # it ran on the CPU
    assert all(math.isnan(value) for value in column(loops, "accuracy"))


def test_a_watched_loop_ends_with_the_weights_of_plain_python(desk: Desk) -> None:
    plain: dict[str, Any] = {"torch": torch, "nn": nn, "F": nn.functional}
    exec(BEGIN + LOOP, plain)
    desk.run(BEGIN + LOOP)
    for own, other in zip(
        desk.variables["net"].parameters(), plain["net"].parameters(), strict=True
    ):
        assert torch.equal(own, other)
    assert desk.variables["seen"] == plain["seen"]


def test_nothing_is_said_of_a_cell_without_an_optimizer_step(desk: Desk) -> None:
    assert desk.run(BEGIN + "F.mse_loss(net(x), y).backward()") == []
    assert desk.run("norm(net)") == [] and desk.end.ok


def test_each_of_two_optimizers_has_figures_of_its_own(desk: Desk) -> None:
    loops = desk.run(
        BEGIN
        + """
critic = nn.Linear(1, 1)
slow = torch.optim.Adam(
    [{"params": [critic.weight], "lr": 0.003}, {"params": [critic.bias], "lr": 0.07}])
for i in range(6):
    for module, each in ((critic, slow), (net, optimizer)):
        each.zero_grad()
        loss = critic(net(x)).square().mean() * (1 if each is slow else -1)
        loss.backward()
        seen.append((loss.item(), norm(module), each.param_groups[0]["lr"]))
        each.step()
"""
    )
    assert_seen(desk, loops)
    assert [(line.optimizer, line.losses) for line in loops[-1].lines] == [
        ("slow", ("loss",)),
        ("optimizer", ("loss",)),
    ]
    on_line = {step: line for loop in loops for step, line in loop.line_of_step.items()}
    assert on_line == dict.fromkeys(range(2, 13, 2), 1)
    # The first step was taken before there was a second optimizer.
    assert figure(loops, "learning rate of slow, group 2") == [0.07] * 5
    assert figure(loops, "learning rate, group 2") == [0.07]


def test_optimizers_in_a_list_have_the_name_of_their_place(desk: Desk) -> None:
    loops = desk.run(
        BEGIN
        + """
both = [torch.optim.SGD([part.weight], lr=rate) for part, rate in ((net[0], 0.5), (net[3], 0.25))]
for i in range(3):
    for number in (0, 1):
        F.mse_loss(net(x), y).backward()
        both[number].step()
"""
    )
    assert [line.optimizer for line in loops[-1].lines] == ["both[0]", "both[1]"]
    assert column(loops, "learning_rate") == [0.5, 0.25] * 3


def test_a_step_with_a_closure_has_the_figures_of_its_last_call(desk: Desk) -> None:
    loops = desk.run(
        BEGIN
        + """
net.eval()
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4)
calls = []
def closure():
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    calls.append((loss.item(), norm(net), 0.5))
    return loss
for i in range(5):
    optimizer.step(closure)
    seen.append(calls[-1])
"""
    )
    assert len(desk.variables["calls"]) > 5
    assert_seen(desk, loops)


def test_accumulated_gradients_have_the_sum_of_their_losses(desk: Desk) -> None:
    loops = desk.run(
        BEGIN
        + """
for i in range(8):
    optimizer.zero_grad(set_to_none=False)
    mean = 0.0
    for part in range(3):
        loss = F.mse_loss(net(x), y) / 3
        torch.autograd.backward([loss])
        mean += loss.item()
    seen.append((torch.tensor(mean).item(), norm(net), 0.1))
    optimizer.step()
    loss.detach_().zero_()
"""
    )
    assert_seen(desk, loops)


@pytest.mark.parametrize("fused", [False, True])
def test_a_scaled_loss_is_shown_unscaled_and_a_skipped_step_is_none(
    desk: Desk, fused: bool
) -> None:
    loops = desk.run(
        BEGIN
        + f"""
optimizer = torch.optim.Adam(net.parameters(), lr=0.1, fused={fused})
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
skipped = 0
for i in range(6):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    scaler.scale(loss if i != 2 else loss * float("inf")).backward()
    before = net[0].weight.clone()
    if i != 2:
        seen.append((loss.item(), norm(net) / scaler.get_scale(), 0.1))
    scaler.step(optimizer)
    skipped += torch.equal(before, net[0].weight)
    scaler.update()
"""
    )
    assert desk.end.ok and desk.variables["skipped"] == 1
    if not fused:  # torch calls a fused optimizer's step, which itself skips
        return assert_seen(desk, loops)
    losses, norms, _ = zip(*desk.variables["seen"], strict=True)
    kept = [row for row in range(6) if row != 2]
    assert [column(loops, "loss")[row] for row in kept] == list(losses)
    assert [column(loops, "gradient_norm")[row] for row in kept] == pytest.approx(norms, rel=1e-5)


def test_what_is_logged_before_a_step_is_drawn_at_it(desk: Desk) -> None:
    loops = desk.run(
        BEGIN
        + """
kept = torch.zeros(1)
lab.log(before=7)
for i in range(4):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    kept += 1
    lab.log(kept=kept, twice=loss * 2, even=i % 2 == 0)
    if i == 2:
        lab.log(rare=np.float64(0.5))
    seen.append((loss.item(), norm(net), 0.1))
    optimizer.step()
"""
    )
    assert_seen(desk, loops)
    assert drawn(loops, "kept") == {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}
    twice = {step: 2 * row[0] for step, row in enumerate(desk.variables["seen"], 1)}
    assert drawn(loops, "twice") == pytest.approx(twice)
    assert drawn(loops, "even") == {1: 1.0, 2: 0.0, 3: 1.0, 4: 0.0}
    assert (drawn(loops, "before"), drawn(loops, "rare")) == ({1: 7.0}, {3: 0.5})


@pytest.mark.parametrize("place", ["FORWARD", "BACKWARD", "STEP"])
def test_what_is_logged_after_any_part_of_a_step_is_drawn_at_it(desk: Desk, place: str) -> None:
    """Also that of the last step; to double the loss makes a node of the next graph."""
    log = "lab.log(number=i, twice=2 * loss); lab.log(step=100 * i, far=i, back=i)"
    source = """
for i in range(1, 7):
    loss = F.mse_loss(net(x), y)
    FORWARD
    optimizer.zero_grad()
    loss.backward()
    BACKWARD
    optimizer.step()
    STEP
    lab.log(step=3, back=-i)
"""
    for each in ("FORWARD", "BACKWARD", "STEP"):
        source = source.replace(each, log if each == place else "pass")
    loops = desk.run(BEGIN + source)
    assert drawn(loops, "number") == {i: i for i in range(1, 7)}
    losses = dict(zip(column(loops, "step"), column(loops, "loss"), strict=True))
    assert drawn(loops, "twice") == pytest.approx({i: 2 * loss for i, loss in losses.items()})
    assert drawn(loops, "far") == {100 * i: i for i in range(1, 7)}
    assert drawn(loops, "back") == {100 * i: -i for i in range(1, 7)}  # never back to 3


def test_a_score_that_is_known_before_the_first_step_is_drawn_after_each(desk: Desk) -> None:
    loops = desk.run(
        BEGIN
        + """
lab.log(score=0)
for i in range(1, 5):
    F.mse_loss(net(x), y).backward()
    optimizer.step()
    with torch.no_grad():
        net(x)
    lab.log(score=i)
"""
    )
    assert drawn(loops, "score") == {1: 1, 2: 2, 3: 3, 4: 4}


def test_a_logged_accuracy_is_not_the_rows(desk: Desk) -> None:
    loops = desk.run(BEGIN + LOOP + "    lab.log(accuracy=i)\n")
    assert drawn(loops, "accuracy") == {i + 1: i for i in range(20)}
    assert all(math.isnan(value) for value in column(loops, "accuracy"))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        ("lab.log(a='x')", "TypeError", "lab.log(a=...) takes a number, not str"),
        (
            "lab.log(a=torch.zeros(1, dtype=torch.complex64))",
            "ValueError",
            "lab.log(a=...) takes a real number or a tensor of one element, not a tensor of"
            " torch.complex64 with shape (1,)",
        ),
        (
            "for i in range(30): lab.log(**{f'a{i}': i})",
            "ValueError",
            "lab.log takes at most 24 different names in a cell",
        ),
    ],
)
def test_what_cannot_be_plotted_is_refused(desk: Desk, call: str, kind: str, words: str) -> None:
    desk.run(call)
    assert desk.end.error is not None
    assert (desk.end.error.type, desk.end.error.message) == (kind, words)


def test_a_variable_lab_is_the_users(desk: Desk) -> None:
    (listed,) = (s for s in [*desk.run("a = 1"), *desk.said] if isinstance(s, VariablesSnapshot))
    assert [variable.name for variable in listed.variables] == ["a"]
    desk.run("lab = torch.zeros(3)")
    (listed,) = (s for s in desk.said if isinstance(s, VariablesSnapshot))
    assert [variable.name for variable in listed.variables] == ["lab", "a"]
    assert desk.run(BEGIN + LOOP)[-1].step == 20 and desk.variables["lab"].shape == (3,)


def test_an_error_in_the_loop_ends_its_run_and_is_told(desk: Desk) -> None:
    loops = desk.run(BEGIN + LOOP + "    assert i < 4, 'enough'\n")
    assert (loops[-1].state, loops[-1].step) == ("failed", 5)
    assert loops[-1].error == desk.end.error and desk.end.error is not None
    assert desk.end.error.message == "enough"
    assert_seen(desk, loops)


def test_a_loss_that_is_not_finite_or_not_known_is_a_row_like_others(desk: Desk) -> None:
    loops = desk.run(
        BEGIN
        + """
for i in range(4):
    optimizer.zero_grad()
    if i != 1:
        (F.mse_loss(net(x), y) * (float("nan") if i == 3 else 1)).backward()
    optimizer.step()
"""
    )
    assert desk.end.ok
    first, none, third, bad = column(loops, "loss")
    assert math.isfinite(first) and none is None and math.isfinite(third) and math.isnan(bad)
    assert column(loops, "gradient_norm")[1] == 0.0 and column(loops, "step") == [1, 2, 3, 4]


def test_steps_of_other_threads_are_not_the_loops(desk: Desk) -> None:
    threaded = BEGIN + "import threading\ndef work():\n" + LOOP.replace("\n", "\n    ")
    loops = desk.run(
        threaded + "\nthread = threading.Thread(target=work)\nthread.start(); thread.join()\n"
    )
    assert loops == [] and len(desk.variables["seen"]) == 20


def test_torch_is_as_before_after_the_cell(desk: Desk) -> None:
    backward, scale = torch.autograd.backward, torch.amp.GradScaler.scale
    for ending in ("", "    raise SystemExit(3)\n"):
        desk.run(BEGIN + "kept = torch.autograd.backward\n" + LOOP + ending)
        assert torch.autograd.backward is backward and torch.amp.GradScaler.scale is scale
        assert not _global_optimizer_pre_hooks and not _global_optimizer_post_hooks
    assert desk.variables["kept"] is not backward  # and it works without the cell
    weight = torch.ones(2, requires_grad=True)
    desk.variables["kept"](weight.sum())
    assert weight.grad is not None and weight.grad.tolist() == [1.0, 1.0]


def test_modes_of_the_users_do_not_see_the_figures_being_made(desk: Desk) -> None:
    loops = desk.run(
        BEGIN
        + "from torch.utils._python_dispatch import TorchDispatchMode\n"
        + """
class Count(TorchDispatchMode):
    names = []
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))
torch.set_default_dtype(torch.float64)
with Count():
"""
        + LOOP.replace("\n", "\n    ").replace("norm(net)", "0.0")
    )
    assert desk.end.ok and loops[-1].step == 20
    assert not any("foreach_norm" in name for name in desk.variables["Count"].names)
    assert column(loops, "gradient_norm")[0] > 0


def test_a_gradient_that_torch_cannot_measure_leaves_the_norm_unknown(desk: Desk) -> None:
    loops = desk.run(
        "class Odd(torch.optim.SGD):\n"
        "    def step(self, closure=None): pass\n"
        "p = nn.Parameter(torch.zeros(2, dtype=torch.float32))\n"
        "class Sealed(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):\n"
        "        if 'norm' in func.name(): raise NotImplementedError('sealed')\n"
        "        return super().__torch_dispatch__(func, types, args, kwargs)\n"
        "p.grad = torch.zeros(2).as_subclass(Sealed)\n"
        "o = Odd([p], lr=0.25)\n"
        "for i in range(3): o.step()\n"
    )
    assert desk.end.ok, desk.end.error
    assert [math.isnan(value) for value in column(loops, "gradient_norm")] == [True] * 3
    assert column(loops, "learning_rate") == [0.25] * 3


def test_while_train_has_a_run_a_cells_loop_is_not_shown(desk: Desk) -> None:
    desk.session.handle(TrainCommand(id=1, model=MLP, training=SETUP, paused=True))
    desk.cells = 1
    assert desk.run(BEGIN + LOOP) == [] and desk.end.ok
    while desk.session.lab.control.pause.clear() or desk.session.advance():
        pass
    assert desk.run(LOOP)[-1].step == 20


def test_a_long_loop_takes_no_more_memory(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.training.figures.pace.FREE_STEPS", 10**9)
    monkeypatch.setattr("engine.training.figures.metrics.HISTORY_ROWS", 100)
    made: list[OwnLoop] = []

    def loop_made(*args: Any) -> OwnLoop:
        made.append(OwnLoop(*args))
        return made[-1]

    monkeypatch.setattr(holding, "OwnLoop", loop_made)
    loops = desk.run(
        BEGIN
        + """
w = nn.Parameter(torch.ones(1))
o = torch.optim.SGD([w], lr=0.0)
w.grad = torch.ones(1)
for i in range(3000):
    if i % 2: o = torch.optim.SGD([w], lr=0.0)
    lab.log(i=i)
    o.step()
"""
    )
    assert desk.end.ok and loops[-1].step == 3000
    metrics = made[0].metrics
    assert len(metrics.history) <= 200
    assert not metrics._unsent and not metrics._unreduced and not metrics._reduced
    assert len(made[0]._lines) == 1
    assert all(len(loop.steps.step) <= 200 for loop in loops)
    assert all(len(encode_snapshot(loop)) < MAX_SNAPSHOT_BYTES for loop in loops)


def test_measuring_takes_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("engine.training.figures.pace.perf_counter", lambda: now)
    budget = Budget()
    for step in range(FREE_STEPS):
        assert budget.takes(step)
        budget.spend(0.0001)
        budget.spend(0.00006)  # before the step, and after it
    assert not budget.takes(FREE_STEPS)
    now += 0.079  # one step cost 0.16 ms of 80; those before it leave no debt
    assert not budget.takes(FREE_STEPS)
    now += 0.002
    assert budget.takes(FREE_STEPS)
    budget.spend(10.0)
    now += 0.21
    assert budget.takes(FREE_STEPS + 1)


def test_sending_takes_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, cost, sent = 100.0, 0.0, []

    def send(snapshot: LoopSnapshot) -> None:
        nonlocal now
        sent.append(snapshot.step)
        now += cost

    monkeypatch.setattr("engine.loops.own_loop.perf_counter", lambda: now)
    loop = OwnLoop("loop", Control(), send)
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))])
    for number, (seconds, wait) in enumerate([(0.00005, 1 / 30), (0.0004, 0.2), (9.0, 0.3)], 1):
        cost = seconds
        loop.before_step(optimizer, False)
        loop.after_step(optimizer, False)  # is sent, and takes `cost`
        now += wait - 0.001
        loop.before_step(optimizer, False)
        loop.after_step(optimizer, False)
        assert len(sent) == number
        now += 0.002
    assert sent == [1, 3, 5]


def test_what_is_sent_takes_nothing_of_the_time_for_measuring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, spent = 100.0, []

    def send(snapshot: LoopSnapshot) -> None:
        nonlocal now
        now += 9.0

    monkeypatch.setattr("engine.loops.own_loop.perf_counter", lambda: now)
    monkeypatch.setattr(Budget, "spend", lambda self, seconds: spent.append(seconds))
    loop = OwnLoop("loop", Control(), send)
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))])
    loop.before_step(optimizer, False)
    loop.after_step(optimizer, False)
    loop.catch_up()
    assert now == 118.0 and sum(spent) == 0.0


def test_a_step_that_the_time_for_measuring_does_not_reach_is_only_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[LoopSnapshot] = []
    monkeypatch.setattr(Budget, "takes", lambda self, step: step < 2)
    loop = OwnLoop("loop", Control(), sent.append)
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))])
    for _ in range(5):
        loop.before_step(optimizer, False)
        loop.after_step(optimizer, False)
    loop.catch_up()
    assert sent[-1].step == 5 and column(sent, "step") == [1, 2]


@pytest.mark.parametrize("is_measured", [True, False])
def test_what_a_watchpoint_reads_takes_no_time_for_measuring(
    monkeypatch: pytest.MonkeyPatch, is_measured: bool
) -> None:
    """It reads in each step: taken from the budget, it put off the next row of figures for ever."""
    spent = []
    monkeypatch.setattr(Budget, "takes", lambda self, step: is_measured)
    monkeypatch.setattr(Budget, "spend", lambda self, seconds: spent.append(seconds))
    control = Control()
    control.hold_when = HoldWhen(not_finite=True)
    loop = OwnLoop("loop", control, lambda snapshot: None, hold=lambda at: None)
    parameter = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter])
    parameter.grad = torch.ones(1)
    loop.before_step(optimizer, False)
    loop.after_step(optimizer, False)
    assert loop.looks and bool(spent) == is_measured


def test_the_first_four_groups_of_an_optimizer_have_a_rate_each() -> None:
    sent: list[LoopSnapshot] = []
    loop = OwnLoop("loop", Control(), sent.append)
    groups = [{"params": [nn.Parameter(torch.ones(1))], "lr": rate / 8} for rate in range(1, 7)]
    optimizer = torch.optim.SGD(groups)
    loop.before_step(optimizer, False)
    loop.after_step(optimizer, False)
    figures = sent[-1].steps.figures
    assert column(sent, "learning_rate") == [0.125]
    assert {name: list(values) for name, values in figures.items()} == {
        f"learning rate, group {group}": [group / 8] for group in (2, 3, 4)
    }
