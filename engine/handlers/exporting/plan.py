"""The plan of an export: the files, before they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...exporting.state import place_of
from ...lab import Lab
from ...protocol import ExportPlanSnapshot, PlanExportCommand, Snapshot
from ...protocol.exporting.formats import FORMATS
from ..subjects.find import subject_of
from .export import refusal_of

_ON_DATA = ("checkpoint", "script")
"""Besides those that are written from a run on a batch."""


def plan(lab: Lab, command: PlanExportCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject, and what making it raises."""
    subject = subject_of(lab, command)
    state = subject.module.state_dict()
    tensors = {place_of(tensor): tensor for tensor in state.values()}
    floats: Counter[int] = Counter()
    others = 0
    for tensor in tensors.values():
        size = tensor.numel() * tensor.element_size()
        if tensor.is_floating_point():
            floats[tensor.element_size()] += size
        else:
            others += size
    refusals = {}
    for key, row in FORMATS.items():
        refused = subject.refusal(key) or refusal_of(key)
        if refused is not None:
            refusals[key] = f"{refused} {refused.hint}"
        elif not subject.has_data and (row.batch or key in _ON_DATA):
            refusals[key] = "There is no data to take a batch from. Name it under Train."
    run = lab.run
    yield ExportPlanSnapshot(
        title=subject.title,
        tensors=len(state),
        float_bytes=dict(floats),
        other_bytes=others,
        refusals=refusals,
        run_step=-1 if run is None else run.step,
    )
