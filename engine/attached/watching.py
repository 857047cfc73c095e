"""What a script calls: `watch`, `log`, `hold` and `backward`. Without a window they cost next to
nothing, and nothing that goes wrong in them reaches the user's code."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
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
from ..loops.backward_calls import backward_calls
from ..loops.hooks import Gate, Steps, steps_shown
from ..loops.logged import histogram as histogram
from ..loops.logged import image as image
from ..protocol import RankPlacesSnapshot
from ..recording.user_files import variables_of
from ..version import version
from .about import about_this
from .attached_session import FLUSH_S, AttachedSession
from .discovery import found_for
from .figures import Newest
from .notebooks import follow_cells
from .opening import has_display, open_window
from .rank_places import RankPlaces
from .windows import Seat


class Watching(Steps):
    """What this process shows to windows that attach. Its steps are those of the thread that made
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
        """That of this process, which is about to end; None if that is not known."""
        self.is_awake = True
        """Whether the step that runs now is shown to the session."""
        self._gate = Gate(is_shut=True, ended=self._end_step)
        """The session's: it shuts it while there is nothing to do in a step."""
        self._seat = Seat()
        self._rank_places = RankPlaces(self.about, self._tell_places)
        self._places: RankPlacesSnapshot | None = None
        self._attaching = threading.Lock()
        self._attached = threading.Event()
        self._hooks = ExitStack()
        self._hooks.enter_context(
            steps_shown(
                self, gate=self._gate, unless=self._is_unseen, take_backward=self._step_backward
            )
        )
        try:
            self.listener = Listener(
                self.about, self._admit, self._came, host, port, missed=self._seat.leave
            )
        except BaseException:
            self._hooks.close()
            raise
        atexit.register(self.close)
        self._rank_places.begin()
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
        self._rank_places.close(FLUSH_S)
        if self.session is not None:
            self._end_logged_step(self.session)
            # Set when an exception has ended the script; at a prompt, by an older one.
            is_interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
            error = None if is_interactive else getattr(sys, "last_value", None)
            self.session.close(error, 1 if error is not None else self.exit_code)
        self._hooks.close()

    # -- in the user's thread --------------------------------------------------------------------

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        session = self.session
        if session is not None:
            try:
                session.before_step(optimizer, has_closure)
            except Exception as error:
                _tell_once("watch", error)

    def _end_step(self, optimizer: Optimizer) -> None:
        """A step has ended that is not only to be counted; if it is shown, `after_step` has been
        called."""
        session, gate = self.session, self._gate
        if session is not None and session.is_working:
            return
        gate.steps += 1
        self.has_stepped = True
        self._rank_places.begin()
        if session is None:
            with self._attaching:  # a window that comes now opens the gate again
                if self.session is None:
                    gate.is_shut, gate.due_s = True, inf
                    gate.rest()
            return
        try:
            self.is_awake = session.is_awake()
        except Exception as error:
            _tell_once("watch", error)

    def _discover(self, optimizer: Optimizer, *step: object) -> None:
        if optimizer in self._known or threading.get_ident() != self._thread:
            return
        try:
            self._known.add(optimizer)
            for name, thing in found_for(optimizer, self._living()).items():
                self.name(name, thing)
        except Exception as error:
            _tell_once("watch", error)

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        session = self.session
        if self._discovers:
            self._discover(optimizer)  # before windows are told of the step
        try:
            if session is not None:
                session.after_step(optimizer, has_closure)
        except Exception as error:
            _tell_once("watch", error)

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        session = self.session
        if session is not None:
            session.saw_loss(loss, root)

    def _step_backward(self, *args: Any, **kwargs: Any) -> bool:
        session = self.session
        if session is None or not session.steps_backward:
            return False
        return session.step_backward(*args, **kwargs)

    def _is_unseen(self) -> bool:
        session = self.session
        return session is None or not self.is_awake or session.is_working

    def log(self, figures: Mapping[str, Any], step: int | None) -> None:
        session, steps = self.session, self._gate.steps
        try:
            if session is None:
                self._early.update(figures)
            elif self.is_awake or not session.logged.pass_by(figures, steps, step):
                began_s = perf_counter()
                if not self.has_stepped:
                    self._early.update(figures)
                    step = self._logged_step(session, figures, step)
                session.reach()
                session.logged.add(figures, self.steps, step, self.is_awake)
                session.spend(perf_counter() - began_s)
        except Exception as error:
            _tell_once("log", error)

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
        return nullcontext() if session is None else session.stepping_backward()

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
            self._rank_places.begin()
            self._rank_places.want()
            if session is None or not session.add(connection, role, self._places):
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
                )
                session.be_idle(self._is_idle)
                session.add(connection, role, self._places)
                self.session = session
                self.is_awake = True
                self._gate.open()
            self._attached.set()

    def _tell_places(self, places: RankPlacesSnapshot) -> None:
        with self._attaching:  # a window that comes now is told them, or comes before
            self._places = places
            session = self.session
        if session is not None:
            session.tell(places)

    def _set_idle(self, is_idle: bool) -> None:
        """A cell of a notebook has ended, or begins: when what is being answered has been."""
        self._is_idle = is_idle
        session = self.session
        if session is not None:
            if is_idle:  # what was logged last would wait for another step
                with _shielded("watch"):
                    self._end_logged_step(session)
                    session.catch_up()
            session.be_idle(is_idle)

    def _ended(self, session: AttachedSession) -> None:
        with self._attaching:  # a window that comes now has begun another session, or will
            if self.session is session:
                self.session = None
                self._gate.is_shut = True
                self._attached.clear()

    def _living(self) -> dict[str, Any]:
        found = ((name, refer()) for name, refer in list(self._objects.items()))
        return {name: thing for name, thing in found if thing is not None}


