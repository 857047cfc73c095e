"""The loop of a training script: the same text for a model of blocks and for one of code."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import torch
from torch import nn

from ..project.document import TrainingSetup
from ..system.errors import LabError
from ..training.optimization.training_step import check_setup
from .data_lines import DataLines
from .script_lines import (
    BatchLines,
    after_epoch,
    averaging_parts,
    call,
    execution_lines,
    groups_of,
    indented,
    lbfgs_lines,
    scheduler_source,
    step_lines,
    stopping_lines,
    swalr_call,
)

_LOOP = '''
{functions}

def train(model, {taken}):
    device = torch.device({device!r})
{placed}    model.to(device)
    parameters = [p for p in model.parameters() if p.requires_grad]
{groups}    optimizer = torch.optim.{optimizer}
{made}{averaged}{reference}{execution}    torch.manual_seed({seed})
    for epoch in range({epochs}):
{begin}        batches = {batches}
        total = 0.0
{steps}{average}        losses = []
{validation}        training = total / {samples}
        print(f"epoch {{epoch + 1}}: loss {{training:.6f}}{told}")
{after_epoch}{returned}

def save(model, path):
    """Write the state_dict: as safetensors, if the name ends so, else as torch.save does."""
    if path.endswith(".safetensors"):
        from safetensors.torch import save_model

        save_model(model.cpu(), path)
    else:
        torch.save({{name: tensor.cpu() for name, tensor in model.state_dict().items()}}, path)


def main():
{main}    options = argparse.ArgumentParser(description="Train the model.")
    options.add_argument("--out", help="write the trained state_dict here (.pt, .safetensors)")
{option}    chosen = options.parse_args()
{model}    {trained}train(model, {taken})
    if chosen.out:
        save(model, chosen.out)
{saved}

if __name__ == "__main__":
    main()
'''


_MEAN = "validation = sum(loss * n for loss, n in losses) / max(1, sum(n for _, n in losses))"


@dataclass(frozen=True)
class LoopParts:
    """What differs between the loops of the two kinds of subject.

    `functions` come before the loop, whose batches are those of `data`. `main` has the lines `main`
    and `model`, `train` the lines `made` before the loop and `begin` before the batches of an
    epoch; `samples` counts those that were trained on. In `validation` the model validates;
    `update_norms` computes the statistics of BatchNorm of averaged weights.
    `repeats`: the batches come in the same order each time.
    """

    batch: BatchLines
    data: DataLines
    functions: str
    main: str
    model: str
    made: str
    begin: list[str]
    samples: str
    validation: list[str]
    update_norms: list[str]
    validates: bool
    counts: bool
    repeats: bool


def loop_of(setup: TrainingSetup, module: nn.Module, parts: LoopParts) -> str:
    """The text from the functions to the end of the script. Raises LabError for an order of phases
    that the optimizer cannot run, and for a schedule that needs to know the number of steps."""
    check_setup(setup)
    if not parts.repeats:
        raise LabError(
            "With in_order off, no script has the batches of the run again.",
            hint="Turn in_order on.",
        )
    data = parts.data
    made = [data.made, parts.made]
    if setup.precision == "float16":
        made.append("    scaler = torch.amp.GradScaler(device.type)\n")
    if setup.schedule.kind:
        scheduler = scheduler_source(setup, _steps(setup, data))
        if "lambda " in scheduler:
            made.append("    from math import cos, exp, floor, log, pi, sin, sqrt  # noqa: F401\n")
        made.append(f"    scheduler = {scheduler}\n")
    if swalr := swalr_call(setup):
        made.append(f"    swalr = {swalr}\n")
    groups = groups_of(setup, module)
    lines = lbfgs_lines if setup.optimizer == "optim.LBFGS" else step_lines
    stopping = stopping_lines(setup, parts.validates, parts.counts)
    begin = [*parts.begin, *data.begin, *(["right = labels = 0"] if parts.counts else [])]
    return _LOOP.format(
        functions=parts.functions,
        taken=data.taken,
        main=parts.main,
        model=parts.model,
        placed=data.placed,
        begin=indented(begin),
        batches=data.batches,
        samples=parts.samples,
        validation=indented([*parts.validation, _MEAN]),
        told=", validation {validation:.6f}" if parts.validates else "",
        device=setup.device,
        groups=groups,
        optimizer=call(
            setup.optimizer[6:], "groups" if groups else "parameters", setup.optimizer_params
        ),
        made="".join(made),
        execution=execution_lines(setup),
        seed=setup.seed,
        epochs=setup.epochs,
        steps=lines(setup, parts.batch),
        **averaging_parts(setup, parts.update_norms),
        reference="    reference, waited = None, 0\n" if stopping else "",
        after_epoch=after_epoch(setup) + stopping,
    )


def _steps(setup: TrainingSetup, data: DataLines) -> int | None:
    """The number of optimizer steps of the run; None if the data does not say."""
    if data.per_epoch is None:
        return None
    return setup.epochs * ceil(data.per_epoch / setup.accumulate)


def autocast_of(setup: TrainingSetup) -> str:
    """What follows the first context of a `with`: autocast, if the set-up has it."""
    if setup.precision == "float32":
        return ""
    return f", torch.autocast(device.type, torch.{setup.precision})"


def threads_line() -> str:
    """The line that sets the number of threads."""
    number = torch.get_num_threads()
    return f"torch.set_num_threads({number})  # as in the lab: it decides the last bits of sums\n"
