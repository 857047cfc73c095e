"""Views that are opened and closed at random moments of a loop, by the hundreds: each figure that
is drawn is plain Python's of that step."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from engine.loops import own_loop
from engine.protocol import LoopSnapshot
from tests.engine.loops.optimizers.test_two_optimizers import BEGIN, assert_drawn, desk, plain  # noqa: F401
from tests.engine.loops.test_loop_looks import lines


class WhenAsked:
    """In place of a loop's budget: no step is due by itself, and each that is shown is measured."""

    free_steps, next_s = 0, math.inf

    def takes(self, step: int) -> bool:
        return True

    def spend(self, seconds: float) -> None: ...


# `look()` is called between any two lines, inside of a forward pass, of a backward pass and of a
# closure.
LOOP = """
import random
at_random = random.Random(SEED)
def maybe():
    if at_random.random() < 0.05:
        look()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.Linear(4, 8), nn.Linear(8, 1)
    def forward(self, x):
        h = self.inner(x).tanh()
        maybe()
        if h.requires_grad:
            h.register_hook(lambda gradient: maybe())
        return self.head(h)
a, b = Net(), Net()
first = torch.optim.SGD(a.parameters(), lr=0.01)
second = torch.optim.SGD(b.parameters(), lr=0.01)
closed = torch.optim.LBFGS(G.parameters(), max_iter=2)
moves = {}
def norm(parameters):
    return torch.cat([p.flatten() for p in parameters]).norm().item()
def step_of(optimizer):
    before = [p.detach().clone() for p in optimizer.param_groups[0]["params"]]
    optimizer.step()
    after = optimizer.param_groups[0]["params"]
    moves[len(seen)] = [
        (p.grad.norm().item(), q.norm().item(), (p.detach() - q).norm().item())
        for p, q in zip(after, before)
    ]
for step in range(STEPS):
    maybe()
    first.zero_grad(set_to_none=step % 3 > 0)
    maybe()
    one = F.mse_loss(a(x), y)
    maybe()
    one.backward()
    maybe()
    two = F.l1_loss(a(x), y) * 0.5
    two.backward()
    maybe()
    tell("first", first, one=one, two=two)
    step_of(first)
    maybe()
    for parameter in b.parameters():
        parameter.grad = None
    maybe()
    other = F.mse_loss(b(x), y)
    other.backward()
    maybe()
    tell("second", second, other=other)
    step_of(second)
"""


@pytest.mark.parametrize("seed", range(3))
def test_what_is_drawn_of_a_loop_is_of_its_step_whenever_a_view_is_opened(
    desk: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    monkeypatch.setattr(own_loop, "Budget", WhenAsked)
    source = BEGIN + LOOP.replace("SEED", str(seed)).replace("STEPS", "300")
    of_torch = plain(source.replace("look()", "pass"))
    asked = 0

    def look() -> None:
        nonlocal asked
        asked += 1
        desk.session.lab.control.asked()

    desk.variables["look"] = look
    loops: list[LoopSnapshot] = desk.run(source)
    assert desk.end.ok and asked > 100
    drawn = assert_drawn(loops, of_torch["seen"])
    assert 100 < len(drawn) < 600  # and some are not
    for name in ("a", "b"):
        mine, its = desk.variables[name], of_torch[name]
        for p, q in zip(mine.parameters(), its.parameters(), strict=True):
            assert torch.equal(p, q)
    found = lines(desk)
    for of, start in (("a", 0), ("b", 1)):
        names = [f"{of}.{path}" for path, _ in of_torch[of].named_parameters()]
        for place, name in enumerate(names):
            line = found.lines[found.names.index(name)]
            for at, step in enumerate(found.steps):
                if (step - 1) % 2 == start and not math.isnan(line.gradient[at]):
                    got = line.gradient[at], line.weight[at], line.update[at]
                    assert got == pytest.approx(of_torch["moves"][step][place], rel=1e-4, abs=1e-7)
