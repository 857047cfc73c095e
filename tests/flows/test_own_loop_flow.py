"""A loop typed in the console, live in Train: held, stepped, continued, stopped."""

from __future__ import annotations

import pytest

from app import templates
from engine.protocol import CellSnapshot, LoopSnapshot, TrainingSnapshot, VariablesSnapshot
from tests.labels import said

CODE = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(64, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for i in range({steps}):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), x.sum(1, keepdim=True))
    loss.backward()
    lab.log(half=loss / 2)
    optimizer.step()
"""


def loop_of(program) -> LoopSnapshot:
    loop = program.bench.store.newest(LoopSnapshot)
    assert loop is not None
    return loop


def wait(qtbot, program, state: str) -> LoopSnapshot:
    def is_there() -> bool:
        loop = program.bench.store.newest(LoopSnapshot)
        return loop is not None and loop.state == state

    qtbot.waitUntil(is_there, timeout=60_000)
    return loop_of(program)


def test_a_cells_loop_is_plotted_by_train_without_being_asked(program) -> None:
    program.workspaces.run_python(CODE.format(steps=30))
    program.bench.link.drain()
    program.window.show_workspace("train")
    assert program.window.statusBar().currentMessage() == "Train shows the loop of your code."
    assert loop_of(program).state == "finished"
    view = program.window.page("train")
    loss = view.board.plots["loss"].tracks["loss"].raw
    assert loss.x.tolist() == list(range(1, 31))
    assert view.board.figures["half"].tracks["step"].raw.y.tolist() == pytest.approx(
        [value / 2 for value in loss.y]
    )
    assert len(view.board.plots["step_ms"].tracks["step_ms"].raw) == 29  # the first is not known
    assert len(view.board.plots["accuracy"].tracks["accuracy"].raw) == 0
    assert said(view, "train_line").startswith("Loop in cell 1 · step 30 · ")
    assert "The loop has ended after 30 steps." in said(view, "train_result")


def test_a_second_loop_takes_the_place_of_the_first_and_train_that_of_both(program) -> None:
    program.window.show_workspace("train")
    view = program.window.page("train")
    for steps in (5, 3):
        program.workspaces.run_python(CODE.format(steps=steps))
        program.bench.link.drain()
        assert len(view.board.plots["loss"].tracks["loss"].raw) == steps
    program.workspaces.run_python("net(x).sum().backward()")
    program.bench.link.drain()
    assert len(view.board.plots["loss"].tracks["loss"].raw) == 3
    program.bench.files.new(templates.load_template("mlp"))
    program.bench.link.drain()
    view.bar.step_requested.emit()
    program.bench.link.drain()
    run = program.bench.store.newest(TrainingSnapshot)
    assert run is not None and (run.state, run.step) == ("paused", 1)
    assert (
        view.board.plots["loss"].tracks["loss"].raw.x.tolist() == [1.0] and not view.board.figures
    )
    assert program.bench.store.newest(LoopSnapshot) is None


def test_a_loop_is_held_stepped_and_stopped_from_train(qtbot, real_program) -> None:
    program = real_program
    link, store = program.bench.link, program.bench.store
    program.workspaces.run_python(CODE.format(steps=10**9))
    program.window.show_workspace("train")
    wait(qtbot, program, "running")
    view = program.window.page("train")
    bar = view.bar
    assert (bar.pause.isEnabled(), bar.train.isEnabled(), bar.step.isEnabled()) == (1, 0, 0)
    store.forget(VariablesSnapshot)
    bar.pause.click()
    held = wait(qtbot, program, "paused").step
    assert f"Held after step {held:,}. " in said(view, "train_result")
    qtbot.waitUntil(lambda: store.newest(VariablesSnapshot) is not None, timeout=60_000)
    numbers = {v.name: v.text for v in store.newest(VariablesSnapshot).variables}
    assert numbers["i"] == f"{held - 1}" or numbers["i"] == f"{held - 1:,}"
    for step in (held + 1, held + 2):
        bar.step.click()
        qtbot.waitUntil(
            lambda step=step: (loop_of(program).step, loop_of(program).state) == (step, "paused"),
            timeout=60_000,
        )
    assert bar.train.text() == "Continue"
    bar.train.click()
    wait(qtbot, program, "running")
    qtbot.waitUntil(lambda: loop_of(program).step > held + 50, timeout=60_000)
    program.bench.actions["train.pause"].trigger()
    wait(qtbot, program, "paused")
    bar.stop.click()
    last = wait(qtbot, program, "stopped")
    qtbot.waitUntil(lambda: not link.busy, timeout=60_000)
    assert f"Stopped after {last.step:,} steps." in said(view, "train_result")
    end = store.newest(CellSnapshot)
    assert end is not None and end.error is not None and end.error.type == "KeyboardInterrupt"
    assert link.state == "ready"


def test_a_loop_ends_in_words_if_the_engine_is_lost(qtbot, real_program) -> None:
    program = real_program
    program.window.show_workspace("train")
    source = CODE.format(steps=10**9) + "    if i == 20:\n        import os\n        os._exit(3)\n"
    program.workspaces.run_python(source)
    failed = wait(qtbot, program, "failed")
    view = program.window.page("train")
    assert f"The engine stopped after {failed.step} step" in said(view, "train_result")
    assert "checkpoint" not in said(view, "train_result")
    assert said(view, "train_line").startswith("Loop in cell 1 · step ")
