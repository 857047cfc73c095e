"""The run's own step in the real window: call by call, then node by node in Autograd's graph."""

from __future__ import annotations

from app import templates
from engine.protocol import BackwardSnapshot, GraphSnapshot, HeldSnapshot, TrainingSnapshot

WAIT_MS = 120_000


def test_a_step_call_by_call_node_by_node_and_back_to_its_start(real_program, qtbot) -> None:
    bench, window = real_program.bench, real_program.window
    bench.files.new(templates.load_template("mlp"))
    presenter = real_program.workspaces.at_train()
    view = presenter.view
    strip = view.strip

    def run() -> TrainingSnapshot:
        return bench.newest(TrainingSnapshot)

    def place() -> str:
        numbers = None if run() is None else run().step_numbers
        return "" if numbers is None else numbers.place

    def press(unit: str, until) -> None:
        strip.buttons[unit].click()
        qtbot.waitUntil(until, timeout=WAIT_MS)

    presenter.step()
    qtbot.waitUntil(lambda: run() is not None and run().step == 1, timeout=WAIT_MS)
    assert strip.isVisible()
    press("op", lambda: run().is_in_step)  # zero_grad
    press("op", lambda: "flatten" in place())
    press("op", lambda: "after `F.linear` in `linear1`" in place())
    assert window.workspace == "train"
    held = bench.store.held
    assert held is not None and held.at == "call" and "which gave (64, 128) float32" in held.after
    assert "Inside step 2, after `F.linear`" in strip._words.text()
    assert held.where in view.bar._result.text()
    variables = real_program.workspaces.at_tensors().page.variables
    qtbot.waitUntil(lambda: variables.variable("flatten1") is not None, timeout=WAIT_MS)
    real_program.workspaces.at_train()
    press("phase", lambda: run().step_numbers.done[-1] == "forward" and not place())
    press("phase", lambda: run().step_numbers.done[-1] == "loss")
    press("op", lambda: "after node 1 of" in place())
    assert window.workspace == "train"
    assert bench.newest(GraphSnapshot) is not None
    assert bench.newest(BackwardSnapshot).position == 1
    window.show_workspace("autograd")
    graph = bench.newest(GraphSnapshot)
    drawn = lambda: real_program.workspaces.at_passes().drawn is graph  # noqa: E731
    qtbot.waitUntil(drawn, timeout=WAIT_MS)
    own = real_program.workspaces.autograd.page.steps.own_call
    assert own.isVisible()
    real_program.workspaces.at_passes().step_backward()
    qtbot.waitUntil(lambda: bench.newest(BackwardSnapshot).position == 2, timeout=WAIT_MS)
    real_program.workspaces.at_train()
    press("module", lambda: "after node" in place() and "after node 1 of" not in place())
    assert view.bar.back.isEnabled()
    view.bar.back.click()
    back = lambda: run().state == "paused" and run().step == 1 and not run().is_in_step  # noqa: E731
    qtbot.waitUntil(back, timeout=WAIT_MS)
    assert bench.store.held is None
    assert bench.newest(HeldSnapshot).at == ""
    press("epoch", lambda: run().state == "paused" and run().step == 23)
    presenter.stop()
    qtbot.waitUntil(lambda: run().state == "stopped", timeout=WAIT_MS)
