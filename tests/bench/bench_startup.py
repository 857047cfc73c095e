"""From the start of the process to the first picture of the window, against an empty Qt window.

Measured is the program's own command: without a file, which shows the Start page, and with a
project, which shows the Model page. Each round starts three fresh Python processes, these two and
a bare QMainWindow, in turns. Counted is the CPU time of each up to the end of its first painting.
Bytecode is kept between rounds, as pip writes it where the program is installed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 7
PROJECT = Path(__file__).parents[2] / "assets" / "templates" / "mlp.tlab"

OURS = """
import gc
gc.disable()  # this and the next line as `main` does: PySide is imported here before it
from app.python_imports import import_plainly
import_plainly()
from PySide6.QtWidgets import QApplication
from app.cli import main
def first_picture(application):
    (window,) = [each for each in application.topLevelWidgets() if each.isVisible()]
    tell(window, "page: " + window.workspace)
QApplication.exec = first_picture
main(sys.argv[1:])
"""

BARE = """
from PySide6.QtWidgets import QApplication, QMainWindow
application = QApplication([])
window = QMainWindow()
window.show()
tell(window, "bare")
"""

TELL = """
import sys
def tell(window, what):
    import os, time
    window.grab()
    took_s = time.process_time()
    print(took_s, "torch" in sys.modules, what, sep=", ", flush=True)
    os._exit(0)  # what comes after is not measured
"""


def start_ms(code: str, folder: str, shows: str, *arguments: str) -> float:
    """CPU milliseconds until the first picture. `folder` is home, and keeps the bytecode. Raises
    AssertionError if torch was loaded for it, or something else is shown."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": folder, "HOME": folder}
    environment |= {f"XDG_{kind}_HOME": folder for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", TELL + code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    took_s, torch_loaded, shown = done.stdout.strip().split(", ")
    assert (torch_loaded, shown) == ("False", shows), done.stdout
    return float(took_s) * 1e3


def main() -> None:
    rounds: list[tuple[float, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS + 1):  # the first fills the caches
            rounds.append(
                (
                    start_ms(OURS, folder, "page: start"),
                    start_ms(OURS, folder, "page: model", str(PROJECT)),
                    start_ms(BARE, folder, "bare"),
                )
            )
    start, model, bare = zip(*rounds[1:], strict=True)
    row = {
        "bench": "startup",
        "start_page_ms": statistics.median(start),
        "model_page_ms": statistics.median(model),
        "bare_window_ms": statistics.median(bare),
        "start_page_over_bare": statistics.median(a / b for a, b in zip(start, bare, strict=True)),
        "model_page_over_bare": statistics.median(a / b for a, b in zip(model, bare, strict=True)),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
