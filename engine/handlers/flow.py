"""Answers about gradient flow."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..autograd.derivatives.gradient_flow import (
    BIN_HIGH,
    BIN_LOW,
    INITIALISATIONS,
    FlowRun,
    verdicts,
)
from ..console.breakpoint_calls import breakpoints_told
from ..lab import Lab
from ..protocol import (
    FlowCommand,
    FlowHistogram,
    FlowHistogramsSnapshot,
    FlowSnapshot,
    FlowVerdict,
    Initialisation,
    Picture,
    ReadFlowCommand,
    Snapshot,
)
from ..restoring.module_kept import ModuleState
from ..restoring.randomness import RandomStream
from ..system.errors import LabError
from .subjects.find import subject_of

MAX_CELLS = 12_000
"""Largest number of layers times steps: a snapshot must not exceed its limit."""
INTERVAL_S = 0.1


def gradient_flow(lab: Lab, command: FlowCommand) -> Iterator[Snapshot | None]:
    """Train from each initialisation in turn, and answer with FlowSnapshots as each run goes on.

    A stop signal ends the run. Raises LabError for a model that cannot be trained, and for too many
    steps for its number of layers.
    """
    subject = subject_of(lab, command)
    subject.check()
    runs = lab.derivatives.flow = {}
    for name in command.initialisations:
        trial = subject.on_trial()
        module = trial.module
        state = ModuleState(module)
        with state:
            device = next((p.device for p in module.parameters()), None)
            if device is not None:
                with RandomStream(command.training.seed, device):
                    INITIALISATIONS[name](module)
            objective = trial.objective()
            run = runs[name] = FlowRun(module, command.training, command.steps, objective)
        rows = max(len(run.layers), len(run.activations), 1)
        if rows * run.steps > MAX_CELLS:
            raise LabError(
                f"{run.steps:,} steps of {rows:,} layers are more than can be shown.",
                hint=f"Ask for at most {MAX_CELLS // rows:,} steps.",
            )
        shown_s = perf_counter()
        for _ in _steps(lab, run, state):
            due = perf_counter() - shown_s > INTERVAL_S
            if due:
                shown_s = perf_counter()
            yield _snapshot(name, run) if due else None
        yield _snapshot(name, run)
        if lab.control.stop.is_set():
            return


def _steps(lab: Lab, run: FlowRun, state: ModuleState) -> Iterator[None]:
    """The steps of a run, up to a stop signal; the module has the `state` only while one runs."""
    is_over = False
    with lab.output().redirected(), _closing(run.run(), state) as steps:
        while True:
            try:
                with state, breakpoints_told(), lab.control.user_code():
                    is_over = next(steps, run) is run
            except KeyboardInterrupt:  # in the middle of a long step
                lab.control.stop.set()
            if lab.control.stop.is_set():
                run.ended = "Stopped."
                return
            if is_over:
                return
            yield


@contextmanager
def _closing(steps: Generator[None, None, None], state: ModuleState) -> Iterator[Iterator[None]]:
    try:
        yield steps
    finally:
        with state:
            steps.close()


def read_flow(lab: Lab, command: ReadFlowCommand) -> Iterator[Snapshot]:
    """Answer with a FlowHistogramsSnapshot. Raises LabError if nothing has run, or for a layer or
    step that is not in the run."""
    runs = lab.derivatives.flow
    if not runs:
        raise LabError("There is no gradient flow to look at.", hint="Press Run first.")
    first = next(iter(runs.values()))
    if command.layer not in first.layers or not 0 <= command.step < first.steps:
        raise LabError(f"There is no step {command.step} of a layer {command.layer!r}.")
    row = first.layers.index(command.layer)
    yield FlowHistogramsSnapshot(
        layer=command.layer,
        step=command.step,
        low=BIN_LOW,
        high=BIN_HIGH,
        runs=tuple(
            FlowHistogram(
                initialisation=name,
                counts=tuple(run.histograms[row, command.step].tolist()),
                zeros=int(run.zeros[row, command.step]),
                norm=float(run.norms[row, command.step]),
            )
            for name, run in runs.items()
            if not np.isnan(run.norms[row, command.step])
        ),
    )


def _snapshot(name: Initialisation, run: FlowRun) -> FlowSnapshot:
    last = max(0, run.loop.step - 1)
    norms = run.norms[:, last] if run.steps else np.zeros(0, np.float32)
    rms = run.rms[:, last] if run.steps else norms
    return FlowSnapshot(
        initialisation=name,
        step=run.loop.step,
        steps=run.steps,
        layers=tuple(run.layers),
        parameters=tuple(sum(p.numel() for p in layer) for layer in run.parameters),
        rms=_picture(run.rms),
        norms=tuple(norms.tolist()),
        verdicts=tuple(cast("list[FlowVerdict]", verdicts(norms, rms))),
        activations=tuple(run.activations),
        dead=_picture(run.dead),
        order=tuple(run.order),
        losses=tuple(run.losses[: run.loop.step]),
        ended=run.ended,
    )


def _picture(numbers: NDArray[np.float32]) -> Picture | None:
    if not numbers.size:
        return None
    return Picture(
        shape=numbers.shape,
        data=numbers.astype("<f4", copy=False).tobytes(),
        source_shape=numbers.shape,
    )
