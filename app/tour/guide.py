"""Opens the window with the real engine, and runs the stages of the tour."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication, QWidget

from app.application import build
from app.settings import Settings
from app.tour.autograd_stage import AutogradStage
from app.tour.build_stage import BuildStage
from app.tour.export_stage import ExportStage
from app.tour.hand import Hand, TourFailure
from app.tour.stage import Album
from app.tour.tensors_stage import TensorsStage
from app.tour.train_stage import TrainStage
from app.window.dialogs import Dialogs, UnsavedAnswer

STAGES = (BuildStage, AutogradStage, TrainStage, ExportStage, TensorsStage)


class _Dialogs(Dialogs):
    """Leaves without saving, since the tour's project is not needed any more."""

    def unsaved(
        self, parent: QWidget, name: str, lost: Sequence[str], kept: str = ""
    ) -> UnsavedAnswer:
        return "discard"

    def confirm(self, parent: QWidget, question: str, yes: str) -> bool:
        return True


def guide(out: Path, private: Path, report: dict[str, Any], quiet: bool) -> str:
    """Run all stages. Returns why the tour failed, empty if it did not. Settings and recovery files
    go into the folder `private`."""
    qt = QApplication.instance() or QApplication(["tensorlab"])
    assert isinstance(qt, QApplication)
    settings = QSettings(str(private / "settings.ini"), QSettings.Format.IniFormat)
    settings.setValue("theme", "light")
    application = build(
        dialogs=_Dialogs(native=False), settings=Settings(settings), recovery=private / "recovery"
    )
    hand, album = Hand(), Album(out)
    application.window.resize(1440, 900)
    application.window.show()
    application.start()
    try:
        for stage in STAGES:
            if not quiet:
                print(f"{stage.__name__.removesuffix('Stage')} …", flush=True)
            stage(application, hand, album, out, report).run()
    except TourFailure as failure:
        album.add(application.window, "failure")
        return str(failure)
    finally:
        application.window.close()
    return ""
