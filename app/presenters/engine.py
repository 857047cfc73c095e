"""The engine as the window shows it: its state, its end and what to do then."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.exit_reasons import ExitReason
from app.workbench import Workbench
from engine.protocol import ErrorSnapshot, ReadySnapshot, TrainingSnapshot

_UNFINISHED = ("running", "paused", "failed")


class EnginePresenter(QObject):
    """Restarts an engine that was lost, once it has shown that it can start.

    `resume_requested()`: go on from the run's last checkpoint.
    """

    resume_requested = Signal()

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._was_ready = False
        bench.link.snapshot.connect(self._on_snapshot)
        bench.link.state_changed.connect(self._show_state)
        bench.link.busy_changed.connect(self._show_state)
        bench.link.lost.connect(self._on_lost)
        bench.actions.on("engine.restart", self._restart)
        bench.actions.on("engine.interrupt", bench.link.stop_job)

    def _restart(self) -> None:
        run = self._bench.store.newest(TrainingSnapshot)
        question = "Restart the engine? Its weights are lost; what was exported or saved stays."
        if run is None or self._bench.dialogs.confirm(self._bench.window, question, "Restart"):
            self._bench.link.restart()

    def _on_snapshot(self, snapshot: object) -> None:
        if isinstance(snapshot, ErrorSnapshot) and snapshot.command in _WORDS:
            self._show_error(snapshot)

    def _show_state(self) -> None:
        link = self._bench.link
        if link.ready is not None:
            self._was_ready = True
            text = "engine at work…" if link.busy else f"ready · {_versions(link.ready)}"
            self._bench.window.show_engine("busy" if link.busy else "ready", text)
        elif link.state == "starting":
            self._bench.window.show_engine("starting", "engine starting…")
        else:
            self._bench.window.show_engine("lost", "engine lost")
        self._bench.actions["engine.interrupt"].setEnabled(link.busy)

    def _on_lost(self, reason: ExitReason) -> None:
        restarts = self._was_ready
        self._was_ready = False
        run = self._bench.store.newest(TrainingSnapshot)
        choices = []
        if run is not None and run.checkpoint and run.state in _UNFINISHED:
            tip = f"Train on from step {run.checkpoint_step:,}, with the optimizer's state."
            choices.append(("Resume", tip, self.resume_requested.emit))
        if restarts:
            next_step = "A new engine is starting; your project is safe in this window."
            if choices:
                next_step += f" The run's last checkpoint is step {run.checkpoint_step:,}."
        else:
            next_step = reason.next_step
            tip = "Start the engine process anew."
            choices.append(("Restart", tip, self._bench.link.restart))
        words, _, log = reason.detail.partition("\n\n")
        self._bench.window.banners.show_banner(
            "engine", "error", reason.title, f"{words} {next_step}", choices, detail=log
        )
        if restarts:
            self._bench.link.start()

    def _show_error(self, snapshot: ErrorSnapshot) -> None:
        error = snapshot.error
        what = _WORDS[snapshot.command]
        self._bench.window.banners.show_banner(
            f"error_{snapshot.command}",
            "error",
            f"{what} failed: {error.message}",
            error.hint,
            detail=error.traceback,
        )


# All other commands are answered, well or not, in the workspace that sent them.
_WORDS = {
    "CheckModelCommand": "Checking the model",
    "InitialiseCommand": "Setting the weights anew",
    "ExportCommand": "The export",
}


def _versions(ready: ReadySnapshot) -> str:
    best = ready.devices[-1].title if ready.devices else "CPU"
    return f"torch {ready.torch_version} · {best}"
