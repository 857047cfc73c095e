"""The training of a model of blocks as a plain script of PyTorch, with its data beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

import torch
from torch import Tensor, nn

from ..datasets.dataset import Dataset
from ..project.document import ParamValue, TrainingSetup
from ..training.components.class_weights import weighted
from ..training.steps.training_step import check_order
from .code_export import proved
from .loader_lines import IMPORT, LoaderLines
from .script_lines import (
    RECOMPUTING_IMPORTS,
    after_epoch,
    averaging_parts,
    call,
    execution_lines,
    functions_of,
    groups_of,
    lbfgs_lines,
    loss_lines,
    scheduler_call,
    step_lines,
    stopping_lines,
    swalr_call,
)
from .weights import Written, write, write_saved

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

_LOOP = """
{functions}

def slices(x, y):
    for start in range(0, len(y), {batch_size}):
        yield x[start : start + {batch_size}], y[start : start + {batch_size}]


def loss_of(prediction, target):
{loss}

def train(model, data):
    device = torch.device({device!r})
    x_train, y_train, x_val, y_val = (
        data[name].to(device) for name in ("x_train", "y_train", "x_val", "y_val")
    )
    model.to(device)
    parameters = [p for p in model.parameters() if p.requires_grad]
{groups}    optimizer = torch.optim.{optimizer}
{loader}{made}{averaged}{reference}{execution}    torch.manual_seed({seed})
    for epoch in range({epochs}):
        model.train()
        {order}
        batches = {batches}
        total = 0.0
{steps}{average}        {judged}.eval()
        with torch.no_grad(){autocast}:
            losses = [(loss_of({judged}(x), y).item(), len(y)) for x, y in slices(x_val, y_val)]
        validation = sum(loss * n for loss, n in losses) / max(1, len(y_val))
        training = total / {samples}
        print(f"epoch {{epoch + 1}}: loss {{training:.6f}}, validation {{validation:.6f}}")
{after_epoch}{returned}

def main():
    options = argparse.ArgumentParser(description="Train the model.")
    options.add_argument("--out", help="write the trained state_dict here (.pt)")
{option}    chosen = options.parse_args()
    out = chosen.out
    torch.set_num_threads({threads})  # as in the lab: it decides the last bits of sums
    data = torch.load(Path(__file__).with_name({beside!r}), weights_only=True)
    model = Model()
    model.load_state_dict(data["weights"])
    {trained}train(model, data)
    if out:
        torch.save({{name: tensor.cpu() for name, tensor in model.state_dict().items()}}, out)
{saved}

if __name__ == "__main__":
    main()
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
    check_order(setup)
    per_epoch = dataset.batches(setup.batch_size) if loader is None else loader.batches
    steps = setup.epochs * ceil(per_epoch / setup.accumulate)
    scaled = setup.precision == "float16"
    mixed = setup.precision != "float32"
    head, _, _ = code.partition("\nif __name__")
    imports = "from torch import Tensor, nn"
    if setup.recomputed:
        imports += "\nfrom torch.utils.checkpoint import checkpoint"
    if loader is not None:
        imports += f"\n{IMPORT}"
    head = head[head.index("import torch") :].replace("from torch import nn", imports, 1)
    made = ["    scaler = torch.amp.GradScaler(device.type)\n"] if scaled else []
    if setup.schedule.kind:
        if setup.schedule.kind == "lr_scheduler.LambdaLR":
            made.append("    from math import cos, exp, floor, log, pi, sin, sqrt  # noqa: F401\n")
        made.append(f"    scheduler = {scheduler_call(setup, steps)}\n")
    if swalr := swalr_call(setup):
        made.append(f"    swalr = {swalr}\n")
    order, again = "torch.arange(len(y_train))", ""
    if dataset.loading.balanced:
        order = f"balanced_order(y_train.cpu(), {setup.seed}, epoch)"
    elif dataset.loading.shuffle:
        order = f"epoch_order(len(y_train), {setup.seed}, epoch)"
    if dataset.loading.drop_last:
        order += f"[:{dataset.batches(setup.batch_size) * setup.batch_size}]"
    order, batches = f"order = {order}", "slices(x_train[order], y_train[order])"
    if loader is not None:
        order, batches = "sizes = []", "loaded(loader, device, sizes)"
        again = "loaded(loader, device, [])"
    if dataset.drawn:
        batches, again = (f"transformed({each}, epoch)" for each in (batches, again or batches))
    groups = groups_of(setup, module)
    loop = _LOOP.format(
        functions=functions_of(dataset, setup, loader),
        loader="" if loader is None else loader.made,
        samples="len(order)" if loader is None else "sum(sizes)",
        execution=execution_lines(setup),
        order=order,
        batches=batches,
        seed=setup.seed,
        batch_size=setup.batch_size,
        epochs=setup.epochs,
        device=setup.device,
        beside=_beside(path).name,
        loss=loss_lines(
            loss, weighted(loss_params, dataset, loss), dataset.y_train.is_floating_point()
        ),
        groups=groups,
        optimizer=call(
            setup.optimizer[6:], "groups" if groups else "parameters", setup.optimizer_params
        ),
        made="".join(made),
        steps=lbfgs_lines(setup) if setup.optimizer == "optim.LBFGS" else step_lines(setup, scaled),
        autocast=f", torch.autocast(device.type, torch.{setup.precision})" if mixed else "",
        **averaging_parts(setup, again or batches),
        reference="    reference, waited = None, 0\n" if setup.stopping.patience else "",
        after_epoch=after_epoch(setup) + stopping_lines(setup, dataset),
        threads=torch.get_num_threads(),
    )
    script = _head(setup, path) + head.rstrip() + "\n\n" + loop
    if loader is not None:
        loader.check(script)
    return script


def _head(setup: TrainingSetup, path: Path) -> str:
    imports = RECOMPUTING_IMPORTS if setup.recomputed else ""
    return _HEAD.format(beside=_beside(path).name, name=path.name, imports=imports)


def save_script(
    text: str, module: nn.Module, inputs: Sequence[Tensor], dataset: Dataset, path: Path
) -> Written:
    """Write the script, once its model is `proved`, and beside it a .pt file with the data and the
    weights of the module, with which the script begins.

    Raises LabError as `proved` does, and if a file cannot be written.
    """
    error = proved(text, module, inputs, path)
    weights = {name: tensor.cpu() for name, tensor in module.state_dict().items()}
    data = write_script(text, weights, data_of(dataset), path)
    return Written(path, len(data), hashlib.sha256(data).hexdigest(), error, tuple(weights))


def data_of(dataset: Dataset) -> dict[str, Tensor]:
    """The tensors that the script trains on."""
    return {name: getattr(dataset, name) for name in ("x_train", "y_train", "x_val", "y_val")}


def write_script(
    text: str, weights: Mapping[str, Tensor], data: Mapping[str, Tensor], path: Path
) -> bytes:
    """Write the script, and beside it its data and first weights; returns the script as it is read
    back. Raises LabError if a file cannot be written."""
    write_saved(_beside(path), {**data, "weights": dict(weights)})
    return write(path, text.encode())


def _beside(path: Path) -> Path:
    return path.with_suffix(".data.pt")
