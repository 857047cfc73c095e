"""From the start of the process to the first picture of the window, against an empty Qt window.

Each round starts two fresh Python processes, ours and a bare QMainWindow, in turns. Both are
timed by the parent's clock up to the end of the first paint event.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

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
print(time.time(), "torch" in sys.modules, flush=True)
import os
os._exit(0)  # what comes after is not measured
"""


def start_ms(code: str) -> float:
    """Milliseconds until the first picture; raises AssertionError if torch was loaded for it."""
    started = time.time()
    done = subprocess.run(
        [sys.executable, "-c", code + SHOW], capture_output=True, text=True, check=True
    )
    shown, torch_loaded = done.stdout.split()
    assert torch_loaded == "False"
    return (float(shown) - started) * 1e3


def main() -> None:
    start_ms(OURS), start_ms(BARE)  # fill the file cache
    ours, bare = [], []
    for _ in range(ROUNDS):
        ours.append(start_ms(OURS))
        bare.append(start_ms(BARE))
    row = {
        "bench": "startup",
        "window_ms": statistics.median(ours),
        "bare_window_ms": statistics.median(bare),
        "window_over_bare": statistics.median(a / b for a, b in zip(ours, bare, strict=True)),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
