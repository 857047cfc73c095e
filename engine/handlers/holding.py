"""The user's code that runs: its loops are shown, and it is held, in cells and in files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType

from torch import nn

from ..advice.adviser import Adviser
from ..console.debugging import LineSteps, breakpoints_held
from ..console.held import HeldCode
from ..console.namespace import Namespace
from ..console.output import Output
from ..console.variables import list_variables
from ..errors import error_report
from ..lab import Lab
from ..loops.hooks import Steps, steps_shown
from ..loops.own_loop import OwnLoop
from ..loops.watching import Watching
from ..project.subject import ConsoleSubject
from ..protocol import FindingSnapshot, HeldAt, HeldSnapshot
from ..recording.light_recorder import LightRecorder
from ..recording.user_files import UsersFrames, is_user_file
from ..subjects.python_file import Around


class Holder:
    """Holds the code of a cell or file, `title`, that runs in this thread and began in `namespace`.
    Meanwhile the lab looks at the variables of its frame, and commands are answered."""

    def __init__(self, lab: Lab, namespace: Namespace, title: str, output: Output) -> None:
        self._lab, self._namespace = lab, namespace
        self._title, self._output = title, output
        self._frames = UsersFrames()
        self._is_holding = False
        self.has_held = False
        self.lines = LineSteps(lambda frame: self.hold(frame, "line"))

    def at_step(self) -> None:
        """Hold after an optimizer step."""
        frame = self._frames.innermost()
        if frame is not None:
            self.hold(frame, "step")

    def hold(self, frame: FrameType, at: HeldAt) -> None:
        """Hold the code in this frame until it is to go on. Code that the user runs meanwhile is
        not held. Raises KeyboardInterrupt if it is interrupted."""
        lab, control = self._lab, self._lab.control
        if self._is_holding or lab.attend is None:
            return
        self.lines.end()
        held = HeldCode(self._namespace, frame)
        control.goes_on, self._is_holding, self.has_held = "", True, True
        try:
            with control.own_code(), held.suspended(), lab.console.held_at(held, self._output):
                self._output.flush()
                lab.emit(held.snapshot(at, self._title))
                lab.emit(list_variables(held.namespace, control))
                while not (control.goes_on or control.interrupted):
                    lab.attend()
                lab.emit(HeldSnapshot())
        finally:
            self._is_holding = False
        if control.goes_on == "line":
            self.lines.begin(frame)


@contextmanager
def shown_and_held(
    lab: Lab, namespace: Namespace, title: str, output: Output
) -> Iterator[tuple[OwnLoop, Holder]]:
    """While this context is open, the loops of the user's code in this thread are shown and, if it
    is recorded, looked over; it is held at breakpoints and, if it is to pause, after optimizer
    steps."""
    holder = Holder(lab, namespace, title, output)
    loop = OwnLoop(
        f"Loop in {title}",
        lab.control,
        lab.emit,
        namespace.lab.take_figures,
        namespace.name_of,
        None if lab.attend is None else holder.at_step,
        _watching(lab),
    )
    watching: list[Steps] = [] if lab.is_training else [loop]  # Train shows one run at a time
    with ExitStack() as stack:
        if namespace.records:
            adviser = Adviser(
                lambda found: lab.emit(FindingSnapshot(finding=found)), namespace.variables
            )
            watching.append(adviser)
            stack.callback(adviser.end)
            recorder = partial(LightRecorder, told=adviser.told)
            stack.enter_context(namespace.recorded_by(recorder))
        stack.enter_context(steps_shown(*watching))
        if lab.attend is not None:
            stack.enter_context(breakpoints_held(lambda frame: holder.hold(frame, "line")))
            stack.callback(holder.lines.end)
        yield loop, holder


def _watching(lab: Lab) -> Watching | None:
    """What is watched in the code that runs next. A variable that holds another module by now is
    watched in its place."""
    watching = lab.subjects.watching if "subjects" in vars(lab) else None
    if watching is None or not watching.paths:
        return None
    if isinstance(watching.subject, ConsoleSubject):
        module = lab.console.namespace.variables.get(watching.subject.expression.strip())
        if isinstance(module, nn.Module):
            watching.follow(watching.subject, module)
    watching.begin()
    return watching


@contextmanager
def seen_and_held(lab: Lab, path: Path, output: Output) -> Iterator[Around]:
    """What a file runs in: its calls are recorded, as those of a cell, its loops shown and held.
    The end of its loop is told here; an error is not caught."""
    loop: OwnLoop | None = None
    has_held = False

    @contextmanager
    def around(module: ModuleType) -> Iterator[None]:
        nonlocal loop, has_held
        namespace = lab.console.namespace.of_module(module)
        with shown_and_held(lab, namespace, path.name, output) as (loop, holder):
            try:
                with namespace.recorded(str(path)):
                    yield
            finally:
                has_held = holder.has_held

    error: BaseException | None = None
    try:
        yield around
    except BaseException as raised:
        error = raised
        raise
    finally:
        last = None
        if loop is not None:
            report = None if error is None else error_report(error, is_user_file)
            last = loop.last(error, report)
        if last is not None:
            lab.emit(last)
        if has_held:
            lab.emit(list_variables(lab.console.namespace, lab.control))
