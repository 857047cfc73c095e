"""The engine in the window: its state, why it ended, and the ways to go on."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.processes.exit_reasons import ExitReason
from app.window.banners import Choice
from app.workbench import Workbench
from engine.connecting.greeting import Welcome
from engine.protocol import (
    CheckModelCommand,
    ErrorSnapshot,
    HeldSnapshot,
    InitialiseCommand,
    ReadySnapshot,
    TrainingSnapshot,
)

_CHECKPOINT = "The run's weights are in its last checkpoint."
_UNFINISHED = ("running", "paused", "failed")
_TRAINING = {"running": "training…", "paused": "training is paused"}


class EnginePresenter(QObject):
    """Restarts an engine that was lost, if it had become ready before.

    `resume_requested()`: go on training from the run's last checkpoint. `restore_requested()`: only
    load its weights. `reconnect_requested()`: attach again to the process that was lost.
    """

    resume_requested = Signal()
    reconnect_requested = Signal()
    restore_requested = Signal()

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._was_ready = False
        bench.files.opened.connect(self._on_opened)
        bench.store.on(ErrorSnapshot, self._show_error)
        bench.store.on(HeldSnapshot, lambda _: self._show_state())
        bench.store.on(TrainingSnapshot, self._show_training)
        bench.link.state_changed.connect(self._show_state)
        bench.link.busy_changed.connect(self._show_state)
        bench.link.lost.connect(self._on_lost)

    def restart(self) -> None:
        """End the engine and start a new one; ask first if weights would be lost."""
        choices = self._ways_back()
        if not self.may_end("Restart the engine? Its", "Restart"):
            return
        self._bench.link.restart()
        if choices:
            self._bench.window.banners.show_banner(
                "engine", "accent", "The engine was restarted", _CHECKPOINT, choices
            )

    def may_end(self, question: str, yes: str) -> bool:
        """Whether this window's engine may end. If weights would be lost the user is asked; the
        question goes on with "weights are lost"."""
        if self._bench.link.attached is not None:
            return True  # it goes on
        asks = bool(self._ways_back()) or self._bench.weights.modified
        return not asks or self._bench.confirm(
            f"{question} weights are lost; checkpoints and files stay.", yes
        )

    def detach(self) -> None:
        """Leave the process that the window is attached to."""
        if self._bench.link.attached is not None:
            self._bench.link.restart()

    def _show_training(self, training: TrainingSnapshot) -> None:
        if training.state == "running":
            self._bench.window.banners.dismiss("engine")  # resumed, or training again
        self._show_state()

    def _on_opened(self) -> None:
        """Close the errors about the model of the project before."""
        for command in _WORDS:
            self._bench.window.banners.dismiss(f"error_{command}")

    def _show_state(self) -> None:
        link, ready = self._bench.link, self._bench.newest(ReadySnapshot)
        if ready is not None:
            self._was_ready = True
            run = self._bench.newest(TrainingSnapshot)
            busy = _TRAINING.get(run.state, "engine busy…") if run else "engine busy…"
            if link.runs_code:
                busy = "your cell is running…"
            if (held := self._bench.store.held) is not None:
                busy = "a step is held" if held.after else "your code is held"
            text = busy if link.busy else f"ready · {_versions(ready)}"
            if link.script is not None:
                text = _attached(link.script, "held" if self._bench.store.held else "")
            elif link.attached is not None:
                text = f"{text} · {link.attached.about.title}"
            self._bench.window.show_engine("busy" if link.busy else "ready", text)
        elif link.state == "starting":
            words = "engine starting…"
            if link.attached is not None:
                words = f"attaching to {link.attached.about.title}…"
            self._bench.window.show_engine("starting", words)
        else:
            self._bench.window.show_engine("lost", "engine lost")
        self._bench.actions["engine.interrupt"].setEnabled(link.busy)
        is_attached = link.attached is not None
        for name, is_offered in (
            ("engine.restart", not is_attached),
            ("engine.detach", is_attached),
        ):
            self._bench.actions[name].setEnabled(is_offered)
            self._bench.actions[name].setVisible(is_offered)

    def _on_lost(self, reason: ExitReason) -> None:
        restarts = self._was_ready or reason.was_attached
        self._was_ready = False
        choices = [] if reason.was_attached else self._ways_back()
        next_step = "A new engine is starting; your project is safe in this window."
        if choices:
            next_step += f" {_CHECKPOINT}"
        if reason.was_attached:
            next_step = f"{reason.next_step} An engine of the window's own is starting."
        if reason.can_reconnect:
            tip = "Attach to the process again."
            choices.append(("Reconnect", tip, self.reconnect_requested.emit))
        if not restarts:
            next_step = reason.next_step
            tip = "Start a new engine process."
            choices.insert(0, ("Restart", tip, self._bench.link.restart))
        words, _, log = reason.detail.partition("\n\n")
        is_plain = reason.was_attached and not reason.can_reconnect  # a script that has ended
        self._bench.window.banners.show_banner(
            "engine",
            "accent" if is_plain else "error",
            reason.title,
            f"{words} {next_step}",
            choices,
            detail=log,
        )
        if restarts:
            self._bench.link.start()

    def _ways_back(self) -> list[Choice]:
        """Buttons that bring the weights of the newest run into the new engine."""
        run = self._bench.newest(TrainingSnapshot)
        if run is None or not run.checkpoint:
            return []
        step = f"step {run.checkpoint_step:,} of {run.total_steps:,}"
        if run.state in _UNFINISHED:
            return [("Resume", f"Train on from {step}.", self.resume_requested.emit)]
        tip = f"Bring back the weights of {step}."
        return [("Restore weights", tip, self.restore_requested.emit)]

    def _show_error(self, snapshot: ErrorSnapshot) -> None:
        if snapshot.command not in _WORDS:
            return
        error = snapshot.error
        what = _WORDS[snapshot.command]
        self._bench.window.banners.show_banner(
            f"error_{snapshot.command}",
            "error",
            f"{what} failed: {error.message}",
            error.hint,
            detail=error.traceback,
        )


# The answers to all other commands, errors too, are shown in the workspace that sent them.
_WORDS = {
    CheckModelCommand.__name__: "Checking the model",
    InitialiseCommand.__name__: "Resetting the weights",
}


def _attached(welcome: Welcome, state: str) -> str:
    title = welcome.about.title
    words = f"watching {title}" if welcome.role == "watch" else f"attached to {title}"
    return f"{words} · {state}" if state else words


def _versions(ready: ReadySnapshot) -> str:
    best = ready.devices[-1].title if ready.devices else "CPU"
    return f"torch {ready.torch_version} · {best}"
