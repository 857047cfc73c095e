"""The training of a module of the user's code as a plain script, with its first weights beside
it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import NamedTuple

from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

from ..errors import LabError
from ..project.document import TrainingSetup
from ..random_states import States
from ..subjects.python_file import PythonFile
from ..training.execution.recomputing import recomputed
from ..training.objectives.batches import generators_of, moved, samples_in, tensors_in
from ..training.objectives.code_objective import CodeObjective
from ..training.objectives.loaders import Given, arguments_of
from .code_names import CodeNames
from .script_lines import BatchLines, counted_part
from .script_loop import LoopParts, autocast_of, loop_of, threads_line
from .train_script import beside

_HEAD = '''\
"""Trains {title}: the same loop as in Tensor Lab, as a plain script.

The first weights lie in {beside}, beside this file.
On the CPU the losses and the weights are the same, bit for bit: python {name} --out weights.pt
"""

{imports}
{threads}saved = torch.load(Path(__file__).with_name({beside!r}), weights_only=True)


'''
_IMPORTS = (
    ("", "argparse"), ("", "hashlib"), ("", "importlib.util"), ("", "random"), ("", "sys"),
    ("collections.abc", "Callable, Iterator, Mapping"),
    ("contextlib", "contextmanager, nullcontext"),
    ("functools", "partial"), ("itertools", "islice"), ("pathlib", "Path"), ("typing", "Any"),
    ("", ""),
    ("", "numpy as np"), ("", "torch"), ("", "torch.nn.functional as F"),
    ("torch", "Tensor, nn"), ("torch.utils.checkpoint", "checkpoint"),
    ("torch.utils.data", "DataLoader, TensorDataset"),
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


def training_data():
    return {data}


def validation_data():
    return {validation}
'''
_NORM = nn.modules.batchnorm._BatchNorm
_COUNTED = (
    'if "accuracy" in found:',
    '    right += float(found["accuracy"]) * samples_in(batch)',
    "    labels += samples_in(batch)",
)


class Expression(NamedTuple):
    """An expression of the user's, of a file or, without one, of the console."""

    text: str
    file: PythonFile | None


@dataclass(frozen=True)
class CodeSubject:
    """What is trained: a module, that `expression` names or makes.
    `makes`: its value is called to make the module. `step_takes` is the number of arguments of the
    step of the user's own, 0 for one that is written. `data`, `validation` and the objects `given`
    to the DataLoader are expressions."""

    title: str
    module: nn.Module
    expression: Expression
    makes: bool
    step_takes: int
    data: Expression
    validation: Expression | None
    given: Mapping[str, Expression]


