"""Windows that come, ask and leave at random moments of a script's loop, by the hundreds: each
figure that is drawn is plain Python's of that step."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from math import isnan
from pathlib import Path
from types import ModuleType

import pytest
import torch

from engine.attached import script_calls, windows
from engine.connecting.dialing import dial
from engine.loops import own_loop
from engine.protocol import LoopSnapshot, ReadModuleNormsCommand, ReadVariablesCommand, Snapshot
from engine.system.program import version
from tests.engine.attaching import Window
from tests.engine.loops.optimizers.test_looked_at_inside import LOOP
from tests.engine.loops.optimizers.test_two_optimizers import BEGIN, assert_rows, plain
from tests.engine.processes import WAIT_S

MOST_WINDOWS = 2


class AtRandom:
    """In place of a loop's budget: after each step it is asked again, and often says no."""

    free_steps, next_s = 0, 0.0

    def __init__(self) -> None:
        self._random = random.Random(1)

    def takes(self, step: int) -> bool:
        return self._random.random() < 0.5

    def spend(self, seconds: float) -> None: ...


class People:
    """What people do with a script: `look()` does some of it."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._open: list[Window] = []

    def come(self) -> Window:
        watching = script_calls._watching
        assert watching is not None
        window = Window(dial(watching.listener.address, version(), wants="watch"))
        assert watching.wait(WAIT_S)
        return window

    def look(self) -> None:
        (act,) = self._random.choices(["come", "leave", "ask"], [2, 2, 3])
        if act == "come" and len(self._open) < MOST_WINDOWS:
            self._open.append(self.come())
        elif act == "leave" and self._open:
            self._leave(self._random.choice(self._open))
        elif self._open:
            for window in self._open:
                window.send(self._random.choice([ReadModuleNormsCommand(folder="", of_loop=True),
                                                 ReadVariablesCommand()]))  # fmt: skip

    def leave_all(self) -> None:
        while self._open:
            self._leave(self._open[0])

    def _leave(self, window: Window) -> None:
        self._open.remove(window)
        window.close()


Told = dict[windows.Windows, list[LoopSnapshot]]


@pytest.fixture
def told(sockets: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """What the windows of each session are told of the loop: after each step that is measured. The
    test is to call `watch`; it is closed after it."""
    loops: Told = {}
    tell = windows.Windows.tell

    def noted(self: windows.Windows, snapshot: Snapshot) -> None:
        if isinstance(snapshot, LoopSnapshot):
            loops.setdefault(self, []).append(snapshot)
        tell(self, snapshot)

    monkeypatch.setattr(windows.Windows, "tell", noted)
    monkeypatch.setattr(script_calls, "_watching", None)
    monkeypatch.setattr(own_loop, "Budget", AtRandom)
    monkeypatch.setattr(own_loop, "LONGEST_SILENCE_S", 0.0)
    monkeypatch.setattr(own_loop, "SNAPSHOT_INTERVAL_S", 0.0)
    yield loops
    assert script_calls._watching is not None
    script_calls._watching.close()


def run(path: Path, source: str, **names: Callable[[], object]) -> ModuleType:
    """The script's module after it has run."""
    path.write_text(source)
    module = ModuleType("__main__")
    module.__dict__.update(names)
    exec(compile(source, str(path), "exec"), vars(module))
    return module


@pytest.mark.parametrize("seed", range(3))
def test_what_is_drawn_of_a_script_is_of_its_step_whenever_a_window_comes(
    told: Told, tmp_path: Path, seed: int
) -> None:
    source = BEGIN + LOOP.replace("SEED", str(seed)).replace("STEPS", "200")
    of_torch = plain(source.replace("look()", "pass"))
    people = People(seed)
    script_calls.watch()
    mine = run(tmp_path / "train.py", source, look=people.look)
    people.leave_all()
    loops = [loop for of_session in told.values() for loop in of_session]
    for loop in loops:
        assert_rows(loop, of_torch["seen"], False)
    losses = [loss for loop in loops for loss in loop.steps.loss if loss is not None]
    norms = [norm for loop in loops for norm in loop.steps.gradient_norm if norm is not None]
    assert len(told) > 1 and min(len(losses), len(norms)) > 20
    for name in ("a", "b"):
        for p, q in zip(getattr(mine, name).parameters(), of_torch[name].parameters(), strict=True):
            assert torch.equal(p, q)


BAD_FROM = 141
BECOMES_NAN = f"""
import random, torch
at_random = random.Random(SEED)
net = torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.rand(64, 6), torch.rand(64, 1)
def maybe():
    if at_random.random() < 0.1:
        look()
for step in range(1, 241):
    optimizer.zero_grad()
    maybe()
    loss = ((net(x) - y) ** 2).mean()
    if step >= {BAD_FROM}:
        loss = loss + torch.log(torch.tensor(0.0)) * 0.0
    maybe()
    if step == STAYS_FROM:
        staying = come()
    loss.backward()
    maybe()
    optimizer.step()
"""


@pytest.mark.parametrize("seed", range(3))
def test_the_first_bad_step_of_a_script_is_told_exactly_to_those_who_saw_the_one_before(
    told: Told, tmp_path: Path, seed: int
) -> None:
    people = People(seed)
    script_calls.watch()
    source = BECOMES_NAN.replace("SEED", str(seed)).replace("STAYS_FROM", str(90 + 10 * seed))
    mine = run(tmp_path / "train.py", source, look=people.look, come=people.come)
    mine.staying.close()
    people.leave_all()
    exact = 0
    for loops in told.values():
        rows = [row for loop in loops for row in zip(loop.steps.step, loop.steps.loss, strict=True)]
        assert all(loss is None or isnan(loss) == (step >= BAD_FROM) for step, loss in rows)
        saw_before = any(loss is not None for step, loss in rows if step < BAD_FROM)
        for loop in loops:
            line = loop.lines[0]
            assert bool(line.bad_steps) == bool(line.first_bad)
            if line.bad_steps and saw_before:
                exact += 1
                is_first = line.first_bad == line.bad_from == line.bad_since == BAD_FROM
                assert is_first and line.bad_steps == loop.step - BAD_FROM + 1
            elif line.bad_steps:
                assert line.bad_from <= BAD_FROM <= line.first_bad == line.bad_since
    assert exact > 10