_watching: Watching | None = None


def watch(
    model: nn.Module | None = None,
    optimizer: Optimizer | None = None,
    *,
    name: str = "",
    host: str = "",
    port: int = 0,
    wait: bool = False,
    spawn: bool = False,
    discover: bool = False,
) -> None:
    """Let windows attach to this process, and show them the model and the optimizer by name.

    `name` is the model's there, and the process's if this is the first call (else those of the
    variable, and of the script or notebook). With `host` it listens on TCP, on the loopback
    interface, for `port`. `spawn` opens a window, if there is a display; `wait`: go on when one has
    attached.
    `discover` finds the models of the optimizers that step. Call it in the thread that trains. The
    objects are not kept alive.
    """
    global _watching
    with _shielded("watch"):
        watching, is_new = _watching, False
        if watching is None or watching.about.pid != os.getpid():
            is_new = True
            watching = _watching = Watching(name, version(), host, port)
        if discover:
            watching.discover()
        variables = variables_of(sys._getframe(1))
        if model is not None:
            watching.name(name or _name_of(model, variables) or "model", model)
        if optimizer is not None:
            watching.name(_name_of(optimizer, variables) or "optimizer", optimizer)
        if is_new:  # a window that comes is told what is watched
            _say_where(watching)
            if spawn and has_display():
                open_window(*_where(watching))
    if wait and _watching is not None:
        _watching.wait()


def log(step: int | None = None, **figures: Any) -> None:
    """Draw these figures: numbers, or tensors of one element. Of a larger tensor, and of
    `histogram(tensor)`, the elements are drawn over the steps; of `image(tensor)` the images are
    shown.
    What is logged after `optimizer.step()` is drawn at that step, and what is logged before it at
    the step that comes, as this process counts them; or both at `step`, unless these figures were
    drawn further on. Of many short steps some are drawn.
    In a script in which no optimizer of torch's steps, a call that logs a figure again begins the
    next step: number `step`, if that is larger than the one before.
    """
    watching = _watching
    if watching is None:
        return
    if watching.session is not None or not watching.has_stepped:
        watching.log(figures, step)


def hold(when: object = True) -> None:
    """Hold the script here while a window looks at its variables, if one is attached. `when` is a
    condition, or a function that gives one. Only the thread that has called `watch` is held."""
    watching = _watching
    if watching is None or not watching.may_hold():
        return
    with _shielded("hold"):
        if bool(when() if callable(when) else when):
            watching.hold(sys._getframe(1))


class backward:
    """`with lab.backward(loss):` runs `loss.backward()`, and lets the window step it if one is
    attached. If the body calls `loss.backward()` itself, with arguments of its own, that one is
    stepped."""

    def __init__(self, loss: Tensor, **arguments: Any) -> None:
        self._loss, self._arguments = loss, arguments
        self._stack = ExitStack()

    def __enter__(self) -> None:
        self._has_run = False
        if _watching is not None:
            self._stack.enter_context(_watching.stepping_backward())
        self._stack.enter_context(backward_calls(self._note))

    def _note(self, tensors: Any, *args: Any, **kwargs: Any) -> bool:
        roots = tensors if isinstance(tensors, list | tuple) else (tensors,)
        self._has_run |= any(root is self._loss for root in roots)
        return False

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._stack:
            if kind is None and not self._has_run:
                self._loss.backward(**self._arguments)


def _newest() -> Mapping[str, Tensor]:
    session = None if _watching is None else _watching.session
    return {} if session is None else session.logged.newest()


logged = Newest(_newest)
"""Copies of the newest tensors that were logged while a window is attached, by name."""


def tell_exit_code(code: int) -> None:
    """This process is about to end with this code."""
    if _watching is not None:
        _watching.exit_code = code


_told: set[str] = set()


@contextmanager
def _shielded(what: str) -> Iterator[None]:
    """An error of ours is told once, and never raised into the user's code."""
    try:
        yield
    except Exception as error:
        _tell_once(what, error)


def _tell_once(what: str, error: Exception) -> None:
    words = f"tensorlab.{what}: {error}"
    if words not in _told:
        _told.add(words)
        logging.getLogger("tensorlab").warning(words)


def _say_where(watching: Watching) -> None:
    print("Tensor Lab: tensorlab attach", *_where(watching), file=sys.stderr)


def _where(watching: Watching) -> tuple[object, ...]:
    """What `tensorlab attach` is given."""
    listener = watching.listener
    return (listener.address, "--key", listener.key) if listener.key else (watching.about.pid,)


def _name_of(thing: object, variables: Mapping[str, Any]) -> str:
    return next((name for name, value in variables.items() if value is thing), "")
