"""Takes the pictures of the README and the guides, of the window as it is:
`python -m tests.screenshots`.

The workspaces are pictures of the tour. The other two are of scripts of `assets/scripts` that train
while a window is attached to them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"  # before Qt is imported

from PySide6.QtWidgets import QPushButton

from app.application import Application
from app.processes.engine_link import EngineLink
from engine.protocol import LoopSnapshot
from engine.system.program import FOLDER
from tests import tour
from tests.gestures import Answers, click, settle, started, until

PICTURES = FOLDER / "assets" / "screenshots"
SCRIPTS = FOLDER / "assets" / "scripts"
OF_THE_TOUR = {"backward": "autograd", "storage": "tensors", "model": "model", "trained": "train"}
STEPS = {"gpt": 300, "ranks": 1500}
"""The step of each script after which its picture is taken."""


def take_those_of_the_tour(folder: Path) -> None:
    if failure := tour.run(folder)["failure"]:
        raise SystemExit(failure)
    for name, kept in OF_THE_TOUR.items():
        (picture,) = folder.glob(f"[0-9][0-9]-{name}.png")
        shutil.copyfile(picture, PICTURES / f"{kept}.png")


def take_attached(folder: Path, name: str, command: list[str], kept: str, is_held: bool) -> None:
    """Start a script, attach a window to it, and take the picture of Train while it trains or,
    `is_held`, after Pause."""
    script = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    try:
        with started(EngineLink, Answers(), folder / name) as application:
            application.window.resize(1440, 900)
            _attach(application, name)
            application.window.show_workspace("train")
            bar = application.window.page("train").bar
            until(_is(application, lambda loop: loop.step >= STEPS[name]), f"step {STEPS[name]}")
            if is_held:
                click(bar.pause)
                until(_is(application, lambda loop: loop.state == "paused"), "the pause")
            settle()
            settle()  # lay out again if the status bar got wider
            application.window.grab().save(str(PICTURES / f"{kept}.png"))
    finally:
        script.terminate()  # torchrun ends its ranks
        script.wait()


def _attach(application: Application, name: str) -> None:
    """Press the line of the script, or of its rank 0, on the Start page."""
    application.window.show_workspace("start")
    start = application.window.page("start")

    def lines() -> list[QPushButton]:
        found = start.findChildren(QPushButton, "attach_running")
        shown = [line for line in found if line.text().startswith(name) and line.isVisible()]
        return [line for line in shown if "rank 1" not in line.text()]

    until(lines, f"{name} on the Start page")
    click(lines()[0])


def _is(application: Application, holds: Callable[[LoopSnapshot], bool]) -> Callable[[], bool]:
    def check() -> bool:
        loop = application.bench.store.newest(LoopSnapshot)
        return loop is not None and holds(loop)

    return check


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tensorlab-screenshots-") as private:
        folder = Path(private)
        take_those_of_the_tour(folder / "tour")
        gpt = [str(SCRIPTS / "gpt.py"), "--steps", "100000"]
        take_attached(folder, "gpt", gpt, "attach", is_held=False)
        torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
        ranks = [*torchrun, str(SCRIPTS / "ranks.py"), "--steps", "1000000"]
        take_attached(folder, "ranks", ranks, "ranks", is_held=True)


if __name__ == "__main__":
    main()
