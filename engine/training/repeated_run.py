"""Runs that go to a step of a run that was: they repeat its steps from a state of it."""

from __future__ import annotations

from .loop import TrainingLoop
from .run import TrainingRun
from .way_to_step import Way


def again(before: TrainingRun, loop: TrainingLoop, way: Way, is_new: bool = False) -> TrainingRun:
    """A run that goes to a step of the run before it. A step back gives it a new id, so that the
    checkpoints of the other one stay; so does `is_new`."""
    is_back = is_new or way.step < before.step
    writer = before.files.writer
    if is_back:
        writer = writer.forked(way.step)
    loop.seen = before.loop.seen  # in it are the batches of the steps that come again
    run = TrainingRun(loop, way.start, writer=writer)
    if is_back:
        run.files.checkpoint_step = 0
    else:
        run.files.checkpoint_path = before.files.checkpoint_path
        run.files.checkpoint_step = before.files.checkpoint_step
    run.kept = before.kept.until(way.step, run.folder)
    run.set_out(way)
    return run
