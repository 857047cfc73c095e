"""Code held at a breakpoint, and the loop of a file, through the window."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.protocol import (
    BackwardSnapshot,
    CellSnapshot,
    FileSnapshot,
    HeldSnapshot,
    LoopSnapshot,
)
from tests.engine.loops.test_held_files import FILE, weights, write
from tests.labels import said

CELL = """
def double(value):
    total = value * 2
    breakpoint()
    total = total + 1
    return total
for i in range(2):
    y = double(i)
print("y is", y)
"""


def wait_held(qtbot, program, line: int) -> HeldSnapshot:
    def is_there() -> bool:
        held = program.bench.store.held
        return held is not None and held.line == line

    qtbot.waitUntil(is_there, timeout=60_000)
    return program.bench.store.held


def wait_free(qtbot, program) -> None:
    qtbot.waitUntil(lambda: not program.bench.link.busy, timeout=60_000)


def test_a_cell_is_held_looked_at_changed_and_stepped(qtbot, real_program) -> None:
    program = real_program
    program.window.show_workspace("model")
    program.workspaces.run_python(CELL)
    wait_held(qtbot, program, 4)
    assert program.window.workspace == "tensors"
    page = program.window.page("tensors")
    console, pane = page.console, page.console.held
    assert said(page, "held_title") == "Held at line 4 of double, in cell 1"
    assert program.window.engine_chip.text() == "your code is held"
    assert said(page, "variables_held") == "Held at line 4 of double, in cell 1"
    assert pane.editor.marked_lines() == (4,) and pane.editor.toPlainText() == CELL
    qtbot.waitUntil(
        lambda: [v.name for v in page.variables.model.variables][:2] == ["value", "total"],
        timeout=60_000,
    )
    assert said(page, "console_state") == "held: what you type runs there"
    console.submit("total = 40")
    console.submit("total + value")
    qtbot.waitUntil(lambda: console.output.toPlainText().endswith("40\n"), timeout=60_000)
    pane.line.click()
    wait_held(qtbot, program, 5)
    assert pane.editor.marked_lines() == (5,)
    program.bench.actions["train.line"].trigger()
    wait_held(qtbot, program, 6)
    console.submit("1 / 0")
    qtbot.waitUntil(lambda: "ZeroDivisionError" in console.output.toPlainText(), timeout=60_000)
    console.submit("total")
    qtbot.waitUntil(lambda: console.output.toPlainText().endswith("41\n"), timeout=60_000)
    pane.continues.click()
    wait_held(qtbot, program, 4)
    program.bench.actions["train.pause"].trigger()
    wait_free(qtbot, program)
    assert "41\ny is 3\n" in console.output.toPlainText()
    assert pane.isHidden() and not said(page, "variables_held")
    names = [variable.name for variable in page.variables.model.variables]
    assert "y" in names and "total" not in names


def test_stop_ends_a_cell_that_is_held(qtbot, real_program) -> None:
    program = real_program
    program.workspaces.run_python(CELL)
    wait_held(qtbot, program, 4)
    page = program.window.page("tensors")
    page.console.held.stop.click()
    wait_free(qtbot, program)
    end = program.bench.store.newest(CellSnapshot)
    assert end.error.type == "KeyboardInterrupt"
    assert page.console.held.isHidden() and program.bench.store.held is None
    program.workspaces.run_python("5 + 5")
    wait_free(qtbot, program)
    assert page.console.output.toPlainText().endswith("10\n")


def test_nothing_is_held_once_the_engine_is_lost(qtbot, real_program) -> None:
    program = real_program
    program.workspaces.run_python(CELL)
    wait_held(qtbot, program, 4)
    program.bench.link.restart()
    page = program.window.page("tensors")
    assert page.console.held.isHidden() and not said(page, "variables_held")
    qtbot.waitUntil(lambda: program.bench.link.state == "ready", timeout=60_000)


def test_the_loop_of_a_file_is_held_stepped_and_continued(
    qtbot, real_program, tmp_path: Path
) -> None:
    program = real_program
    path = tmp_path / "own_loop.py"
    path.write_text(f"{FILE}train({10**9})\n")
    program.window.show_workspace("train")
    program.python_files.run(str(path))
    store = program.bench.store
    qtbot.waitUntil(lambda: store.newest(LoopSnapshot) is not None, timeout=60_000)
    view = program.window.page("train")
    assert said(view, "train_line").startswith("Loop in own_loop.py · step ")
    view.bar.pause.click()
    qtbot.waitUntil(lambda: store.held is not None, timeout=60_000)
    step = store.newest(LoopSnapshot).step
    assert f"Held after step {step:,}. " in said(view, "train_result")
    variables = program.window.page("tensors").variables
    qtbot.waitUntil(
        lambda: [v.name for v in variables.model.variables][:2] == ["steps", "i"], timeout=60_000
    )
    texts = {v.name: v.text for v in variables.model.variables}
    assert texts["i"].replace(",", "") == f"{step - 1}"
    view.bar.step.click()
    qtbot.waitUntil(
        lambda: store.held is not None and store.newest(LoopSnapshot).step == step + 1,
        timeout=60_000,
    )
    assert view.bar.line.isVisible()
    view.bar.line.click()
    held = wait_held(
        qtbot, program, FILE.splitlines().index("        history.append(loss.item())") + 1
    )
    assert said(view, "train_result").startswith(held.where)
    view.bar.train.click()
    qtbot.waitUntil(lambda: store.newest(LoopSnapshot).step > step + 20, timeout=60_000)
    view.bar.stop.click()
    wait_free(qtbot, program)
    assert store.newest(LoopSnapshot).state == "stopped" and store.held is None
    assert store.newest(FileSnapshot) is None


def test_the_backward_of_a_files_loop_is_stepped_and_the_weights_are_plain_pythons(
    qtbot, real_program, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    exec(write(tmp_path / "plain", 8).read_text(), {})
    path = write(tmp_path, 8)
    program = real_program
    store, window = program.bench.store, program.window
    window.show_workspace("train")
    bar = window.page("train").bar
    program.bench.actions["autograd.own_backward"].trigger()
    assert bar.own_backward.isChecked()
    program.python_files.run(str(path))

    def is_held_at(at: str, position: int = 0) -> bool:
        backward = store.newest(BackwardSnapshot)
        if store.held is None or store.held.at != at:
            return False
        return at != "backward" or (backward is not None and backward.position == position)

    qtbot.waitUntil(lambda: is_held_at("backward"), timeout=60_000)
    assert window.workspace == "autograd"
    page = window.page("autograd").steps
    line = path.read_text().splitlines().index("        loss.backward()") + 1
    where = f"Held in the backward() of line {line} of train, in own_loop.py"
    assert said(page, "own_call_where") == where
    assert page.roots.root == "loss" and page.roots.own_backward.isChecked()
    for position in (1, 2, 3):
        program.bench.actions["autograd.step_backward"].trigger()
        qtbot.waitUntil(lambda p=position: is_held_at("backward", p), timeout=60_000)
    program.bench.actions["autograd.back"].trigger()
    qtbot.waitUntil(lambda: is_held_at("backward", 2), timeout=60_000)
    page.own_call.continues.click()  # early: the next turn's pass opens
    qtbot.waitUntil(lambda: is_held_at("backward"), timeout=60_000)
    program.bench.actions["autograd.run_backward"].trigger()
    qtbot.waitUntil(lambda: store.newest(BackwardSnapshot).next is None, timeout=60_000)
    assert said(page, "own_call_where") == f"{where}: at its end, a step more returns to the code"
    program.bench.actions["autograd.step_backward"].trigger()
    qtbot.waitUntil(lambda: is_held_at("backward"), timeout=60_000)
    assert said(page, "own_call_where") == where
    page.roots.own_backward.click()
    assert not bar.own_backward.isChecked()
    window.show_workspace("train")
    bar.pause.click()
    program.bench.actions["train.step"].trigger()  # on to the optimizer step
    qtbot.waitUntil(lambda: is_held_at("step"), timeout=60_000)
    assert page.own_call.isHidden()
    assert store.newest(LoopSnapshot).step == 3
    bar.train.click()
    wait_free(qtbot, program)
    assert store.newest(LoopSnapshot).state == "finished" and store.newest(LoopSnapshot).step == 8
    plain, stepped = weights(tmp_path / "plain"), weights(tmp_path)
    assert plain.keys() == stepped.keys()
    for name, value in plain.items():
        assert torch.equal(stepped[name], value), name
