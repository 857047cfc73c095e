"""The window is up in under a second of its own work, useful, and without torch."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap


def test_the_window_shows_without_torch_and_can_be_used_before_the_engine_is_ready():
    script = """
        import json, sys, time
        started_s = time.process_time()  # of this process: the clock runs on for others too
        from PySide6.QtWidgets import QApplication
        qt = QApplication([])
        from app.application import build
        application = build()
        application.window.show()
        qt.processEvents()
        shown_s = time.process_time() - started_s
        application.window.show_workspace("model")
        application.workspaces.model.edits.add_block("nn.Linear", 0, 0)
        qt.processEvents()
        canvas = application.window.page("model").canvas
        report = {
            "shown_s": shown_s,
            "torch": sorted(name for name in sys.modules if name.split(".")[0] == "torch"),
            "drawn": len(canvas.model_scene.blocks),
            "undo": application.bench.actions["edit.undo"].text(),
            "chip": application.window.engine_chip.text(),
        }
        application.close()
        print(json.dumps(report))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["torch"] == []
    assert report["drawn"] == 1
    assert report["undo"] == "&Undo Add Linear"
    assert report["chip"] == "engine starting…"
    assert report["shown_s"] < 1.0
