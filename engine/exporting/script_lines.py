"""The lines of a training script that its set-up decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from ..project.document import ParamValue, TrainingSetup
from ..project.step_order import PHASES, Phase, split_order
from ..training.components.expressions import VARIABLES
from ..training.components.losses import loss_source, target_source
from ..training.components.schedulers import SchedulerCall, scheduler_call
from ..training.execution.compiling import OPTIONS
from ..training.execution.recomputing import outermost
from ..training.optimization.groups import Groups


def right_lines(loss: str) -> str:
    """The function that counts right predictions, as `class_scores` has them."""
    least = 0.5 if loss == "nn.BCELoss" else 0.0
    return f"""\
def right_in(prediction, y):
    \"\"\"How many predictions have the largest score at their class y.\"\"\"
    if prediction.ndim > 1 and prediction.shape[1] == 1:  # one score: class 1 above {least}
        prediction = torch.cat([torch.full_like(prediction, {least}), prediction], 1)
    return (prediction.argmax(1) == y).sum().item()
"""


@dataclass(frozen=True)
class BatchLines:
    """What the loop of a script does with a batch, whose parts have these `names`.

    All fields are Python. `forward`, then `loss`, give its loss; `whole` does both, and `then`
    follows it. `size` is the number of its samples. `counted` adds the right predictions to `right`
    and their number to `labels`, if the script counts an accuracy; `tally` is the name of a counter
    of samples. `before` comes first in each step.
    """

    names: str
    forward: str
    loss: str
    whole: str
    size: str
    then: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    tally: str = ""


def call(name: str, first: str, params: Mapping[str, ParamValue]) -> str:
    return f"{name}({', '.join([first, *(f'{n}={v!r}' for n, v in params.items())])})"


RECOMPUTING_IMPORTS = """\
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any
"""


def execution_lines(setup: TrainingSetup) -> str:
    """How torch runs the model, before it trains."""
    lines = []
    if setup.deterministic:
        lines += [
            "torch.use_deterministic_algorithms(True)",
            "torch.backends.cudnn.benchmark = False",
        ]
    if setup.recomputed:
        lines += [
            f"for path in {outermost(setup.recomputed)!r}:  # only their inputs are kept",
            "    module = model.get_submodule(path)",
            "    module.forward = recomputed(module)",
        ]
    if setup.compile:
        lines.append(f"model.compile(options={OPTIONS!r})")
    return "".join(f"    {line}\n" for line in lines)


def scheduler_source(setup: TrainingSetup, steps: int | None) -> str:
    return _source_of(scheduler_call(setup, steps))


def _source_of(scheduler: SchedulerCall) -> str:
    made, arguments = f"torch.optim.lr_scheduler.{scheduler.name}", scheduler.arguments
    if scheduler.parts:
        parts = "".join(f"            {_source_of(part)},\n" for part in scheduler.parts)
        others = "".join(f", {name}={value!r}" for name, value in arguments.items())
        listed = f"        schedulers=[\n{parts}        ],\n        optimizer=optimizer{others},\n"
        return f"{made}(\n{listed}    )"
    functions = "".join(
        f", {name}=lambda {variable}: {arguments[name]}"
        for name, variable in VARIABLES.items()
        if arguments.get(name)
    )
    others = {name: value for name, value in arguments.items() if name not in VARIABLES}
    return call(made, f"optimizer{functions}", others)


def groups_of(setup: TrainingSetup, module: nn.Module) -> str:
    """The parameter groups, and what is frozen; empty without any."""
    if not setup.groups and setup.decay == "all":
        return ""
    grouping = Groups(module)
    names = {id(parameter): name for name, parameter in grouping.named.items()}
    lines = ["named = dict(model.named_parameters())", "groups = ["]
    for group in grouping.of(setup):
        own = "".join(f", {name!r}: {value!r}" for name, value in group.options.items())
        listed = ", ".join(repr(names[id(parameter)]) for parameter in group.parameters)
        lines.append(f'    {{"params": [named[name] for name in ({listed},)]{own}}},')
    lines.append("]")
    if frozen := grouping.frozen(setup):
        lines.append(f"for name in ({', '.join(map(repr, frozen))},):  # frozen")
        lines.append("    named[name].requires_grad_(False)")
    return "".join(f"    {line}\n" for line in lines)


def loss_lines(loss: str, params: Mapping[str, ParamValue], numbers: bool) -> str:
    fitted = target_source(loss, numbers)
    lines = [*fitted, f"return {loss_source(loss, params)}(prediction, target)"]
    return "".join(f"    {line}\n" for line in lines)


def step_lines(setup: TrainingSetup, batch: BatchLines) -> str:
    """The phases of a step, in the set-up's order."""
    scaled = setup.precision == "float16"
    divided = f"loss / {setup.accumulate}" if setup.accumulate > 1 else "loss"
    backward = f"scaler.scale({divided})" if scaled else divided
    backward = f"({backward})" if "/" in backward and not scaled else backward
    update = ["scaler.unscale_(optimizer)"] if scaled else []
    update += _clipping(setup)
    update += ["scaler.step(optimizer)", "scaler.update()"] if scaled else ["optimizer.step()"]
    order = setup.order
    together = order[order.index("forward") + 1] == "loss" and not batch.counted
    of_phase: dict[Phase, list[str]] = {
        "zero_grad": ["optimizer.zero_grad()"],
        "forward": [] if together else _mixed(setup, batch.forward),
        "loss": [
            *_mixed(setup, batch.whole if together else batch.loss),
            *batch.then,
            f"total += loss.item() * {batch.size}",
            *([f"{batch.tally} += {batch.size}"] if batch.tally else []),
            *batch.counted,
        ],
        "backward": [f"{backward}.backward()"],
        "step": update + _after_step(setup),
    }
    before, of_batch, after = (
        [line for phase in part for line in of_phase[phase]] for part in split_order(order)
    )
    return indented(
        [
            f"while of_step := list(islice(batches, {setup.accumulate})):",
            *(f"    {line}" for line in [*batch.before, *before]),
            f"    for {batch.names} in of_step:",
            *(f"        {line}" for line in of_batch),
            *(f"    {line}" for line in after),
        ]
    )


