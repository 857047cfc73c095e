"""The window's link to the engine: commands out, snapshots in as Qt signals.

Presenters use `Link`. `EngineLink` (in `engine_link`) has an engine process at the other end,
`InlineLink` (in `inline_link`) a session in this process. A link keeps no snapshots; `app.store`
does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from PySide6.QtCore import QObject, QTimer, Signal

from engine.project.document import Model, TrainingSetup
from engine.protocol import (
    AnySignal,
    CheckModelCommand,
    Command,
    CompareGradientsCommand,
    DoneSnapshot,
    ErrorReport,
    ErrorSnapshot,
    ExportCommand,
    FileSnapshot,
    FlowCommand,
    HeldSnapshot,
    InterruptSignal,
    MoveBackwardCommand,
    MoveForwardCommand,
    ReadySnapshot,
    RunCellCommand,
    RunFileCommand,
    RunHeldCommand,
    Snapshot,
    StartBackwardCommand,
    StartForwardCommand,
    StopSignal,
    TrainCommand,
    TrainingSnapshot,
    VariablesSnapshot,
)

if TYPE_CHECKING:
    from engine.connecting.dialing import Call
    from engine.connecting.greeting import Welcome

LinkState = Literal["starting", "ready", "lost"]
Answered = Callable[[Any], object]
Failed = Callable[[ErrorReport], object]

NO_ENGINE = "There is no engine: restart it from the status bar."
DOES_NOT_READ = (
    "The engine is busy and has not read the commands sent to it. Stop what it runs, or restart it"
    " from the status bar."
)

INTERRUPT_AFTER_MS = 1000
KILL_AFTER_MS = 3000

_WORDS: dict[type[Command], str] = {
    TrainCommand: "training",
    RunCellCommand: "running your code",
    ExportCommand: "exporting",
    CheckModelCommand: "checking the model",
    StartForwardCommand: "running the forward pass",
    MoveForwardCommand: "running the forward pass",
    StartBackwardCommand: "reading the autograd graph",
    MoveBackwardCommand: "running the backward pass",
    CompareGradientsCommand: "comparing gradients",
}
_AT_END = (VariablesSnapshot, FileSnapshot)
"""The message that tells that a cell or file has ended."""
_ENDS_BY_ITSELF = (TrainCommand, FlowCommand)


class Link(QObject):
    """`snapshot(Snapshot)` comes for each snapshot. `became_ready()` or `ended()` comes before each
    `state_changed(LinkState)` to "ready" or "lost". `lost(ExitReason)`: the engine has ended by
    itself. `steered(message)`: a script was told to hold, to step, to go on, or to watch its
    modules. `busy_changed(bool)`: see `busy`.

    Commands may be sent as soon as `start` has returned: they wait until torch has loaded.
    """

    snapshot = Signal(object)
    state_changed = Signal(str)
    became_ready = Signal()
    ended = Signal()
    busy_changed = Signal(bool)
    lost = Signal(object)
    steered = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state: LinkState = "lost"
        self.attached: Welcome | None = None
        """The process that the engine is in; None with an engine that this window has started."""
        self.pause_at: Callable[[], int] = lambda: 0
        """The step after which a script is held that is to pause; 0: after its next one."""
        self._unanswered: dict[int, Command] = {}
        self._asked: dict[int, tuple[Answered, Failed]] = {}
        self._code = 0  # the command that runs the user's code
        self.unsent = NO_ENGINE
        """Why the last command that was not sent was not."""
        self._checkpoint_step: int | None = None  # of the newest run's last checkpoint
        self._is_held = False
        self._stopping: set[int] = set()  # the commands that are waited for after a stop
        self._interrupted = 0  # the command that is interrupted then; 0: whichever runs
        self._interrupt_timer = self._timer(INTERRUPT_AFTER_MS, self._interrupt)
        self._kill_timer = self._timer(KILL_AFTER_MS, self._give_up)

    @property
    def script(self) -> Welcome | None:
        """The script that the engine is in; None if it is an engine of its own."""
        return None if self.is_served else self.attached

    @property
    def is_served(self) -> bool:
        """Whether the window is attached to an engine that serves windows, and goes on without
        this one."""
        return self.attached is not None and self.attached.serves

    @property
    def busy(self) -> bool:
        """Whether some command is not fully answered; a training run, also a paused one, counts."""
        return bool(self._unanswered)

    def awaits(self, command_id: int) -> bool:
        """Whether this command is not fully answered."""
        return command_id in self._unanswered

    @property
    def runs_code(self) -> bool:
        """Whether a cell or a file of the user's runs."""
        return self._code in self._unanswered

    def start(self) -> None:
        """Start the engine without waiting."""
        raise NotImplementedError

    def restart(self) -> None:
        """Leave or end the engine if there is one, and start a new one at once, which has no
        variables and no weights."""
        self.close()
        self.start()

    def attach(self, call: Call) -> None:
        """End the engine, or leave it, and talk to the process that was called."""
        raise NotImplementedError

    def send(self, command: Command) -> int:
        """Send a command and return its id. 0 means that nothing was sent; `unsent` says why."""
        raise NotImplementedError

    def ask(self, command: Command, answered: Answered, failed: Failed) -> int:
        """Send a command; `answered(snapshot)` is called for each answer, or `failed(error)`, until
        its end or `drop_answers`. Returns its id as `send` does."""
        command_id = self.send(command)
        if command_id:
            self._asked[command_id] = answered, failed
        return command_id

    def drop_answers(self, command_id: int) -> None:
        """Give what still answers this command to nobody who asked."""
        self._asked.pop(command_id, None)

    def signal(self, signal: AnySignal) -> None:
        """Send a signal, which acts at once even if the engine is busy."""
        raise NotImplementedError

    def go_to_step(self, step: int, is_held: bool) -> None:
        """Let a script be held after this step, and go on until then if it is held now. `steered`
        does not tell of it."""
        raise NotImplementedError

    def stop_job(self) -> None:
        """Stop all that runs: send a StopSignal, interrupt the user's code, and kill the engine
        after 3 s. A run of training steps has 1 s to end before it is interrupted. A process of the
        user's is never killed. Where code is held and commands wait for its end, they alone are
        stopped: the code stays held."""
        first, *waiting = self._unanswered or (0,)
        if self._is_held and waiting and self.script is None:
            for command_id in waiting:
                self.stop_command(command_id)
        elif first:
            self.signal(StopSignal())
            self._stopping, self._interrupted = set(self._unanswered), 0
            self._end_or_interrupt(*self._unanswered.values())
            if self.attached is None:
                self._kill_timer.start()

    def stop_command(self, command_id: int) -> None:
        """Stop one command, as `stop_job`: whatever else runs, or is held, stays. One that waits
        does not begin. The engine is killed only where nothing else has begun or waits but what
        reads."""
        if not self.awaits(command_id):
            return
        self.signal(StopSignal(command=command_id))
        self._stopping.add(command_id)
        self._interrupted = command_id
        self._end_or_interrupt(self._unanswered[command_id])
        others = (each for number, each in self._unanswered.items() if number != command_id)
        if self.attached is None and all(type(each).while_running for each in others):
            self._kill_timer.start()

    def stop_code(self) -> None:
        """Stop what was typed for code that is held, else the newest cell or file, else all."""
        typed = [n for n, each in self._unanswered.items() if isinstance(each, RunHeldCommand)]
        if typed or self.runs_code:
            self.stop_command(typed[-1] if typed else self._code)
        else:
            self.stop_job()

    def stop_held(self) -> None:
        """End the code that is held: it came before all that waits."""
        if self.script is None and self._unanswered:
            self.stop_command(next(iter(self._unanswered)))
        else:
            self.stop_job()

    def stop_run(self) -> None:
        """Stop the run of Train, also one that waits; without one, the loop of a cell or file."""
        runs = [n for n, each in self._unanswered.items() if isinstance(each, TrainCommand)]
        if runs:
            self.stop_command(runs[-1])
        else:
            self.stop_code()

    def _end_or_interrupt(self, *commands: Command) -> None:
        """Interrupt at once, or later if some of these end by themselves."""
        if any(isinstance(command, _ENDS_BY_ITSELF) for command in commands):
            self._interrupt_timer.start()
        else:
            self._interrupt()

    def close(self) -> None:
        """Let the engine end, without waiting for it. `lost` is not emitted."""
        raise NotImplementedError

    def wait_closed(self) -> None:
        """Wait until all engines that `close` was called for have ended: at most 3 s, and for the
        end of the program only."""

    # -- for subclasses --------------------------------------------------------------------------

    def _set_state(self, state: LinkState) -> None:
        if state != self.state:
            self.state = state
            if state != "starting":
                (self.became_ready if state == "ready" else self.ended).emit()
            self.state_changed.emit(state)

    def _sent(self, command_id: int, command: Command) -> None:
        self._unanswered[command_id] = command
        if isinstance(command, RunCellCommand | RunFileCommand):
            self._code = command_id
        if len(self._unanswered) == 1:
            self.busy_changed.emit(True)

    def _receive(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, DoneSnapshot):
            self._ended(snapshot.reply_to)
            return
        if snapshot.reply_to == self._code and isinstance(snapshot, _AT_END):
            self._code = 0
        if isinstance(snapshot, HeldSnapshot):
            self._is_held = bool(snapshot.at)
        if isinstance(snapshot, TrainingSnapshot):
            self._checkpoint_step = snapshot.checkpoint_step if snapshot.checkpoint else None
            self._follow(snapshot)
            if snapshot.state == "stopped":
                self._stop_waiting()  # it has stopped: its processes may take longer to end
        self.snapshot.emit(snapshot)
        if snapshot.reply_to in self._asked:
            answered, failed = self._asked[snapshot.reply_to]
            if isinstance(snapshot, ErrorSnapshot):
                failed(snapshot.error)
            else:
                answered(snapshot)
        if isinstance(snapshot, ReadySnapshot):
            self._set_state("ready")

    def _follow(self, run: TrainingSnapshot) -> None:
        """A run that was begun before this window came is a job of this window's too."""
        is_going = run.state in ("running", "paused")
        if is_going and self.is_served and 0 < run.reply_to not in self._unanswered:
            self._sent(run.reply_to, TrainCommand(model=Model(), training=TrainingSetup()))

    def _ended(self, command_id: int) -> None:
        self._asked.pop(command_id, None)
        ended = self._unanswered.pop(command_id, None)
        self._stopping.discard(command_id)
        if not self._stopping:
            self._stop_waiting()
        if ended is not None and not self._unanswered:
            self.busy_changed.emit(False)

    def _forget(self) -> None:
        """The engine has ended, or was left: drop the commands that it has not answered."""
        self.attached, self._is_held = None, False
        self._asked.clear()
        self._stopping.clear()
        self._stop_waiting()
        self._checkpoint_step = None
        if self._unanswered:
            self._unanswered.clear()
            self.busy_changed.emit(False)

    def _running(self) -> tuple[str, int | None]:
        """In words, what the engine is doing; and the step of the run's last checkpoint."""
        kinds = [type(command) for command in self._unanswered.values()]
        if any(issubclass(kind, TrainCommand) for kind in kinds):
            return _WORDS[TrainCommand], self._checkpoint_step
        return (_WORDS.get(kinds[0], "") if kinds else ""), None

    def _give_up(self) -> None:
        """Called if the job has not stopped: a subclass kills the engine if it can."""
        raise NotImplementedError

    def _interrupt(self) -> None:
        self.signal(InterruptSignal(command=self._interrupted))

    def _stop_waiting(self) -> None:
        self._interrupt_timer.stop()
        self._kill_timer.stop()

    def _timer(self, interval_ms: int, slot) -> QTimer:
        timer = QTimer(self, singleShot=True, interval=interval_ms)
        timer.timeout.connect(slot)
        return timer
