"""A step of Train that is held inside of a phase: after calls of torch in forward and loss, after
nodes in backward, and at a `breakpoint()` of the user's code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from torch import Tensor, nn

from ...autograd.backward.backward_pass import BackwardPass
from ...autograd.graph.snapshot import title
from ...console.breakpoint_calls import breakpoints_held
from ...console.variables import list_variables
from ...lab import Lab
from ...lab.holding import Holder
from ...loops.backward_calls import backward_calls
from ...protocol import StepUnit
from ...recording.compiled import add_forward_hook, own_modules
from ...recording.recorder import Recorder
from ...recording.recording import Recordings
from ...system.user_files import is_user_file, keep_source
from ...training.objectives.batches import tensors_in
from ...training.optimization.training_step import TrainingStep
from ...training.run import TrainingRun
from ...training.watchpoints.seen_calls import Call, frame_of_call, seen_calls

_MODEL = "model"
"""The variable that is the model where no code of the user's runs."""
_FORWARD, _BACKWARD = "<forward of the step>", "<backward of the step>"
"""The file names of the frames that have these variables; the source of each is the line that
scripts have."""
keep_source(_FORWARD, "prediction = model(batch)\n")
keep_source(_BACKWARD, "loss.backward()\n")
_HOLD = compile("_hold()", _FORWARD, "exec")
_CALL = compile("loss.backward()", _BACKWARD, "exec")


class StepsByHand:
    """Holds the steps of a run inside of their phases, as far as `TrainingLoop.by` lets them go."""

    def __init__(self, lab: Lab, run: TrainingRun) -> None:
        self._lab, self._run = lab, run

    @cached_property
    def _holder(self) -> StepHolder:
        return StepHolder(self._lab, self._run)

    @contextmanager
    def told(self) -> Iterator[None]:
        """After a step in this context, the variables are those of the console again."""
        try:
            yield
        finally:
            if "_holder" in vars(self):
                self._holder.lines.end()
                self._holder.tell_end()

    @contextmanager
    def breakpoints(self) -> Iterator[None]:
        """A step in this context is held at each `breakpoint()` of the user's code."""
        holder = self._holder
        with self.told(), breakpoints_held(lambda frame: holder.hold(frame, "line")):
            yield

    @contextmanager
    def calls(self) -> Iterator[None]:
        outermost = sys._getframe(2)  # beyond this frame and contextlib's
        holder, model = self._holder, self._run.loop.model
        saw, returned = partial(holder.saw, outermost), partial(holder.returned, outermost)
        hooks = [
            add_forward_hook(part, lambda _, args, result, path=path: returned(path, result))
            for path, part, _ in own_modules(model)
        ]
        try:
            with holder.recorded(model), seen_calls(model, saw, outermost):
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def backward(self, step: TrainingStep, loss: Tensor) -> None:
        self._holder.backward(step, loss)


