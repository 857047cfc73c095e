"""Writes a model's Python to a file, after running it once to prove that it is the model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from ..restoring.random_states import torch_states_kept
from ..system.errors import LabError
from ..tensors.compare import max_difference
from .examples import still
from .weights import Written, check_fits, write

_MEND = "Fix what the Problems list names, then export again."


def save_code(
    source: str, module: nn.Module, inputs: Sequence[Tensor], path: str | os.PathLike[str]
) -> Written:
    """Write `source`, a Python file with a class `Model` that takes no arguments, once `proved`.

    Raises LabError as `proved` does, and if the file cannot be written.
    """
    path = Path(path)
    error = proved(source, module, inputs, path)
    data = write(path, source.encode())
    keys = tuple(module.state_dict())
    return Written(path, len(data), hashlib.sha256(data).hexdigest(), error, keys)


def proved(source: str, module: nn.Module, inputs: Sequence[Tensor], path: Path) -> float:
    """Run the source, which is to lie at `path`: its `Model()` must load the state_dict of
    `module`. Returns the largest absolute difference between the outputs of both models in eval
    mode on `inputs`. Raises LabError if the source does not run or is another model.
    """
    namespace: dict[str, object] = {"__name__": "exported_model"}
    try:
        with torch_states_kept():
            exec(compile(source, str(path), "exec"), namespace)
            written = namespace["Model"]()  # type: ignore[operator]
    except Exception as error:
        raise LabError(
            f"The model's Python does not run: {type(error).__name__}: {error}.",
            hint=_MEND,
        ) from error
    assert isinstance(written, nn.Module)
    state = module.state_dict()
    check_fits(state, written, "The live model")
    written.load_state_dict(state)
    try:
        with torch.no_grad(), still(module) as own:
            ours = own(*inputs)
            theirs = written.eval()(*inputs)
    except Exception as error:
        raise LabError(
            f"The model does not run, so its Python was not written: {error}", hint=_MEND
        ) from error
    if ours.shape != theirs.shape:
        raise LabError(
            f"The model's Python gives an output of shape {tuple(theirs.shape)}, "
            f"the model itself {tuple(ours.shape)}.",
            hint="This is a fault of the program; please report it with the project file.",
        )
    return max_difference(ours, theirs)
