"""`train.py` in the folder of a run: the same training as a plain script."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ...datasets.load import load_dataset
from ...errors import LabError
from ...exporting.loader_lines import LoaderLines, loader_lines
from ...exporting.train_script import data_of, script_of, write_script
from ...lab import Lab
from ...project.document import Model, TrainingSetup
from ...project.edits import loss_call
from ...project.subject import Objective
from ...subjects.subject import CanvasModel
from ..subjects import given_objects, objective_of

FILE = "train.py"
MAX_BYTES = 64 * 2**20
"""A run whose data and first weights are larger gets no script: each run would have a copy."""


def loader_of_cells(
    lab: Lab, subject: CanvasModel, model: Model, training: TrainingSetup
) -> LoaderLines | None:
    """The DataLoader with objects of the console, for a script; None without any. Raises LabError
    if the cells that ran do not tell how they are made."""
    if not training.data.loading.given:
        return None
    objective = objective_of(lab, subject, Objective(), model, training)
    found = given_objects(lab, training, lab.console.namespace.variables)
    samplers = {"sampler": found.sampler, "batch_sampler": found.batch_sampler}
    made = {name: not isinstance(value, Iterable) for name, value in samplers.items()}
    cells = lab.console.namespace.journal.sources
    return loader_lines(training, cells, made, objective.batches_per_epoch)


def script_writer(
    lab: Lab, subject: CanvasModel, model: Model, training: TrainingSetup, code: str
) -> Callable[[Path], object] | None:
    """What writes the script of a run that begins with the weights of now into its folder. None if
    there can be no script for the set-up (Export says why), or its data is too large."""
    loss, params = loss_call(model, training)
    dataset, module = load_dataset(training.data), subject.module
    try:
        loader = loader_of_cells(lab, subject, model, training)
        text = script_of(code, training, loss, params, dataset, Path(FILE), module, loader)
    except LabError:
        return None
    data, weights = data_of(dataset), module.state_dict()
    if sum(tensor.nbytes for tensor in (*data.values(), *weights.values())) > MAX_BYTES:
        return None
    first = {name: tensor.detach().to("cpu", copy=True) for name, tensor in weights.items()}
    return lambda folder: write_script(text, first, data, folder / FILE)