class StepHolder(Holder):
    """Holds a step of the run. Its namespace has nothing of the cells but their variables, and the
    recording of its forward, so that Autograd knows the calls behind the nodes."""

    at_backward = "inside the backward of the step"

    def __init__(self, lab: Lab, run: TrainingRun) -> None:
        console = lab.console.namespace
        # The run has modes of its own: those of the cells stay as they are.
        namespace = console.of_module(console.module)
        namespace.recordings = Recordings()
        super().__init__(lab, namespace, "a step of Train", lab.output())
        self._run = run
        self._in_users_code = True
        self._recorder: Recorder | None = None
        self._recorded: TrainingStep | None = None

    @property
    def _by(self) -> StepUnit | str:
        return self._run.loop.by

    def tell_end(self) -> None:
        """The variables are those of the console again, if they were not."""
        if self.has_held:
            self.has_held = False
            namespace = self._lab.console.namespace
            self._lab.emit(list_variables(namespace, self._lab.control))

    def _attend(self) -> None:
        lab, control = self._lab, self._lab.control
        control.holds_run, control.goes_on = True, ""
        try:
            lab.show_pause()
            while lab.attend is not None and not (
                control.goes_on or control.interrupted or control.stop.is_set()
            ):
                lab.attend()
        finally:
            control.holds_run = False
        how = control.goes_on or "phase"  # if it is to stop, at the end of the phase
        if how == "line" and not self._in_users_code:
            how = control.goes_on = "op"  # a line of the canvas's code is a call or two
        self._run.loop.by = "" if how == "on" else "step" if how == "line" else how

    # -- forward and loss ------------------------------------------------------------------------

    @contextmanager
    def recorded(self, model: nn.Module) -> Iterator[None]:
        """Record calls of the newest step."""
        step = self._run.loop.current
        if self._recorder is None or step is not self._recorded:
            names = {
                part: f"{_MODEL}.{path}" if path else _MODEL for path, part, _ in own_modules(model)
            }
            self._recorder, self._recorded = Recorder(modules=names), step
            self._namespace.recordings.running = self._recorder.recording
        with self._recorder:
            yield

    def saw(
        self,
        outermost: Any,
        call: Callable[[], Call],
        func: Callable,
        args: tuple,
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        """A call of torch has returned."""
        if self._by == "op" and next(tensors_in(result), None) is not None:
            self._hold_after(outermost, str(call()), result)

    def returned(self, outermost: Any, path: str, result: Any) -> None:
        """A module has returned."""
        if self._by == "module":
            self._hold_after(outermost, f"`{path}`" if path else "the model", result)

    def _hold_after(self, outermost: Any, what: str, result: Any) -> None:
        step, recorder = self._run.loop.current, self._recorder
        if self._is_holding or step is None or recorder is None:
            return
        step.place = f"after {what}{_words(result)}"
        frame = frame_of_call(sys._getframe(1), outermost)
        self._in_users_code = frame is not None and is_user_file(frame.f_code.co_filename)
        hold = partial(self.hold, at="call", after=step.place)
        with recorder.unseen():
            if frame is not None:
                hold(frame)
            else:  # torch's own modules run
                variables = {_MODEL: self._run.loop.model, **step.tensors}
                exec(_HOLD, {**variables, "_hold": lambda: hold(sys._getframe(1))})
        step.place, self._in_users_code = "", True

    # -- backward --------------------------------------------------------------------------------

    @property
    def _steps_backward(self) -> bool:
        return self._by in ("op", "module")

    def backward(self, step: TrainingStep, loss: Tensor) -> None:
        """Run `loss.backward()`, node by node if the run goes on so."""
        variables = {_MODEL: self._run.loop.model, **step.tensors, "loss": loss}
        with backward_calls(self.step_backward):
            exec(_CALL, variables)
        step.place = ""

    def _attend_pass(self, stepped: BackwardPass) -> None:
        step, stepper = self._run.loop.current, stepped.stepper
        assert step is not None
        while self._steps_backward and (following := stepper.next_node) is not None:
            plan, modules = stepper.plan, stepped.control.modules
            module, end = modules.get(following.id, ""), stepper.position + 1
            while self._by == "module" and end < len(plan):
                if modules.get(plan[end].id, "") != module:
                    break
                end += 1
            stepped.control.go("to", plan[end - 1].id)
            self._lab.emit(stepped.snapshot())
            if stepper.next_node is None:
                break
            within = f" in `{module.removeprefix(f'{_MODEL}.')}`" if module else ""
            name = title(stepper.plan[stepper.position - 1])
            step.place = f"after node {stepper.position:,} of {len(plan):,}, {name}{within}"
            self._attend()


def _words(result: Any) -> str:
    """The result of a call: its first tensors by shape and dtype."""
    found = list(tensors_in(result))
    words = [f"{tuple(t.shape)} {str(t.dtype).removeprefix('torch.')}" for t in found[:2]]
    more = f" and {len(found) - 2} more" if len(found) > 2 else ""
    return f", which gave {', '.join(words)}{more}" if words else ""
