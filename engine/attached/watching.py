"""What a process that is watched shows to the windows that attach to it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from math import inf
from multiprocessing.connection import Connection
from time import perf_counter
from types import FrameType
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from ..connecting.greeting import Hello, Refusal, Role, Welcome
from ..connecting.listener import Listener
from ..loops.hooks import Gate, Steps, steps_shown
from ..loops.logged import histogram as histogram
from ..loops.logged import image as image
from ..loops.step_losses import StepLosses, know_all_optimizers
from .about import about_this
from .attached_session import AttachedSession
from .discovery import found_for
from .group_end import pause_before_group_ends
from .notebooks import follow_cells
from .telling import shielded, tell_once
from .windows import Seat


class Watching(Steps):
    """The side of this process to which windows attach. Its steps are those of the thread that made
    it. `name` as in `about_this`."""

    def __init__(self, name: str, version: str, host: str = "", port: int = 0) -> None:
        self.about = about_this(name, version)
        self._thread = threading.get_ident()
        self._objects: dict[str, weakref.ref[Any]] = {}
        self._discovers = False
        self._known = weakref.WeakSet[Optimizer]()
        self.has_stepped = False
        """Whether an optimizer has."""
        self._early: set[str] = set()  # names that were logged before
        # Without one, what is logged is the steps: the number of the one that goes on, what its
        # script has called it, and the names in it.
        self._logged: int | None = None
        self._given: int | None = None
        self._named: set[str] = set()
        self.session: AttachedSession | None = None
        """None while no window is attached."""
        self.exit_code: int | None = None
        """The exit code of this process, which is about to end; None if that is not known."""
        self.is_awake = True
        """Whether the step that runs now is shown to the session."""
        self._shown_to: AttachedSession | None = None  # that step, from its beginning on
        self._gate = Gate(is_shut=True, ended=self._end_step)
        """The session's: it shuts it while there is nothing to do in a step."""
        self._seat = Seat()
        self._attaching = threading.Lock()
        self._attached = threading.Event()
        self._hooks = ExitStack()
        self._losses = StepLosses(is_begun_inside=True)
        know_all_optimizers()  # those that there were before
        self._hooks.enter_context(
            steps_shown(
                self,
                gate=self._gate,
                unless=self._is_unseen,
                take_backward=self._step_backward,
                losses=self._losses,
            )
        )
        self._hooks.enter_context(pause_before_group_ends())
        try:
            self.listener = Listener(
                self.about, self._admit, self._came, host, port, missed=self._seat.leave
            )
        except BaseException:
            self._hooks.close()
            raise
        atexit.register(self.close)
        self._is_idle = False
        follow_cells(partial(self._set_idle, False), partial(self._set_idle, True))

    def name(self, name: str, thing: nn.Module | Optimizer) -> None:
        """Let windows know the object by this name, as long as the user's code keeps it."""
        self._objects[name] = weakref.ref(thing)

    @property
    def steps(self) -> int:
        """The steps that this process has done."""
        return self._gate.steps

    def discover(self) -> None:
        """Look for the models of the optimizers that step, from now on."""
        if not self._discovers:
            self._discovers = True
            self._hooks.callback(register_optimizer_step_post_hook(self._discover).remove)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until a window is attached; False if none has come in time."""
        return self._attached.wait(timeout_s)

    def close(self) -> None:
        """Listen no more, and let windows go. For the thread that made this."""
        atexit.unregister(self.close)
        if os.getpid() != self.about.pid:
            return  # a forked process: the socket is its parent's
        self.listener.close()
        if self.session is not None:
            self._end_logged_step(self.session)
            # Set when an exception has ended the script; at a prompt, by an older one.
            is_interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
            error = None if is_interactive else getattr(sys, "last_value", None)
            self.session.close(error, 1 if error is not None else self.exit_code)
        self._hooks.close()

    # -- in the user's thread --------------------------------------------------------------------

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        session = self._shown_to = self.session if self.is_awake else None
        if session is not None:
            try:
                session.steps.before_step(optimizer, has_closure)
            except Exception as error:
                tell_once("watch", error)

    def _end_step(self, optimizer: Optimizer, is_missed: bool) -> None:
        """A step has ended that is not only to be counted; if it is shown, `after_step` has been
        called."""
        session, gate = self.session, self._gate
        gate.steps += 1
        self.has_stepped = True
        if session is None:
            with self._attaching:  # a window that comes now opens the gate again
                if self.session is None:
                    gate.is_shut, gate.due_s = True, inf
                    gate.rest()
            return
        try:
            self.is_awake = session.steps.is_awake()
        except Exception as error:
            tell_once("watch", error)

    def _discover(self, optimizer: Optimizer, *step: object) -> None:
        if optimizer in self._known or threading.get_ident() != self._thread:
            return
        try:
            self._known.add(optimizer)
            for name, thing in found_for(optimizer, self._living()).items():
                self.name(name, thing)
        except Exception as error:
            tell_once("watch", error)

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        session = self.session
        if self._discovers:
            self._discover(optimizer)  # before windows are told of the step
        try:
            if session is not None and session is self._shown_to:
                session.after_step(optimizer, has_closure)
        except Exception as error:
            tell_once("watch", error)

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        session = self.session
        if session is not None:
            session.steps.saw_loss(loss, root)

    def _step_backward(self, *args: Any, **kwargs: Any) -> bool:
        session = self.session
        if session is None or not session.steps.steps_backward:
            return False
        return session.step_backward(*args, **kwargs)

    def _is_unseen(self) -> bool:
        session = self.session
        return session is not None and session.is_working

    def log(self, figures: Mapping[str, Any], step: int | None) -> None:
        session, steps = self.session, self._gate.steps
        try:
            if session is None:
                self._early.update(figures)
            elif self.is_awake or not session.steps.logged.pass_by(figures, steps, step):
                began_s = perf_counter()
                if not self.has_stepped:
                    self._early.update(figures)
                    step = self._logged_step(session, figures, step)
                session.steps.reach()
                session.steps.logged.add(figures, self.steps, step, self.is_awake)
                session.steps.spend(perf_counter() - began_s)
        except Exception as error:
            tell_once("log", error)

    def _logged_step(
        self, session: AttachedSession, figures: Mapping[str, Any], step: int | None
    ) -> int:
        """The number of the step that these figures are in, if no optimizer steps: one that is
        logged again, or another number of the script's, begins the next."""
        if step not in (None, self._given) or not self._named.isdisjoint(figures):
            self._end_logged_step(session)
        self._given = self._given if step is None else step
        self._named.update(figures)
        self._logged = max(self.steps + 1, self._logged or 0, step or 0)
        return self._logged

    def _end_logged_step(self, session: AttachedSession) -> None:
        """What was logged before is a step, if no optimizer of torch's has ever stepped."""
        is_here = threading.get_ident() == self._thread and not session.is_working
        if self._logged is not None and not self.has_stepped and is_here:
            self._gate.steps, self._logged = self._logged, None
            self._named.clear()
            session.after_log()

    def may_hold(self) -> bool:
        """Whether a window is attached, and this is the thread of this process that is held."""
        return (
            self.session is not None
            and threading.get_ident() == self._thread
            and os.getpid() == self.about.pid
        )

    def hold(self, frame: FrameType) -> None:
        session = self.session
        if session is not None:
            session.hold(frame)

    def stepping_backward(self) -> AbstractContextManager[None]:
        """In this context the backward passes of the user's code are stepped by the window."""
        session = self.session
        if session is None:
            return nullcontext()
        return session.steps.stepping_backward(session.has_steering())

    # -- windows: threads of the listener's and of each window's ---------------------------------

    def _admit(self, hello: Hello) -> Welcome | Refusal:
        if hello.version != self.about.version:
            return Refusal(
                f"This process has Tensor Lab {self.about.version}, your window {hello.version}:"
                " use the same one."
            )
        models = [name for name, thing in self._living().items() if isinstance(thing, nn.Module)]
        return Welcome(self.about, self._seat.take(hello.wants), tuple(models))

    def _came(self, connection: Connection, role: Role) -> None:
        with self._attaching:
            session = self.session
            if session is None or not session.add(connection, role):
                self._gate.patch()  # before the losses of a step are followed
                main = vars(sys.modules["__main__"])
                session = AttachedSession(
                    self.about.name,
                    main,
                    self._living,
                    self._thread,
                    self._gate,
                    self._ended,
                    self._early,
                    self._seat,
                    self._losses,
                )
                session.be_idle(self._is_idle)
                session.add(connection, role)
                self.session = session
                self.is_awake = True
                self._gate.open()
            self._attached.set()

    def _set_idle(self, is_idle: bool) -> None:
        """A cell of a notebook has ended, or begins: when what is being answered has been."""
        self._is_idle = is_idle
        session = self.session
        if session is not None:
            if is_idle:  # what was logged last would wait for another step
                with shielded("watch"):
                    self._end_logged_step(session)
                    session.steps.catch_up()
            session.be_idle(is_idle)

    def _ended(self, session: AttachedSession) -> None:
        with self._attaching:  # a window that comes now has begun another session, or will
            if self.session is session:
                self.session = None
                self._losses.end()
                self._gate.is_shut = True
                self._attached.clear()

    def _living(self) -> dict[str, Any]:
        found = ((name, refer()) for name, refer in list(self._objects.items()))
        return {name: thing for name, thing in found if thing is not None}
