"""The user's code that runs: its loops are shown, and it is held, in cells and in files."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from types import FrameType, ModuleType
from typing import Any

from ..advice.adviser import Adviser
from ..autograd.backward.backward_pass import BackwardPass
from ..autograd.backward.own_call import CallSubject, arguments_of
from ..autograd.backward.release import free_saved
from ..console.breakpoint_calls import LineSteps, breakpoints_held
from ..console.held import HeldCode
from ..console.namespace import Namespace
from ..console.output import Output
from ..console.variables import list_variables
from ..loops.hooks import is_out_of_reach, steps_shown
from ..loops.loop_looks import LoopLooks, Tables
from ..loops.own_loop import OwnLoop
from ..loops.rest import Rest
from ..loops.step_losses import StepLosses
from ..loops.user_names import UserNames
from ..loops.watching import Watching
from ..protocol import FindingSnapshot, HeldAt, HeldSnapshot
from ..recording.light.light_recorder import LightRecorder
from ..recording.light.light_recording import LightRecording
from ..subjects.python_file import Around
from ..system.errors import LabError, error_report
from ..system.user_files import UsersFrames, forget, is_user_file
from .lab import Lab
from .pass_control import pass_control_maker


class Holder:
    """Holds the code of a cell or file, `title`, that runs in this thread and began in `namespace`.
    Meanwhile the lab looks at the variables of its frame, and commands are answered."""

    at_backward = ""
    """Where it is held in its backward(), in place of the line."""

    def __init__(
        self,
        lab: Lab,
        namespace: Namespace,
        title: str,
        output: Output,
        losses: StepLosses | None = None,
    ) -> None:
        self._lab, self._namespace = lab, namespace
        self._title, self._output = title, output
        self._frames = UsersFrames()
        self._is_holding = self._is_answering = False
        self.has_held = False
        self.lines = LineSteps(lambda frame: self.hold(frame, "line", is_traced=True))
        self.rest = Rest(self.may_hold)
        self.names = UserNames(namespace.with_named)
        self.loop = OwnLoop(
            f"Loop in {title}",
            lab.control,
            lab.emit,
            self.names.of,
            self.names.of_loss,
            None if lab.attend is None else self._hold_at_step,
            watching_of(lab),
            namespace.lab.numbers,
            lambda: namespace.lab.tensors.has_images,
            losses,
        )

    def hold(self, frame: FrameType, at: HeldAt, is_traced: bool = False, after: str = "") -> None:
        """Hold the code in this frame until it is to go on; `is_traced`: Python calls a trace
        function there; `after` says what has run. Code that the user runs meanwhile is not held.
        Raises KeyboardInterrupt if it is interrupted."""
        if self._is_holding:
            return
        with self._looking_at(frame, at, after):
            self._attend()
        if not is_traced:
            forget(frame)
        if self._lab.control.goes_on == "line":
            self.lines.begin(frame)

    def may_hold(self) -> bool:
        """Whether the user has asked for this code to be held, or it was."""
        control = self._lab.control
        return self.has_held or control.steps_backward or control.pause.is_set()

    def _hold_at_step(self, at: HeldAt) -> None:
        frame = self._frames.innermost()
        if frame is not None:
            self.hold(frame, at)

    @contextmanager
    def _looking_at(self, frame: FrameType, at: HeldAt, after: str = "") -> Iterator[HeldCode]:
        lab, control = self._lab, self._lab.control
        began_s = perf_counter()
        self.lines.end()
        recording = self._namespace.recordings.running
        if isinstance(recording, LightRecording):
            recording.break_off()
        held = HeldCode(self._namespace, frame)
        control.goes_on, self._is_holding, self.has_held = "", True, True
        try:
            with (
                control.own_code(),
                held.suspended(),
                lab.console.held_at(held, self._output),
                lab.backward.apart(),
            ):
                self._output.flush()
                self.rest.reach()
                if at not in ("step", "update"):
                    self.loop.catch_up()
                lab.emit(held.snapshot(at, self._title, after))
                lab.emit(list_variables(held.namespace, control))
                try:
                    yield held
                finally:
                    lab.emit(HeldSnapshot())
        finally:
            self._is_holding = False
            self.loop.leave_out(perf_counter() - began_s)

    def _attend(self) -> None:
        """Answer commands until the code is to go on."""
        control = self._lab.control
        while self._lab.attend is not None and not (control.goes_on or control.interrupted):
            self._lab.attend()

    # -- backward() of the user's code -----------------------------------------------------------

    def step_backward(
        self,
        tensors: Any,
        grad_tensors: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        grad_variables: Any = None,
        inputs: Any = None,
    ) -> bool:
        """Hold at the root of this call of `torch.autograd.backward`, if that is wanted, and let
        the window step it. Then run the nodes that are left. Returns whether the call is done;
        raises what its nodes raise.

        The call is done as torch does it: `.grad`s, hooks and random numbers. Steps back, edits and
        what is typed meanwhile are the user's changes.
        """
        if not self._steps_backward or self._is_holding:
            return False
        frame = self._frames.innermost()
        arguments = arguments_of(tensors, grad_tensors)
        if frame is None or arguments is None:
            return False
        if inputs is not None or grad_variables is not None:
            self._tell_not_stepped(frame, "backward(inputs=…) is not stepped")
            return False
        with self._looking_at(frame, "backward", self.at_backward) as held:
            try:
                stepped = self._begin_pass(held, *arguments, create_graph)
            except (LabError, ValueError, TypeError, RuntimeError) as error:
                self._tell_not_stepped(frame, f"backward() cannot be stepped: {error}")
                return False
            self._attend_pass(stepped)
            while not self._lab.control.interrupted and not self._has_run(stepped):
                self._attend_pass(stepped)
            keeps = create_graph if retain_graph is None else retain_graph
            if not self._lab.control.interrupted and not keeps:
                free_saved(stepped.stepper.graph)
        forget(frame)
        if self._lab.control.goes_on == "line":
            self.lines.begin(frame)
        return True

    @property
    def _steps_backward(self) -> bool:
        return self._lab.control.steps_backward

    def _attend_pass(self, stepped: BackwardPass) -> None:
        """The window steps the pass until the code is to go on."""
        self._attend()

    def _has_run(self, stepped: BackwardPass) -> bool:
        """Run the nodes that are left. If an edit of one fails, that is none of the code's errors:
        the edit is taken back, and the code is held on."""
        try:
            stepped.stepper.run()
        except LabError as error:
            node = stepped.stepper.next_node
            if node is None or not stepped.control.is_edited(node):
                raise
            stepped.control.unedit(node.id)
            stepped.control.stopped_by = f"The edit at {node.name} is taken back: {error}"
            self._lab.control.goes_on = ""
            self._lab.emit(stepped.snapshot())
            return False
        self._lab.emit(stepped.snapshot())
        return True

    def _begin_pass(
        self, held: HeldCode, roots: list, gradient: list | None, create_graph: bool
    ) -> BackwardPass:
        lab = self._lab
        subject = CallSubject(held.namespace, roots, gradient, held.resumed)
        lab.backward.namespace = held.namespace
        make = pass_control_maker(lab, subject.defaults)
        stepped = BackwardPass(subject, make, create_graph=create_graph)
        lab.backward.begin_own_call(stepped)
        for part in stepped.graph_snapshots():
            lab.emit(part)
        lab.emit(stepped.snapshot())
        return stepped

    @staticmethod
    def _tell_not_stepped(frame: FrameType, why: str) -> None:
        file = frame.f_code.co_filename.strip("<>")
        print(f"Line {frame.f_lineno} of {file}: {why}. It runs at once.", file=sys.stderr)

    def inside(self, answer: Callable[[], None]) -> None:
        """Call `answer` in the middle of the user's code, unless torch is in a state there in which
        the lab cannot read tensors."""
        if self._is_holding or self._is_answering or is_out_of_reach():
            return
        self._is_answering = True
        self.rest.gate.open()  # what is asked may be about the next steps
        with self._lab.control.own_code():
            try:
                with self._namespace.suspended():
                    answer()
            except Exception:  # of ours: the user's code goes on
                logging.getLogger(__name__).exception("A question inside a cell has failed.")
            finally:
                self._is_answering = False


@contextmanager
def shown_and_held(lab: Lab, namespace: Namespace, title: str, output: Output) -> Iterator[Holder]:
    """While this context is open, the loops of the user's code in this thread are shown and, if it
    is recorded, checked by the adviser. The code is held at breakpoints and, if that is wanted,
    after optimizer steps and inside backward()."""
    lab.subjects.forget_values()
    holder = Holder(lab, namespace, title, output)
    loop, rest, take_backward = holder.loop, holder.rest, None
    loop.losses.know(holder.names.optimizers())
    gate = rest.gate
    rest.watching.append(lab.subjects.updates)
    if not lab.is_training:  # Train shows one loop at a time
        rest.watching += [loop_looks(lab, holder.names.parameters, loop), loop]
    with ExitStack() as stack:
        # While Train runs, this loop is not shown.
        step_of = loop.step_of if lab.is_training else loop.step_by_logs

        def reached_step_of(names: Iterable[str]) -> int:
            rest.reach()
            return step_of(names)

        stack.enter_context(namespace.lab.counted(reached_step_of))
        stack.callback(setattr, lab.control, "asked", lab.control.asked)
        lab.control.asked = gate.open
        if lab.attend is not None:
            take_backward = holder.step_backward
            stack.enter_context(breakpoints_held(lambda frame: holder.hold(frame, "line")))
            stack.callback(holder.lines.end)
        if namespace.records:
            adviser = Adviser(
                lambda found: lab.emit(FindingSnapshot(finding=found)), namespace.variables, rest
            )
            rest.watching.append(adviser)
            stack.callback(adviser.end)
            recorder = partial(LightRecorder, told=adviser.told, looks=adviser.looks)
            stack.enter_context(namespace.recorded_by(recorder))
        stack.callback(rest.reach)
        stack.enter_context(
            steps_shown(
                rest,
                *rest.watching,
                gate=gate,
                unless=lambda: lab.control.in_own_code,
                take_backward=take_backward,
                losses=None if lab.is_training else loop.losses,
            )
        )
        if lab.attend is not None:
            lab.inside = holder.inside
            stack.callback(setattr, lab, "inside", None)
        yield holder


def loop_looks(lab: Lab, names: Callable[[], Mapping[int, str]], loop: OwnLoop) -> LoopLooks:
    """Looks at the parameters of a loop. Those of the loop before are shown until its first."""

    def begun(tables: Tables) -> None:
        lab.subjects.loop_looks = tables

    return LoopLooks(lab.control, names, loop.leave_out, begun, lambda: loop.step)


def watching_of(lab: Lab) -> Watching | None:
    """What is watched in the code that runs next. A variable that holds another module by now is
    watched in its place."""
    watching = lab.subjects.watching if "subjects" in vars(lab) else None
    if watching is None or not watching.paths:
        return None
    lab.subjects.follow_variable(lab.console.namespace.variables)
    watching.begin()
    return watching


@contextmanager
def seen_and_held(lab: Lab, path: Path, output: Output) -> Iterator[Around]:
    """What a file runs in: its calls are recorded, as those of a cell, its loops shown and held,
    and `lab` is among its names.
    The end of its loop is told here; an error is not caught."""
    holder: Holder | None = None

    @contextmanager
    def around(module: ModuleType) -> Iterator[None]:
        nonlocal holder
        console = lab.console.namespace
        console.lab.begin_cell()
        vars(module)["lab"] = console.lab  # as in a cell; a name of the file's own replaces it
        namespace = console.of_module(module)
        with (
            shown_and_held(lab, namespace, path.name, output) as holder,
            namespace.recorded(str(path)),
        ):
            yield

    error: BaseException | None = None
    try:
        yield around
    except BaseException as raised:
        error = raised
        raise
    finally:
        if holder is not None:
            report = None if error is None else error_report(error, is_user_file)
            last = holder.loop.last(error, report)
            if last is not None:
                lab.emit(last)
            if holder.has_held:
                lab.emit(list_variables(lab.console.namespace, lab.control))
