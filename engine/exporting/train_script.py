"""The training of a model of blocks as a plain script of PyTorch, with its data beside it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from ..datasets.dataset import Dataset
from ..project.document import Loading, ParamValue, TrainingSetup
from ..system.errors import LabError
from ..training.components.class_weights import weighted
from ..training.execution.recomputing import recomputed
from ..training.objectives.batches import generators_of
from .data_lines import DataLines, dataset_lines
from .loader_lines import IMPORT, LoaderLines
from .script_lines import (
    RECOMPUTING_IMPORTS,
    BatchLines,
    counted_part,
    loss_lines,
    right_lines,
)
from .script_loop import LoopParts, autocast_of, loop_of, threads_line
from .weights import write, write_saved

_HEAD = '''\
"""Trains the model below: the same loop as in Tensor Lab, as a plain script.

The data and the first weights lie in {beside}, beside this file. On the CPU the losses and the
weights are the same, bit for bit: python {name} --out weights.pt
"""

import argparse
{imports}from itertools import islice
from pathlib import Path

import numpy as np
'''

_LOSS = """\
def loss_of(prediction, target):
{loss}"""
_MODEL = """\
    data = torch.load(Path(__file__).with_name({beside!r}), weights_only=True)
    model = Model()
    model.load_state_dict(data["weights"])
"""


def script_of(
    code: str,
    setup: TrainingSetup,
    loss: str,
    loss_params: Mapping[str, ParamValue],
    dataset: Dataset,
    path: Path,
    module: nn.Module,
    loader: LoaderLines | None = None,
) -> str:
    """The text of the script that lies at `path`. `code` is the model's Python, with a class
    `Model`, and `module` the model; `loader` gives the batches, if there is one. Raises LabError
    for an order of phases that the optimizer cannot run, and for names that the script cannot
    have."""
    head, _, _ = code.partition("\nif __name__")
    imports = "from torch import Tensor, nn"
    if setup.recomputed:
        imports += "\nfrom torch.utils.checkpoint import checkpoint"
    if loader is not None:
        imports += f"\n{IMPORT}"
    head = head[head.index("import torch") :].replace("from torch import nn", imports, 1)
    data = dataset_lines(dataset, setup, loader)
    validates = bool(len(dataset.y_val))
    counted = counted_part(setup, validates) if dataset.classes else ""
    losses = loss_lines(
        loss, weighted(loss_params, dataset, loss), dataset.y_train.is_floating_point()
    )
    has_generators = loader is not None and setup.averaging.kind == "SWA"
    functions = [
        *data.functions,
        *([inspect.getsource(recomputed)] if setup.recomputed else []),
        *([inspect.getsource(generators_of)] if has_generators else []),
        _LOSS.format(loss=losses),
        *([right_lines(loss)] if counted else []),
    ]
    parts = LoopParts(
        batch=_batch(counted == "train", setup.data.loading),
        data=data,
        functions="\n\n".join(functions),
        main="",
        model=f"    {threads_line()}{_MODEL.format(beside=beside(path).name)}",
        made="",
        begin=["model.train()"],
        samples=data.samples,
        validation=_validation(setup, data, counted == "validation"),
        update_norms=_update_norms(setup, data, has_generators),
        validates=validates,
        counts=bool(counted),
        repeats=setup.data.loading.repeats,
    )
    script = _head(setup, path) + head.rstrip() + "\n\n" + loop_of(setup, module, parts)
    if loader is not None:
        loader.check(script)
    return script


_COUNTED = ("right += right_in(prediction, y)", "labels += y.numel()")


def _batch(is_counted: bool, loading: Loading) -> BatchLines:
    counted = _COUNTED if is_counted else ()
    if counted and loading.collate_fn:  # it may give shares of classes
        counted = ("if not y.is_floating_point():", *(f"    {line}" for line in counted))
    return BatchLines(
        names="x, y",
        forward="prediction = model(x)",
        loss="loss = loss_of(prediction, y)",
        whole="loss = loss_of(model(x), y)",
        size="len(y)",
        counted=counted,
    )


def _update_norms(setup: TrainingSetup, data: DataLines, has_generators: bool) -> list[str]:
    """The loader's generators go on as if they had not been asked."""
    lines = [
        "with torch.random.fork_rng(devices=[]):",
        f"    torch.manual_seed({setup.seed})",
        f"    torch.optim.swa_utils.update_bn({data.again}, averaged)",
    ]
    if not has_generators:
        return lines
    return [
        "states = [(each, each.get_state()) for each in generators_of(loader)]",
        *lines,
        "for generator, state in states:",
        "    generator.set_state(state)",
    ]


def _validation(setup: TrainingSetup, data: DataLines, is_counted: bool) -> list[str]:
    judged = "model"
    if setup.averaging.kind != "none":
        judged = f"(averaged if epoch >= {setup.averaging.start} else model)"
    lines = [f"losses.append((loss_of({judged}(x), y).item(), len(y)))"]
    if is_counted:
        lines = [
            f"prediction = {judged}(x)",
            "losses.append((loss_of(prediction, y).item(), len(y)))",
            *_COUNTED,
        ]
    return [
        f"{judged}.eval()",
        f"with torch.no_grad(){autocast_of(setup)}:",
        f"    for x, y in {data.validation}:",
        *(f"        {line}" for line in lines),
    ]


def _head(setup: TrainingSetup, path: Path) -> str:
    imports = RECOMPUTING_IMPORTS if setup.recomputed else ""
    return _HEAD.format(beside=beside(path).name, name=path.name, imports=imports)


def data_of(dataset: Dataset) -> dict[str, Tensor]:
    """The tensors that the script trains on. Raises LabError for samples that are not in memory."""
    if dataset.is_stored:
        raise LabError(
            "The samples are too large to be beside a script: they stay in their files.",
            hint="Use a part of them for a script.",
        )
    found = {name: getattr(dataset, name) for name in ("x_train", "y_train", "x_val", "y_val")}
    if dataset.ragged is not None:
        found |= {"lengths_train": dataset.ragged.train, "lengths_val": dataset.ragged.val}
    return found


def write_script(
    text: str, weights: Mapping[str, object], data: Mapping[str, object], path: Path
) -> bytes:
    """Write the script, and beside it its data and first weights; returns the script as it is read
    back. Raises LabError if a file cannot be written."""
    write_saved(beside(path), {**data, "weights": dict(weights)})
    return write(path, text.encode())


def beside(path: Path) -> Path:
    """The file of data and first weights beside a script."""
    return path.with_suffix(".data.pt")
