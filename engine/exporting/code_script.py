"""The training of a module of the user's code as a plain script, with its first weights beside
it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from ..project.document import TrainingSetup
from ..restoring.random_states import States
from ..system.errors import LabError
from ..system.private_torch import BatchNorm
from ..training.execution.recomputing import recomputed
from ..training.objectives.batches import generators_of, moved, samples_in, tensors_in
from ..training.objectives.code_data import CodeData
from ..training.objectives.code_objective import CodeObjective
from ..training.objectives.loaders import pad_batch
from .code_data_lines import Expression, Expressions, data_of_code
from .code_names import CodeNames
from .data_lines import DataLines
from .script_lines import BatchLines, counted_part
from .script_loop import LoopParts, autocast_of, loop_of, threads_line
from .train_script import beside

_HEAD = '''\
"""Trains {title}: the same loop as in Tensor Lab, as a plain script.

{lie} in {beside}, beside this file.
On the CPU the losses and the weights are the same, bit for bit: python {name} --out weights.pt
"""

{imports}
{threads}saved = torch.load(Path(__file__).with_name({beside!r}), weights_only=True)


'''
_IMPORTS = (
    ("", "argparse"), ("", "hashlib"), ("", "importlib.util"), ("", "random"), ("", "sys"),
    ("collections.abc", "Callable, Iterator, Mapping, Sequence"),
    ("contextlib", "contextmanager, nullcontext"),
    ("functools", "partial"), ("itertools", "islice"), ("pathlib", "Path"), ("typing", "Any"),
    ("", ""),
    ("", "numpy as np"), ("", "torch"), ("", "torch.nn.functional as F"),
    ("torch", "Tensor, nn"), ("torch.nn.utils.rnn", "pad_sequence"),
    ("torch.utils.checkpoint", "checkpoint"),
    ("torch.utils.data", "DataLoader, Subset, TensorDataset, default_collate"),
)  # fmt: skip
"""The module and the names of each import of a script that has all; without names a blank line."""
_ASIDE = '''\
@contextmanager
def aside(model, generators):
    """A pass over data beside training: it draws random numbers of its own, and keeps the modes."""
    states = [generator.get_state() for generator in generators]
    modes = {{module: module.training for module in model.modules()}}
    with torch.random.fork_rng():
        torch.manual_seed({seed})
        yield
    for generator, state in zip(generators, states):
        generator.set_state(state)
    for module, mode in modes.items():
        module.training = mode
'''
_IN_USE = '''\
@contextmanager
def in_use(averaged, model):
    """The model has the averaged weights and buffers."""
    tensors = [[*each.parameters(), *each.buffers()] for each in (model, averaged.module)]
    for live, other in zip(*tensors):
        live.data, other.data = other.data, live.data
    yield
    for live, other in zip(*tensors):
        live.data, other.data = other.data, live.data
'''
_UPDATE_NORMS = '''\
def update_norms(model, averaged, batches, device):
    """The statistics of BatchNorm of the averaged weights, as torch's update_bn has them."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    with in_use(averaged, model):
        for norm in norms:
            norm.reset_running_stats()
    for norm in norms:
        norm.momentum = None
    model.train()
    for batch in batches:
        with torch.no_grad(){autocast}, in_use(averaged, model):
            figures_of(batch)
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
'''
_STEP = '''\
def figures_of(batch):
    """What the step gives: the loss, and other figures."""
    found = {step}
    return found if isinstance(found, Mapping) else {{"loss": found}}


def made():
    """The model as it begins; its first weights are loaded into it."""
    torch.manual_seed({seed})
    return {model}