def code_script_of(
    subject: CodeSubject,
    setup: TrainingSetup,
    objective: CodeObjective,
    names: CodeNames,
    path: Path,
    before: States,
    then: States,
) -> str:
    """The text of the script that lies at `path`. The generators were in the states `before` the
    data was made, and in those of `then` when training begins, as far as they changed. Raises
    LabError for what no script can have."""
    if setup.data.loading.padding != "none":
        raise LabError(
            "A script has no padding of samples.",
            hint="Give a DataLoader with a collate_fn of your own, and set padding to none.",
        )
    validates = subject.validation is not None
    counted = counted_part(setup, validates)
    if counted and objective.metrics.has_any:
        raise LabError(
            "The script does not compute metrics of an epoch, so it cannot stop by an accuracy.",
            hint="Stop early by a loss, or set patience to 0.",
        )
    model = names.expression(*subject.expression)
    data = _data(names, subject.data, objective.data, setup, subject.given, objective.given)
    validation = "()"
    if subject.validation is not None:
        given = {n: e for n, e in subject.given.items() if n in ("worker_init_fn", "collate_fn")}
        validation = _data(names, subject.validation, objective.validation, setup, given)
    written, file = "", subject.expression.file
    if subject.step_takes:
        step = names.expression("step", file)
        step += "(batch)" if subject.step_takes == 1 else "(model, batch)"
    else:
        step, written = "step(batch)", names.step(objective.source, file)
    averages, draws = setup.averaging.kind != "none", bool(objective.generators)
    norms = setup.averaging.kind == "SWA" and any(
        isinstance(module, _NORM) for module in subject.module.modules()
    )
    functions = [
        *map(inspect.getsource, (tensors_in, samples_in, moved)),
        *([inspect.getsource(generators_of)] if draws else []),
        *([inspect.getsource(recomputed)] if setup.recomputed else []),
        *([_ASIDE.format(seed=setup.seed)] if validates or norms else []),
        *([_IN_USE] if averages else []),
        *([_UPDATE_NORMS.format(autocast=autocast_of(setup))] if norms else []),
        *([written] if written else []),
        _STEP.format(
            step=step,
            seed=setup.seed,
            model=f"{model}()" if subject.makes else model,
            data=data,
            validation=validation,
        ),
    ]
    per_epoch = objective.batches_per_epoch
    steps = None if per_epoch is None else setup.epochs * ceil(per_epoch / setup.accumulate)
    each = "loader()" if _is_called(objective.data) else "loader"
    batches = f"(moved(batch, device) for batch in {each})"
    generators = "generators_of(loader, validation_loader)" if draws else "()"
    parts = LoopParts(
        batch=BatchLines(
            names="batch",
            forward="",
            loss="found = figures_of(batch)",
            whole="found = figures_of(batch)",
            size="samples_in(batch)",
            then=('loss = found["loss"].reshape(())',),
            counted=_COUNTED if counted == "train" else (),
            before=("if not model.training:", "    model.train()"),
            tally="trained",
        ),
        functions="\n\n".join(functions),
        taken="model, loader, validation_loader",
        given="model, loader, validation_loader",
        main="    global model\n",
        model=_indented(
            [
                "model = made()",
                'model.load_state_dict(saved["weights"])',
                *names.restoring(before),
                "loader, validation_loader = training_data(), validation_data()",
                *names.restoring({k: v for k, v in then.items() if k in ("numpy", "random")}),
            ]
        ),
        placed="",
        made=f"    generators = {generators}\n" if validates or norms else "",
        begin=["trained = 0"],
        batches=batches,
        samples="trained",
        validation=_validation(setup, objective, counted == "validation") if validates else [],
        update_norms=[
            "with aside(model, generators):",
            f"    update_norms(model, averaged, {batches}, device)",
        ]
        if norms
        else [],
        validates=validates,
        counts=bool(counted),
        steps=steps,
    )
    users, loop = names.source(), loop_of(setup, subject.module, parts)
    head = _HEAD.format(
        title=f"`{subject.title}`",
        imports=_imports(users + loop),
        beside=beside(path).name,
        name=path.name,
        threads=threads_line(),
    )
    own = _defined(head + (loop.replace(written, "") if written else loop))
    names.check({*own, "samples"}, subject.expression.text.strip())
    script = f"{head}{users}\n\n{loop}"
    try:
        ast.parse(script)
    except SyntaxError as error:
        raise LabError(
            f"Your code in line {error.lineno} of the script is not Python there: {error.msg}.",
            hint="Write it in a Python file, and choose the module of the file.",
        ) from error
    return script


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


def _data(
    names: CodeNames,
    expression: Expression,
    value: object,
    setup: TrainingSetup,
    given: Mapping[str, Expression],
    objects: Given | None = None,
) -> str:
    """The data as an iterable of batches, as `batches_of` makes it; for validation without the
    `objects` given."""
    text, loading, trains = names.expression(*expression), setup.data.loading, objects is not None
    several = isinstance(value, tuple | list) and all(isinstance(part, Tensor) for part in value)
    if isinstance(value, Tensor):
        text = f"TensorDataset({text})"
    elif several and value:
        text = f"TensorDataset(*{text})"
    elif not isinstance(value, Dataset):
        return text
    arguments = {n: repr(v) for n, v in arguments_of(loading).items() if v or n != "num_workers"}
    for name, each in given.items():
        arguments[name] = names.expression(*each)
        makes = name in ("sampler", "batch_sampler")
        if makes and not isinstance(getattr(objects, name), Iterable):  # it is made of the data
            arguments[name] = f"({arguments[name]})(samples)"
            text = f"samples := {text}"
    if "batch_sampler" not in given:
        arguments["batch_size"] = repr(setup.batch_size)
        if trains and loading.drop_last:
            arguments["drop_last"] = "True"
        is_ordered = "sampler" in given or isinstance(value, IterableDataset)
        if trains and loading.shuffle and not is_ordered:
            arguments["shuffle"] = "True"
    listed = ", ".join(f"{name}={each}" for name, each in arguments.items())
    return f"DataLoader({text}, {listed})"


def _is_called(value: object) -> bool:
    """Whether it is a function that returns batches, called for every epoch."""
    return callable(value) and not isinstance(value, Iterable | Dataset)


def _validation(setup: TrainingSetup, objective: CodeObjective, is_counted: bool) -> list[str]:
    judged = ""
    if setup.averaging.kind != "none":
        begun = f"epoch >= {setup.averaging.start}"
        judged = f", in_use(averaged, model) if {begun} else nullcontext()"
    each = "validation_loader()" if _is_called(objective.validation) else "validation_loader"
    return [
        f"with aside(model, generators), torch.no_grad(){autocast_of(setup)}{judged}:",
        "    model.eval()",
        f"    for batch in (moved(batch, device) for batch in {each}):",
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
