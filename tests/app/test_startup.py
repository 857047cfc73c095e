"""The window shows in under a second of its own work, without torch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from PySide6.QtCore import QEventLoop

from app import run, templates
from app.window.main_window import MainWindow


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


def test_the_first_window_lies_inside_its_screen():
    """Offscreen, Qt's screen is 800 by 800 pixels: smaller than the window likes to be."""
    script = """
        from PySide6.QtCore import QTimer
        from PySide6.QtWidgets import QApplication
        from app import application, run
        from app.processes.engine_link import EngineLink

        def look():
            window = next(w for w in QApplication.topLevelWidgets() if w.isVisible())
            print(window.screen().availableGeometry().contains(window.frameGeometry()))
            window.close()

        EngineLink.start = lambda self: None
        application.Application.start = lambda *_: QTimer.singleShot(0, look)
        run.run()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["True"]


@pytest.mark.parametrize(
    ("painter", "file", "page", "not_needed"),
    [
        ("widgets.start.cards.TemplateCard", "", "start", ["widgets.canvas"]),
        (
            "widgets.diagram.view.DiagramView",
            templates.FOLDER / "mlp.tlab",
            "model",
            ["tomllib", "widgets.layout.model_layout", "widgets.model.code_editor"],
        ),
    ],
)
def test_the_first_page_is_painted_before_the_engine_starts(painter, file, page, not_needed):
    """Nor does it load what the first picture does not need."""
    module, _, name = painter.rpartition(".")
    script = f"""
        import gc, sys
        from PySide6 import QtWidgets
        from PySide6.QtCore import QTimer
        from app import application, cli
        from {module} import {name}

        painted = []  # and whether garbage is collected: only after the first picture
        collected = lambda: gc.get_freeze_count() > 0
        paint = {name}.paintEvent
        {name}.paintEvent = lambda *event: (paint(*event), painted.append(collected()))

        def start(self, path, attached):
            not_needed = {{"numpy", "multiprocessing", "subprocess", *{not_needed}}}
            classes = {{"QStyle", "QWizard"}} & {{*vars(QtWidgets)}}  # PySide loads them when named
            loaded = not_needed & {{*sys.modules}} | classes
            print([*painted[:1], collected()], loaded, self.window.workspace, path)
            QTimer.singleShot(0, self.window.close)

        application.Application.start = start
        cli.main({[str(file)] if file else []})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [f"[False, True] set() {page} "]


def test_the_canvas_of_a_project_is_painted_before_the_rest_is_loaded_and_then_works():
    script = f"""
        import sys
        from PySide6.QtCore import QTimer
        from app import cli
        from widgets.diagram.view import DiagramView

        loaded, places = [], []
        paint = DiagramView.paintEvent
        def paint_and_note(view, event):
            paint(view, event)
            loaded.append({{"app.application", "engine.protocol"}} & {{*sys.modules}})
            places.append(view.scene_point(view.rect().center()))
            from app.processes.engine_link import EngineLink
            EngineLink.start = lambda link: QTimer.singleShot(0, use)
        DiagramView.paintEvent = paint_and_note

        def use():
            from PySide6.QtWidgets import QApplication
            window = next(w for w in QApplication.topLevelWidgets() if w.isVisible())
            canvas = window.page("model").canvas
            print(loaded[0], window.windowTitle().split(" ")[0], window.workspace)
            print(places[0] == places[-1], len(window.panels_menu.actions()))
            blocks = canvas.model_scene.blocks
            before = len(blocks)
            canvas.delete_requested.emit([next(iter(blocks))], ())
            print(before - len(blocks), window.actions_table["edit.undo"].text())
            window.may_close = lambda: True
            window.close()

        cli.main([{str(templates.FOLDER / "mlp.tlab")!r}])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    words = ["set() mlp[*] model", "True 4", "1 &Undo Delete block"]
    assert done.stdout.splitlines() == words, done.stderr


def test_the_start_page_is_painted_before_the_rest_is_loaded_and_then_works():
    script = """
        import sys
        from PySide6.QtCore import QTimer
        from PySide6.QtWidgets import QPushButton
        from app import cli
        from widgets.start.cards import TemplateCard

        loaded = []
        paint = TemplateCard.paintEvent
        def paint_and_note(*event):
            paint(*event)
            loaded.append({"app.application", "engine.protocol"} & {*sys.modules})
            from app.processes.engine_link import EngineLink
            EngineLink.start = lambda link: QTimer.singleShot(0, use)
        TemplateCard.paintEvent = paint_and_note

        def use():
            from PySide6.QtWidgets import QApplication
            window = next(w for w in QApplication.topLevelWidgets() if w.isVisible())
            page = window.page("start")
            assert window.workspace == "start"
            page.template_chosen.emit("mlp")
            print(loaded[0], window.windowTitle().split(" ")[0], window.workspace)
            window.may_close = lambda: True
            window.close()

        cli.main([])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["set() MLP model"], done.stderr


def test_a_python_file_waits_for_the_engine_behind_the_start_page(tmp_path):
    file = tmp_path / "net.py"
    file.write_text("x = 1\n", encoding="utf-8")
    script = f"""
        from PySide6.QtCore import QTimer
        from app import application, cli

        def start(self, path, attached):
            print(self.window.workspace, path)
            QTimer.singleShot(0, self.window.close)

        application.Application.start = start
        cli.main([{str(file)!r}])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [f"start {file}"]


def test_pyside_reads_no_sources_of_the_modules_that_are_imported():
    script = """
        import linecache
        from app.python_imports import import_plainly
        import_plainly()
        from app.settings import Settings
        print([path for path in linecache.cache if path.endswith("settings.py")])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]"]


def test_a_project_that_the_program_begins_with_fits_its_page():
    """Nor does its first picture need numpy."""
    script = """
        import sys
        from pathlib import Path
        from PySide6.QtWidgets import QApplication
        from app import cli, templates

        def look(qt):
            loaded = {"numpy"} & {*sys.modules}
            qt.processEvents()
            window = next(each for each in qt.topLevelWidgets() if each.isVisible())
            canvas = window.page("model").canvas
            shown = canvas.zoom
            canvas.fit()
            print(window.workspace, shown == canvas.zoom, loaded)
            window.close()
            return 0

        QApplication.exec = look
        cli.main([str(Path(templates.FOLDER) / "mlp.tlab")])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["model True set()"]


def test_ctrl_c_in_the_terminal_closes_the_window_though_qt_waits(qtbot):
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    loop = QEventLoop()
    window.closing.connect(loop.quit)
    run._close_on_interrupt(window)
    # From another thread: this one runs no Python while the loop waits.
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    loop.exec()
    assert not window.isVisible()
