"""Checks before training: the command, and what each of them finds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ...project.document import Model, TrainingSetup
from ...project.subject import CanvasSubject, Objective, Subject
from ..commands import Command
from ..snapshots import Snapshot

CheckKind = Literal[
    "inputs",
    "leaks",
    "labels",
    "first_loss",
    "unreached",
    "modes",
    "one_batch",
    "rates",
]
Verdict = Literal["good", "note", "warning", "error"]


class CheckTrainingCommand(Command, frozen=True, kw_only=True):
    """Check a subject before it is trained -> a CheckSnapshot for each check. Weights, buffers,
    gradients, modes and random numbers are as before afterwards; what the user's code changes
    besides is not undone. A stop signal ends it. Not while a run goes on; one that is paused
    between two steps is not changed."""

    handler = "training.checks:check_training"
    model: Model
    training: TrainingSetup
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()


class Check(Struct, frozen=True):
    """The result of one check: `text` in a sentence, `evidence` with figures, `fix` what to try;
    empty where there is none."""

    kind: CheckKind
    verdict: Verdict
    text: str
    evidence: str = ""
    fix: str = ""


class RateCurve(Struct, frozen=True):
    """A learning-rate range test: the loss of one batch at each rate, in rising order, and the same
    smoothed. `suggestion` is 0 if there is none."""

    rates: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()
    smooth: tuple[float, ...] = ()
    suggestion: float = 0.0


class CheckSnapshot(Snapshot, frozen=True, kw_only=True):
    """Check number `done` of `total`; `curve` is that of the check of rates."""

    check: Check
    done: int
    total: int
    curve: RateCurve = RateCurve()
