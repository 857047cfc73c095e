"""An ordinary script that is changed by two lines: the window finds it, attaches, holds it before
the update that would take a gradient which is not finite, and stops its backward after the node
that made it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton

from app.application import Application
from engine.protocol import BackwardSnapshot, LoopSnapshot
from tests.engine.attaching import Script
from tests.labels import said

WAIT_MS = 60_000
PLAIN = """
import sys
from pathlib import Path
import torch

folder = Path(sys.argv[1])
torch.manual_seed(0)
net = torch.nn.Linear(3, 1, bias=False)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
while not (folder / "end").exists():
    x = torch.zeros(4, 3) if (folder / "bad").exists() else torch.ones(4, 3)
    distance = net(x).square().sum().sqrt()
    optimizer.zero_grad()
    distance.backward()
    optimizer.step()
print("ended")
"""
SCRIPT = PLAIN.replace("import torch\n", "import torch\nimport tensorlab as lab\n").replace(
    "while not", "lab.watch(net, optimizer, wait=True)\nwhile not"
)


@pytest.fixture
def script(tmp_path: Path, sockets: Path, process_server: None) -> Iterator[Script]:
    running = Script(tmp_path / "train.py", SCRIPT, str(tmp_path))
    running.address()
    yield running
    running.kill()


def test_it_is_found_held_and_its_backward_stopped_after_the_node_that_made_it(
    real_program: Application, script: Script, qtbot, tmp_path: Path
) -> None:
    program, store = real_program, real_program.bench.store
    view, actions = program.window.page("train"), program.bench.actions
    console = program.window.page("tensors").console

    def is_in(state: str) -> bool:
        found = store.newest(LoopSnapshot)
        return found is not None and found.state == state

    def is_held(at: str) -> bool:
        return store.held is not None and store.held.at == at

    program.window.show_workspace("start")
    start = program.window.page("start")

    def listed() -> list[QPushButton]:
        lines = start.findChildren(QPushButton, "attach_running")
        return [line for line in lines if f"train.py (pid {script.process.pid})" in line.text()]

    qtbot.waitUntil(lambda: bool(listed()), timeout=WAIT_MS)
    listed()[0].click()
    qtbot.waitUntil(lambda: is_in("running"), timeout=WAIT_MS)
    view.bar.pause.click()
    qtbot.waitUntil(lambda: is_held("step") and is_in("paused"), timeout=WAIT_MS)
    view.loop_hold.form.value_edited.emit("not_finite", True)
    (tmp_path / "bad").touch()
    view.bar.train.click()
    qtbot.waitUntil(lambda: is_held("update") and is_in("paused"), timeout=WAIT_MS)
    loop = store.newest(LoopSnapshot)
    assert loop is not None
    assert said(view, "hold_text") == (
        f"Held in step {loop.step + 1:,}. The gradient of `net.weight` is not finite. It is held"
        " before the update."
    )
    # The weights do not take it: what the next backward makes is made of finite numbers.
    program.window.show_workspace("tensors")
    console.submit("optimizer.zero_grad(); print(net.weight.grad, 'is left')")

    def is_dropped() -> None:
        assert "None is left\n" in console.output.toPlainText()

    qtbot.waitUntil(is_dropped, timeout=WAIT_MS)
    actions["autograd.own_backward"].trigger()
    program.window.page("autograd").steps.backward.tabs.breakpoints.form.add.click()
    view.bar.train.click()
    qtbot.waitUntil(lambda: is_held("backward"), timeout=WAIT_MS)

    def stopped_by() -> str:
        backward = store.newest(BackwardSnapshot)
        return "" if backward is None else backward.stopped_by

    qtbot.waitUntil(lambda: store.newest(BackwardSnapshot) is not None, timeout=WAIT_MS)
    actions["autograd.run_backward"].trigger()
    qtbot.waitUntil(lambda: bool(stopped_by()), timeout=WAIT_MS)
    assert stopped_by() == (
        "Paused after SqrtBackward0 of distance: it was given finite numbers and made 1 inf."
    )

    actions["autograd.own_backward"].trigger()
    view.loop_hold.form.value_edited.emit("not_finite", False)
    with qtbot.waitSignal(program.bench.link.lost, timeout=WAIT_MS):
        (tmp_path / "end").touch()
        view.bar.train.click()
    assert script.end() == "ended\n"
