"""From the start of the process to the first picture of the window, against an empty Qt window.

Each round starts two fresh Python processes, ours and a bare QMainWindow, in turns. Counted is the
CPU time of each up to the end of its first paint event. Bytecode is kept between rounds, as pip
writes it where the program is installed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 5

OURS = """
from PySide6.QtWidgets import QApplication
application = QApplication([])
from app.application import build
lab = build()
window = lab.window
window.show_workspace("model")
"""

BARE = """
from PySide6.QtWidgets import QApplication, QMainWindow
application = QApplication([])
window = QMainWindow()
"""

SHOW = """
import sys, time
window.show()
window.grab()
application.processEvents()
print(time.process_time(), "torch" in sys.modules, flush=True)
import os
os._exit(0)  # what comes after is not measured
"""


def start_ms(code: str, bytecode: str) -> float:
    """CPU milliseconds until the first picture, with bytecode in the folder `bytecode`; raises
    AssertionError if torch was loaded for it."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code + SHOW]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    took_s, torch_loaded = done.stdout.split()
    assert torch_loaded == "False"
    return float(took_s) * 1e3


def main() -> None:
    ours, bare = [], []
    with tempfile.TemporaryDirectory() as bytecode:
        for _ in range(ROUNDS + 1):  # the first fills the caches
            ours.append(start_ms(OURS, bytecode))
            bare.append(start_ms(BARE, bytecode))
    del ours[0], bare[0]
    row = {
        "bench": "startup",
        "window_ms": statistics.median(ours),
        "bare_window_ms": statistics.median(bare),
        "window_over_bare": statistics.median(a / b for a, b in zip(ours, bare, strict=True)),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
