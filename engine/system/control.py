"""Flags that other threads set while the engine's thread works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from ..project.document import HoldWhen
from .errors import CodeExit

GoesOn = Literal["", "on", "step", "line", "op", "module", "phase", "batch"]
"""Not at all, to its end, to the next optimizer step, or to the next line; a step of Train also to
its next call or node, to the end of a module, or to that of its phase."""


class _Pause(threading.Event):
    """Tells of its being set."""

    def __init__(self, told: Callable[[], object]) -> None:
        super().__init__()
        self._told = told

    def set(self) -> None:
        super().set()
        self._told()


@dataclass
class Control:
    """The flags of one engine: stop, pause, and whether the user's code is running.

    `mark` is the id of the newest command at the time of the last signal. A signal is meant for
    that command and older ones, so a command with a higher id starts with clear flags.
    `stopped` has the ids of commands that are to end alone, or not to begin. `running` are those
    that the main thread works on, each inside of the one before; `training` is that of the run, 0
    without one.
    `interrupted`: an interrupt came while the lab's own code ran inside the user's; `interrupts` is
    the command that it was for, 0 for whichever runs. `raised`: the newest that was raised.
    `goes_on`: how far the code that is held is to run; `holds_run`: it is a step of Train.
    `steps_backward`: it is to be held in its backward().
    `hold_when`: what holds its loops. `pause_at`: the step after which `reach` pauses; 0 for none.
    `asked` is called, by any thread, where `pause` is set, or `steps_backward` or `hold_when`
    changed for a loop that runs: its next step is to be looked at.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    pause: threading.Event = field(init=False)
    mark: int = 0
    in_user_code: bool = False
    in_own_code: bool = False
    stopped: set[int] = field(default_factory=set)
    running: list[int] = field(default_factory=list)
    training: int = 0
    interrupted: bool = False
    interrupts: int = 0
    raised: KeyboardInterrupt | None = None
    goes_on: GoesOn = ""
    holds_run: bool = False
    steps_backward: bool = False
    hold_when: HoldWhen = field(default_factory=HoldWhen)
    pause_at: int = 0
    interrupt: Callable[[], None] = lambda: None  # raises KeyboardInterrupt in the user's code
    asked: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.pause = _Pause(lambda: self.asked())

    def clear_before(self, command_id: int) -> None:
        """Clear the flags if their signals came before the command `command_id`."""
        if self.mark < command_id:
            self.stop.clear()
            self.pause.clear()

    def pause_after(self, step: int) -> None:
        """Pause after this step, or the next one that is reached; 0: at once."""
        if step:
            self.pause_at = step
        else:
            self.pause.set()

    def pauses_by(self, step: int) -> bool:
        """Whether the code is to be held after this step, or before."""
        return self.pause.is_set() or 0 < self.pause_at <= step

    def reach(self, step: int) -> None:
        """The code is after this step."""
        if self.pauses_by(step):
            self.pause_at = 0
            self.pause.set()

    def stops(self, command_id: int) -> bool:
        """Whether this command is to end alone. Commands have ids from 1; without a window 0."""
        return command_id > 0 and command_id in self.stopped

    @contextmanager
    def runs(self, command_id: int) -> Iterator[None]:
        """In this context the main thread works on this command. An interrupt that was for it alone
        ends nothing else afterwards."""
        self.running.append(command_id)
        try:
            yield
        finally:
            self.running.pop()
            if self.interrupts == command_id > 0 and command_id not in self.running:
                self.interrupted, self.interrupts = False, 0

    def interrupt_now(self, command_id: int) -> None:
        """An interrupt has come, in the main thread: for this command, or with 0 for whichever
        runs. Raises KeyboardInterrupt in the user's code; in the lab's own code that runs inside of
        it this is done later."""
        if command_id and command_id not in self.running:
            return
        if self.in_user_code and command_id in (0, *self.running[-1:]):
            self.raise_interrupt()
        if self.in_user_code or self.in_own_code:
            self.interrupted, self.interrupts = True, command_id

    def raise_interrupt(self) -> NoReturn:
        self.raised = KeyboardInterrupt()
        raise self.raised

    def let_go(self) -> None:
        """Nobody is there to look at code that is held: it goes on, and nothing holds it again."""
        self.steps_backward, self.hold_when, self.pause_at = False, HoldWhen(), 0
        self.pause.clear()
        self.goes_on = "on"

    @contextmanager
    def user_code(self) -> Iterator[None]:
        """Mark that the user's code runs: an InterruptSignal raises KeyboardInterrupt in it.

        Raises CodeExit where the code raises what would end the engine: SystemExit, for example.
        """
        self.in_user_code = True
        self.interrupted = self.interrupted and self.in_own_code  # else it was for other code
        try:
            yield
        except (Exception, KeyboardInterrupt, GeneratorExit):  # the last: a generator is closed
            raise
        except BaseException as error:
            raise CodeExit(error) from error
        finally:
            self.in_user_code = False

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        """Run the block as the user's code, and interrupt it after `seconds`: raises TimeoutError.

        Code that holds the GIL is not interrupted, nor any in a session without a process.
        """
        late = threading.Event()

        def end() -> None:
            late.set()
            self.interrupt()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            with self.user_code():
                yield
        except KeyboardInterrupt:
            if late.is_set():
                self.interrupted = False
                raise TimeoutError(f"it took longer than {seconds:g} s") from None
            raise
        finally:
            timer.cancel()
            timer.join()

    @contextmanager
    def own_code(self) -> Iterator[None]:
        """Mark that the lab's own code runs inside `user_code`: an interrupt does not stop it
        midway, but raises KeyboardInterrupt at its end. For the engine's main thread."""
        outside = self.in_user_code, self.in_own_code
        self.in_own_code = any(outside)
        self.in_user_code = False
        try:
            yield
        finally:
            self.in_user_code, self.in_own_code = outside
        if self.interrupted and self.in_user_code:
            self.interrupted, self.interrupts = False, 0
            self.raise_interrupt()
