"""The console with the real engine process: interrupted, killed, and its cells run again."""

from __future__ import annotations

import os
import signal

import pytest
from PySide6.QtWidgets import QPushButton

from app.application import Application
from app.processes.engine_link import EngineLink

WAIT_MS = 60_000


@pytest.fixture
def lab(real_program: Application) -> Application:
    """The program in its Tensors workspace."""
    real_program.window.show_workspace("tensors")
    return real_program


def run(qtbot, lab: Application, source: str) -> None:
    console = lab.window.page("tensors").console
    console.submit(source)
    qtbot.waitUntil(lambda: not console.busy, timeout=WAIT_MS)


def names(lab: Application) -> list[str]:
    return [variable.name for variable in lab.window.page("tensors").variables.model.variables]


def test_a_cell_that_never_ends_is_interrupted_and_the_variables_stay(qtbot, lab):
    page = lab.window.page("tensors")
    run(qtbot, lab, "x = torch.ones(3)")
    page.console.submit("print('on', 'its', 'way')\nwhile True: pass")
    qtbot.waitUntil(lambda: "on its way" in page.console.output.toPlainText(), timeout=WAIT_MS)
    page.console.interrupt_button.click()
    qtbot.waitUntil(lambda: not page.console.busy, timeout=WAIT_MS)
    assert "KeyboardInterrupt" in page.console.output.toPlainText()
    run(qtbot, lab, "x += 1")
    assert names(lab) == ["x"]
    assert [cell.source for cell in lab.bench.store.project.cells] == [
        "x = torch.ones(3)",
        "x += 1",
    ]


def test_a_cell_that_kills_its_engine_is_told_and_the_others_run_again(qtbot, lab):
    console = lab.window.page("tensors").console
    run(qtbot, lab, "x = torch.ones(3)")
    link = lab.bench.link
    assert isinstance(link, EngineLink) and link.pid is not None
    console.submit("while True: pass")
    with qtbot.waitSignal(link.lost, timeout=WAIT_MS):
        os.kill(link.pid, signal.SIGKILL)
    assert not console.busy
    assert "The engine has ended" in console.output.toPlainText()
    assert names(lab) == []
    banner = lab.window.banners.banner("cells")
    assert banner is not None
    qtbot.waitUntil(lambda: link.state == "ready", timeout=WAIT_MS)
    banner.findChild(QPushButton, "banner_run_again").click()
    qtbot.waitUntil(lambda: names(lab) == ["x"], timeout=WAIT_MS)
