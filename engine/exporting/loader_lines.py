"""A DataLoader with objects of the user's code, as lines of a training script."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..console.elsewhere.statements import names_in, statements_of
from ..project.document import TrainingSetup
from ..project.subject import split_reference
from ..system.errors import LabError
from ..training.objectives.loaders import arguments_of

IMPORT = "from torch.utils.data import DataLoader, TensorDataset\n"
_LOADED = """

def loaded(loader, device, sizes):
    for x, y in loader:
        sizes.append(len(y))
        yield x.to(device), y.to(device)

"""
MADE = "    loader = loader_of(TensorDataset(x_train.cpu(), y_train.cpu()))\n"
_HAS = {"torch", "nn", "np", "Tensor", "F"}
"""Names of the console that the script has, too."""


@dataclass(frozen=True)
class LoaderLines:
    """`functions`: the statements of the cells that make the objects, and the function `loaded`;
    `made`: the line that makes the DataLoader; `batches`: how many it has, None if its sampler does
    not say."""

    functions: str
    made: str
    batches: int | None
    names: frozenset[str]

    def check(self, script: str) -> None:
        """Raise LabError if the script has a name of its own that the cells have, too."""
        own = ["samples", *_defined(script.replace(self.functions, _LOADED))]
        for name in sorted(self.names.intersection(own)):
            raise LabError(
                f"The script has a `{name}` of its own, so it cannot have that of the console.",
                hint=f"Give `{name}` another name in the console.",
            )


def loader_lines(
    setup: TrainingSetup, cells: Sequence[str], samplers: Mapping[str, bool], batches: int | None
) -> LoaderLines | None:
    """None without objects of the console. `cells` are those that ran, in their order; `samplers`
    says of each sampler whether it is made of the data set. Raises LabError if the cells do not
    tell how the objects are made."""
    loading = setup.data.loading
    if not loading.given:
        return None
    names: set[str] = set()
    for name, expression in loading.given.items():
        if split_reference(expression):
            raise LabError(
                f"The script cannot have {name}: {expression} is of a file.",
                hint="Import it in a cell of the console, and name it here.",
            )
        names |= names_in(ast.parse(expression, mode="eval"))
    found = statements_of(names, cells)
    if missing := [name for name in found.missing if name not in _HAS]:
        raise LabError(
            f"No cell makes `{missing[0]}`, which the DataLoader's objects need: the script cannot"
            " have them.",
            hint="Make it in a cell.",
        )
    function = loader_function(setup, loading.given, samplers)
    functional = "import torch.nn.functional as F\n\n" if "F" in found.missing else ""
    return LoaderLines(f"{functional}{found.source}\n\n\n{function}", MADE, batches, found.makes)


def loader_function(
    setup: TrainingSetup, given: Mapping[str, str], samplers: Mapping[str, bool]
) -> str:
    """The functions that make a DataLoader with the expressions `given`, and take its batches;
    `samplers` says of each sampler whether it is made of the data set."""
    loading = setup.data.loading
    arguments = {name: repr(value) for name, value in arguments_of(loading).items()}
    if not loading.batch_sampler:
        arguments |= {"batch_size": f"{setup.batch_size}", "drop_last": f"{loading.drop_last}"}
        if not loading.sampler:
            arguments["shuffle"] = f"{loading.shuffle}"
    for name, expression in given.items():
        arguments[name] = f"({expression})(samples)" if samplers.get(name) else expression
    listed = "".join(f"        {name}={value},\n" for name, value in arguments.items())
    made = f"    return DataLoader(\n        samples,\n{listed}    )\n"
    return f"def loader_of(samples):\n{made}{_LOADED}"


def _defined(source: str) -> set[str]:
    body = ast.parse(source).body
    named = (node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return {*named, "loader_of"}
