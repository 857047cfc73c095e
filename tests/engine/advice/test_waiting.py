"""Numbers that are read from the GPU in every step; the CPU stands in for it."""

from __future__ import annotations

import pytest

from engine.advice import waiting
from tests.engine.advice.desk import Desk

LOOP = """
net = nn.Linear(4, 1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
total = 0.0
for step in range({steps}):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    {read}
"""


@pytest.fixture
def device(monkeypatch) -> list:
    """The tensors that were asked about; each is taken for one on the GPU."""
    asked: list = []
    monkeypatch.setattr(waiting, "is_on_gpu", lambda t: asked.append(t.shape) is None)
    return asked


@pytest.mark.parametrize(
    "read", ["total += loss.item()", "total += float(loss.detach())", "total += loss.tolist()"]
)
def test_a_number_that_is_read_in_every_step(desk: Desk, device: list, read: str) -> None:
    found = desk.only(LOOP.format(steps=40, read=read))
    assert (found.kind, found.line) == ("waiting", 11)
    assert found.evidence == (f"`{read}` ran in each of the last 16 steps",)
    assert found.fix.startswith("total += loss.detach()")
    assert len(device) == 16  # once told, it looks no more


def test_a_line_that_reads_several_numbers_in_each_step_is_counted_once_a_step(
    desk: Desk, device: list
) -> None:
    read = "total += loss.item() + loss.item()"
    assert desk.run(LOOP.format(steps=15, read=read)) == []
    found = desk.only(LOOP.format(steps=40, read=read))
    assert found.evidence == (f"`{read}` ran in each of the last 16 steps",)


@pytest.mark.parametrize(
    ("steps", "read"),
    [
        (15, "total += loss.item()"),
        (60, "total += loss.item() if step % 2 else 0.0"),
        (60, "total += loss.detach()"),
    ],
)
def test_numbers_that_are_read_now_and_then(
    desk: Desk, device: list, steps: int, read: str
) -> None:
    assert desk.run(LOOP.format(steps=steps, read=read)) == []


def test_many_numbers_after_the_steps(desk: Desk, device: list) -> None:
    source = LOOP.format(steps=20, read="pass") + "print([v.item() for v in net(x).flatten()] * 4)"
    assert desk.run(source) == []
    assert device


def test_nothing_is_told_of_the_cpu(desk: Desk) -> None:
    assert desk.run(LOOP.format(steps=40, read="total += loss.item()")) == []