def lbfgs_lines(setup: TrainingSetup, batch: BatchLines) -> str:
    """LBFGS asks for the loss and its gradients several times a step."""
    forward = [*_mixed(setup, batch.forward), *_mixed(setup, batch.loss)]
    if not batch.counted:
        forward = _mixed(setup, batch.whole)
    lines = [
        f"while of_step := list(islice(batches, {setup.accumulate})):",
        *(f"    {line}" for line in batch.before),
        "    evaluated = []",
        "",
        "    def closure():",
        *(["        nonlocal right, labels"] if batch.counted else []),
        "        optimizer.zero_grad()",
        "        losses = []",
        f"        for {batch.names} in of_step:",
        *(f"            {line}" for line in [*forward, *batch.then]),
        f"            (loss / {setup.accumulate}).backward()",
        f"            losses.append((loss.detach(), {batch.size}))",
        *(["            if not evaluated:"] if batch.counted else []),
        *(f"                {line}" for line in batch.counted),
    ]
    lines += [f"        {line}" for line in _clipping(setup)]
    lines += [
        "        samples = sum(n for _, n in losses)",
        "        evaluated.append(losses)",
        "        return sum(loss * (n / samples) for loss, n in losses)",
        "",
        "    optimizer.step(closure)",
        "    total += sum(loss.item() * n for loss, n in evaluated[0])",
        *([f"    {batch.tally} += sum(n for _, n in evaluated[0])"] if batch.tally else []),
    ]
    return indented([*lines, *(f"    {line}" for line in _after_step(setup))])


def _mixed(setup: TrainingSetup, line: str) -> list[str]:
    """The line, if there is one, under autocast if the set-up has it."""
    if setup.precision == "float32" or not line:
        return [line] if line else []
    return [f"with torch.autocast(device.type, torch.{setup.precision}):", f"    {line}"]


def _clipping(setup: TrainingSetup) -> list[str]:
    settings = {"norm": setup.clip_norm, "value": setup.clip_value}
    lines = [
        f"nn.utils.clip_grad_{what}_(parameters, {limit!r})"
        for what, limit in settings.items()
        if limit
    ]
    if lines and setup.order != PHASES:  # torch refuses to clip where there are none
        found = "if any(parameter.grad is not None for parameter in parameters):"
        return [found, *(f"    {line}" for line in lines)]
    return lines


