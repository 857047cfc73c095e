"""The memory of both processes while the real window trains for a million steps.

The window is offscreen, with an engine process, the template MLP (digits), batches of 4, and all
default plots live. It prints one JSON object every so often: steps, and the resident memory of the
window's and of the engine's process. `make bench` does not run it: it takes half an hour and more.

    python -m tests.bench.long_training [--steps N] [--seconds N] [--every SECONDS]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from time import perf_counter

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported

import psutil
from PySide6.QtCore import QSettings, QTimer
from PySide6.QtWidgets import QApplication

from app.application import build
from app.processes.engine_link import EngineLink
from app.settings import Settings
from app.templates import load_template
from engine.project.document import replace
from engine.protocol import TrainingSnapshot

BATCH = 4


def train(steps: int, seconds: float, every_s: float, folder: Path) -> None:
    """Until so many steps are done, or so many seconds have passed."""
    qt = QApplication.instance() or QApplication(["-style", "Fusion"])
    settings = Settings(QSettings(str(folder / "settings.ini"), QSettings.Format.IniFormat))
    program = build(EngineLink, settings=settings, recovery=folder / "recovery")
    bench, link = program.bench, program.bench.link
    assert isinstance(link, EngineLink)
    window = psutil.Process()
    started = perf_counter()

    def tell() -> None:
        run = bench.newest(TrainingSnapshot)
        if run is None:
            return
        passed = perf_counter() - started
        assert link.pid is not None
        row = {
            "bench": "long_training",
            "step": run.step,
            "passed_s": passed,
            "window_mb": window.memory_info().rss / 2**20,
            "engine_mb": psutil.Process(link.pid).memory_info().rss / 2**20,
        }
        print(json.dumps(row), flush=True)
        if run.step >= steps or passed > seconds or run.state not in ("running", "paused"):
            clock.stop()
            link.close()  # the window would ask whether to stop the run
            qt.quit()

    def begin() -> None:
        project = load_template("mlp")
        setup = replace(project.training, batch_size=BATCH, epochs=steps)
        bench.files.new(replace(project, training=setup))
        program.workspaces.at_train().train()

    clock = QTimer()
    clock.timeout.connect(tell)
    clock.start(round(every_s * 1e3))
    program.window.resize(1440, 900)
    program.window.show()
    link.became_ready.connect(begin)
    program.start()
    qt.exec()
    link.wait_closed()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10**6)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--every", type=float, default=30.0, metavar="SECONDS")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TENSORLAB_DATA_DIR"] = folder
        train(arguments.steps, arguments.seconds, arguments.every, Path(folder))


if __name__ == "__main__":
    main()