'''
_COUNTED = (
    'if "accuracy" in found:',
    '    right += float(found["accuracy"]) * samples_in(batch)',
    "    labels += samples_in(batch)",
)


@dataclass(frozen=True)
class CodeSubject:
    """What is trained: a module, that `expression` names or makes, on the data that is `named`.
    `makes`: its value is called to make the module. `step_takes` is the number of arguments of the
    step of the user's own, 0 for one that is written."""

    title: str
    module: nn.Module
    expression: Expression
    makes: bool
    step_takes: int
    named: Expressions


def code_script_of(
    subject: CodeSubject,
    setup: TrainingSetup,
    objective: CodeObjective,
    names: CodeNames,
    path: Path,
    before: States,
    then: States,
) -> str:
    """The text of the script that lies at `path`. The generators that the data draws from were in
    the states `before` it was made, and all of them in those of `then` when training begins. Raises
    LabError for what no script can have."""
    validates = subject.named.validation is not None or bool(objective.validation_samples)
    counted = counted_part(setup, validates)
    if counted and objective.metrics.has_any:
        raise LabError(
            "The script does not compute metrics of an epoch, so it cannot stop by an accuracy.",
            hint="Stop early by a loss, or set patience to 0.",
        )
    model = names.expression(*subject.expression)
    lines, main, loaders = data_of_code(
        subject.named, objective.loaded, setup, names, before, then, names.saved
    )
    step, written = _step_of(subject, objective, names)
    norms = setup.averaging.kind == "SWA" and any(
        isinstance(module, BatchNorm) for module in subject.module.modules()
    )
    functions = [
        *_helpers(setup, objective, validates, norms),
        *([written] if written else []),
        _STEP.format(step=step, seed=setup.seed, model=f"{model}()" if subject.makes else model),
        *lines.functions,
    ]
    generators = f"generators_of({loaders})" if objective.generators else "()"
    parts = LoopParts(
        batch=_batch_of(counted),
        data=lines,
        functions="\n\n".join(functions),
        main="    global model\n",
        model=_indented(["model = made()", 'model.load_state_dict(saved["weights"])', *main]),
        made=f"    generators = {generators}\n" if validates or norms else "",
        begin=["trained = 0"],
        samples="trained",
        validation=_validation(setup, lines, counted == "validation") if validates else [],
        update_norms=[
            "with aside(model, generators):",
            f"    update_norms(model, averaged, {lines.again}, device)",
        ]
        if norms
        else [],
        validates=validates,
        counts=bool(counted),
        repeats=objective.repeats,
    )
    users, loop = names.source(), loop_of(setup, subject.module, parts)
    has_own = isinstance(objective.loaded, CodeData)
    head = _HEAD.format(
        title=f"`{subject.title}`",
        imports=_imports(users + loop),
        lie="The first weights lie" if has_own else "The data and the first weights lie",
        beside=beside(path).name,
        name=path.name,
        threads=threads_line(),
    )
    own = _defined(head + (loop.replace(written, "") if written else loop))
    names.check({*own, "samples", "whole"}, subject.expression.text.strip())
    script = f"{head}{users}\n\n{loop}"
    _require_python(script)
    return script


def _step_of(subject: CodeSubject, objective: CodeObjective, names: CodeNames) -> tuple[str, str]:
    """The call of the step, and its source where it is a written one. Raises LabError."""
    file = subject.expression.file
    if not subject.step_takes:
        return "step(batch)", names.step(objective.source, file)
    arguments = "batch" if subject.step_takes == 1 else "model, batch"
    return f"{names.expression('step', file)}({arguments})", ""


def _helpers(
    setup: TrainingSetup, objective: CodeObjective, validates: bool, norms: bool
) -> Iterator[str]:
    """The functions that the loop and the data use."""
    has_own = isinstance(objective.loaded, CodeData)
    functions: list[Callable] = [tensors_in, samples_in]
    functions += [moved] if has_own else []
    functions += [pad_batch] if has_own and setup.data.loading.padding != "none" else []
    functions += [generators_of] if objective.generators else []
    functions += [recomputed] if setup.recomputed else []
    yield from map(inspect.getsource, functions)
    if validates or norms:
        yield _ASIDE.format(seed=setup.seed)
    if setup.averaging.kind != "none":
        yield _IN_USE
    if norms:
        yield _UPDATE_NORMS.format(autocast=autocast_of(setup))


def _batch_of(counted: str) -> BatchLines:
    return BatchLines(
        names="batch",
        forward="",
        loss="found = figures_of(batch)",
        whole="found = figures_of(batch)",
        size="samples_in(batch)",
        then=('loss = found["loss"].reshape(())',),
        counted=_COUNTED if counted == "train" else (),
        before=("if not model.training:", "    model.train()"),
        tally="trained",
    )


def _require_python(script: str) -> None:
    try:
        ast.parse(script)
    except SyntaxError as error:
        raise LabError(
            f"Your code in line {error.lineno} of the script is not Python there: {error.msg}.",
            hint="Write it in a Python file, and choose the module of the file.",
        ) from error


def _imports(source: str) -> str:
    """The lines of the imports that the source uses; the head uses torch and Path."""
    lines = []
    for module, listed in _IMPORTS:
        used = [name for name in listed.split(", ") if name in ("torch", "Path", "")]
        used += [name for name in listed.split(", ") if name not in used and _uses(source, name)]
        if used:
            lines.append(
                f"from {module} import {', '.join(used)}" if module else f"import {used[0]}"
            )
    return "\n".join(line.removesuffix("import ") for line in lines) + "\n"


def _uses(source: str, imported: str) -> bool:
    name = imported.split()[-1].split(".")[0]
    return re.search(rf"(?<![\w.]){name}\b", source) is not None


def _validation(setup: TrainingSetup, data: DataLines, is_counted: bool) -> list[str]:
    judged = ""
    if setup.averaging.kind != "none":
        begun = f"epoch >= {setup.averaging.start}"
        judged = f", in_use(averaged, model) if {begun} else nullcontext()"
    return [
        f"with aside(model, generators), torch.no_grad(){autocast_of(setup)}{judged}:",
        "    model.eval()",
        f"    for batch in {data.validation}:",
        "        found = figures_of(batch)",
        '        losses.append((found["loss"].item(), samples_in(batch)))',
        *(f"        {line}" for line in (_COUNTED if is_counted else ())),
    ]


def _indented(lines: list[str]) -> str:
    return "".join(f"    {line}\n" for line in lines)


def _defined(source: str) -> set[str]:
    """The names that the script itself gives a meaning, outside of its functions."""
    found = set[str]()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found