def _after_step(setup: TrainingSetup) -> list[str]:
    has = setup.schedule.kind and setup.schedule.each == "step"
    lines = ["scheduler.step()"] if has else []
    if has and swalr_call(setup):
        lines = [f"if epoch < {setup.averaging.start}:", "    scheduler.step()"]
    if setup.averaging.kind == "EMA":
        lines.append(f"if epoch >= {setup.averaging.start}:")
        lines.append("    averaged.update_parameters(model)")
    return lines


def swalr_call(setup: TrainingSetup) -> str:
    """What takes the place of the scheduler once weights are averaged; empty if nothing does."""
    averaging = setup.averaging
    if averaging.kind != "SWA" or not averaging.swa_lr:
        return ""
    arguments = f"{averaging.swa_lr!r}, {averaging.anneal_epochs}, {averaging.anneal_strategy!r}"
    return f"torch.optim.swa_utils.SWALR(optimizer, {arguments})"


def after_epoch(setup: TrainingSetup) -> str:
    step = ""
    if setup.schedule.kind and setup.schedule.each == "epoch":
        step = "scheduler.step()"
        if setup.schedule.kind == "lr_scheduler.ReduceLROnPlateau":
            step = "scheduler.step(validation if losses else training)"
    if not swalr_call(setup):
        return indented([step]) if step else ""
    lines = [f"if epoch >= {setup.averaging.start}:", "    swalr.step()"]
    return indented([*lines, "else:", f"    {step}"] if step else lines)


def averaging_parts(setup: TrainingSetup, update_norms: list[str]) -> dict[str, str]:
    """The parts of the script that average the weights; `update_norms` computes the statistics of
    BatchNorm of averaged ones."""
    averaging = setup.averaging
    if averaging.kind == "none":
        names = ("averaged", "average", "returned", "option", "trained", "saved")
        return dict.fromkeys(names, "")
    utils = "torch.optim.swa_utils"
    update = ["averaged.update_parameters(model)"]
    if averaging.kind == "SWA":
        update += update_norms
    lines = [f"if epoch >= {averaging.start}:", *(f"    {line}" for line in update)]
    how = f"multi_avg_fn={utils}.get_ema_multi_avg_fn({averaging.decay!r})"
    how = how if averaging.kind == "EMA" else "avg_fn=None"
    return {
        "averaged": f"    averaged = {utils}.AveragedModel(model, {how})\n",
        "average": indented(lines) if averaging.kind == "SWA" else "",
        "returned": "    return averaged\n",
        "option": '    options.add_argument("--averaged", help="write the averaged ones")\n',
        "trained": "averaged = ",
        "saved": "    if chosen.averaged:\n        save(averaged.module, chosen.averaged)\n",
    }


def counted_part(setup: TrainingSetup, validates: bool) -> str:
    """The part of an epoch in which the script counts an accuracy, since the run stops by it:
    "validation" or "train"; "" for none."""
    stopping = setup.stopping
    if not stopping.patience or "accuracy" not in stopping.figure:
        return ""
    return "validation" if validates and stopping.figure.startswith("validation") else "train"


def stopping_lines(setup: TrainingSetup, validates: bool, counts: bool) -> str:
    """The end of an epoch that may be the last. `validates`: there is validation data; `counts`:
    an accuracy is counted. What has no accuracy does not stop by one."""
    stopping = setup.stopping
    is_accuracy = "accuracy" in stopping.figure
    if not stopping.patience or (is_accuracy and not counts):
        return ""
    is_of_validation = validates and stopping.figure.startswith("validation")
    loss = "validation" if is_of_validation else "training"
    value, sign = ("accuracy", "-") if is_accuracy else (loss, "")
    lines = [
        f"if reference is None or {sign}{value} < {sign}reference - {stopping.min_delta!r}:",
        f"    reference, waited = {value}, 0",
        "else:",
        "    waited += 1",
        f"if waited >= {stopping.patience}:  # it has not become better for so many epochs",
        "    break",
    ]
    if is_accuracy:
        lines = [
            "if labels:",
            "    accuracy = right / labels",
            *(f"    {line}" for line in lines),
        ]
    return indented(lines)


def indented(lines: list[str]) -> str:
    """The lines in the loop over the epochs."""
    return "".join(f"        {line}\n" if line else "\n" for line in lines)
