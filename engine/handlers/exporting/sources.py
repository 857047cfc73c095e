"""The source of an export: a subject with the weights that are to be exported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from ...exporting.weights import check_fits, load_weights
from ...exporting.weights_fit import find_fit, load_fit
from ...lab import Lab
from ...protocol import ExportCommand
from ..subjects.find import subject_of
from ..subjects.subject import Subject


@dataclass(frozen=True)
class Source:
    """`renaming`: how the names of weights from a file were changed to fit, in words."""

    subject: Subject
    renaming: str = ""

    @property
    def module(self) -> nn.Module:
        return self.subject.module


def source_of(lab: Lab, command: ExportCommand) -> Source:
    """The subject; with the command's weights, a fresh one that has them. Raises LabError, and what
    the user's code raises."""
    subject = subject_of(lab, command)
    if (refused := subject.refusal(command.format)) is not None:
        raise refused
    if not command.weights:
        return Source(subject)
    subject = subject.fresh()
    return Source(subject, _load(Path(command.weights).expanduser(), subject.module))


def _load(source: Path, module: nn.Module) -> str:
    """Load weights that fit exactly, maybe after a prefix is taken off; it is told in words."""
    state = load_weights(source)
    fit = find_fit(state, module)
    if not fit.is_whole or fit.unexpected:
        renamed = {fit.renamed(key): tensor for key, tensor in state.items()}
        check_fits(renamed, module, str(source))
    load_fit(state, module, fit)
    return fit.renaming
