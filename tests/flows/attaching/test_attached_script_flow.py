"""The whole program attached to a real script: its loop is drawn and held, its own backward
stepped, it is left, attached to again, and ends as if nobody had looked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.application import Application
from engine.connecting.dialing import dial
from engine.protocol import BackwardSnapshot, LoopSnapshot, VariablesSnapshot
from engine.system.program import version
from tests.engine.attaching import Script, training_until_end
from tests.labels import said

WAIT_MS = 60_000


@pytest.fixture
def script(tmp_path: Path, sockets: Path, process_server: None) -> Iterator[Script]:
    with training_until_end(tmp_path) as running:
        yield running


@pytest.fixture
def attach(real_program: Application, script: Script, qtbot) -> Callable[[], None]:
    def attach() -> None:
        def call():
            return dial(str(script.process.pid), version())

        real_program.attaching.use(call(), call)
        qtbot.waitUntil(lambda: loop(real_program) == "running", timeout=WAIT_MS)

    return attach


def loop(program: Application) -> str:
    found = program.bench.store.newest(LoopSnapshot)
    return found.state if found is not None else ""


def step(program: Application) -> int:
    found = program.bench.store.newest(LoopSnapshot)
    assert found is not None
    return found.step


def ends_well(program: Application, script: Script, folder: Path, qtbot) -> None:
    with qtbot.waitSignal(program.bench.link.lost, timeout=WAIT_MS):
        (folder / "end").touch()
    assert script.end() == "ended\n"


def test_it_is_held_stepped_and_let_go_on(real_program, script, attach, qtbot, tmp_path) -> None:
    program = real_program
    attach()
    view = program.window.page("train")
    for _ in range(2):
        view.bar.pause.click()
        qtbot.waitUntil(lambda: loop(program) == "paused", timeout=WAIT_MS)
        held = step(program)
        variables = program.window.page("tensors").variables.model
        qtbot.waitUntil(
            lambda shown=variables: "optimizer" in [v.name for v in shown.variables],
            timeout=WAIT_MS,
        )
        view.bar.step.click()
        qtbot.waitUntil(lambda held=held: step(program) == held + 1, timeout=WAIT_MS)
        assert f"Held after step {held + 1:,}. " in said(view, "train_result")
        view.bar.train.click()
        qtbot.waitUntil(lambda: loop(program) == "running", timeout=WAIT_MS)
    for name in ("model", "autograd", "tensors", "train"):
        program.window.show_workspace(name)
    ends_well(program, script, tmp_path, qtbot)


def test_its_own_backward_is_stepped_and_it_is_left_and_attached_to_again(
    real_program, script, attach, qtbot, tmp_path
) -> None:
    program = real_program
    store, actions = program.bench.store, program.bench.actions
    attach()
    actions["autograd.own_backward"].trigger()

    def is_held_at(position: int) -> bool:
        backward = store.newest(BackwardSnapshot)
        is_in = store.held is not None and store.held.at == "backward"
        return is_in and backward is not None and backward.position == position

    qtbot.waitUntil(lambda: is_held_at(0), timeout=WAIT_MS)
    assert program.window.workspace == "autograd"
    actions["autograd.step_backward"].trigger()
    qtbot.waitUntil(lambda: is_held_at(1), timeout=WAIT_MS)
    actions["autograd.own_backward"].trigger()
    actions["train.pause"].trigger()
    qtbot.waitUntil(lambda: loop(program) == "running", timeout=WAIT_MS)
    left_at = step(program)
    actions["engine.detach"].trigger()
    qtbot.waitUntil(lambda: program.bench.link.attached is None, timeout=WAIT_MS)
    store.forget(LoopSnapshot)
    store.forget(VariablesSnapshot)
    attach()
    assert step(program) > left_at
    ends_well(program, script, tmp_path, qtbot)


def test_a_window_that_is_closed_while_it_holds_the_script_lets_it_go_on(
    real_program, script, attach, qtbot, tmp_path
) -> None:
    attach()
    real_program.window.page("train").bar.pause.click()
    qtbot.waitUntil(lambda: loop(real_program) == "paused", timeout=WAIT_MS)
    real_program.window.close()
    (tmp_path / "end").touch()
    assert script.end() == "ended\n"


def test_a_watchpoint_of_train_holds_the_script_and_says_why(
    real_program, script, attach, qtbot, tmp_path
) -> None:
    program = real_program
    attach()
    view = program.window.page("train")

    assert not view.form.isVisible() and view.loop_hold.isVisible()
    view.loop_hold.more.click()

    def set_limit(gradient_norm: float) -> None:
        view.loop_hold.form.value_edited.emit("gradient_norm", gradient_norm)

    set_limit(1e-30)
    qtbot.waitUntil(lambda: loop(program) == "paused", timeout=WAIT_MS)
    qtbot.waitUntil(lambda: program.bench.store.held is not None, timeout=WAIT_MS)
    held = step(program) + 1
    assert view.hold.isVisible()
    # Each step adds a gradient of ones to 4 weights and 2 biases: nothing sets it to zero.
    assert said(view, "hold_text") == (
        f"Held in step {held:,}. The 2-norm of all gradients is {6**0.5 * held:.4g}, above 1e-30;"
        f" `net.weight` has the largest part of it, {2.0 * held:.4g}. It is held before the update."
    )
    assert said(view, "train_result").startswith(f"Held before the update of step {held:,}. ")
    set_limit(0.0)
    view.bar.train.click()
    qtbot.waitUntil(lambda: loop(program) == "running", timeout=WAIT_MS)
    assert not view.hold.isVisible()
    ends_well(program, script, tmp_path, qtbot)
