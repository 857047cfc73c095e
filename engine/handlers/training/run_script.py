"""`train.py` in the folder of a run: the same training as a plain script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import nn

from ...datasets.load import load_dataset
from ...errors import LabError
from ...exporting.train_script import data_of, script_of, write_script
from ...project.document import Model, TrainingSetup
from ...project.edits import loss_call

FILE = "train.py"
MAX_BYTES = 64 * 2**20
"""A run whose data and first weights are larger gets no script: each run would have a copy."""


def script_writer(
    model: Model, training: TrainingSetup, code: str, module: nn.Module
) -> Callable[[Path], object] | None:
    """What writes the script of a run that begins with the weights of now into its folder. None if
    there can be no script for the set-up (Export says why), or its data is too large."""
    loss, params = loss_call(model, training)
    dataset = load_dataset(training.data)
    try:
        text = script_of(code, training, loss, params, dataset, Path(FILE), module)
    except LabError:
        return None
    data, weights = data_of(dataset), module.state_dict()
    if sum(tensor.nbytes for tensor in (*data.values(), *weights.values())) > MAX_BYTES:
        return None
    first = {name: tensor.detach().to("cpu", copy=True) for name, tensor in weights.items()}
    return lambda folder: write_script(text, first, data, folder / FILE)
