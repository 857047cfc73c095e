"""An archive with all that the model needs to run where there is nothing but PyTorch."""

from __future__ import annotations

import ast
import builtins
import importlib.metadata
import sys
import zipfile
from collections.abc import Callable, Mapping
from typing import BinaryIO, NamedTuple, cast

import torch
from torch import Tensor, nn

from .examples import Example
from .programs import Program

_RUN = '''\
"""Runs the model on the example that it was written with: python run.py"""

from pathlib import Path

import torch

HERE = Path(__file__).parent

{make}
def load():
    """The model with its weights, in eval mode."""
{load}

def main():
    model = load()
    example = torch.load(HERE / "example.pt", weights_only=True)
    with torch.no_grad():
        output = model(*example["args"], **example["kwargs"])
    print(output)


if __name__ == "__main__":
    main()
'''

_README = """\
# {title}

Written by Tensor Lab with torch {torch} and Python {python}.

    pip install -r requirements.txt
    python run.py

{files}

In a script of your own, beside run.py:

    from run import load

    model = load()
    output = model({arguments})
"""


class Code(NamedTuple):
    """The files that make the model, by their names in the archive. `make` are the lines of run.py
    that make the module without its weights; where a file holds the whole model, weights included,
    `program` is that file with its name, and `load` the line that reads it."""

    files: Mapping[str, bytes]
    make: str = ""
    load: str = ""
    program: tuple[str, Program] | None = None


def of_blocks(source: str) -> Code:
    return Code({"model.py": source.encode()}, _make("from model import Model", "Model()"))


def of_file(name: str, files: Mapping[str, bytes], expression: str, is_module: bool) -> Code:
    """The code for a module of the user's file `name`: `expression` is the module (`is_module`), or
    makes it."""
    named = dict.fromkeys(
        node.id
        for node in ast.walk(ast.parse(expression, mode="eval"))
        if isinstance(node, ast.Name) and not hasattr(builtins, node.id)
    )
    stem = name.removesuffix(".py").replace("/", ".")
    call = expression if is_module or expression.endswith(")") else f"{expression}()"
    return Code(files, _make(f"from {stem} import {', '.join(named)}", call))


def of_program(program: Program) -> Code:
    line = 'return torch.export.load(HERE / "model.pt2").module()'
    return Code({}, load=f"    {line}\n", program=("model.pt2", program))


def of_script(program: Program) -> Code:
    line = 'return torch.jit.load(HERE / "model.torchscript").eval()'
    return Code({}, load=f"    {line}\n", program=("model.torchscript", program))


def _make(imports: str, expression: str) -> str:
    """The lines that make the module, in a function of their own: names of the user's code may
    stand for other things in run.py."""
    return f'''
def make():
    """The model with new weights."""
    {imports}

    return {expression}

'''


def write_archive(
    file: BinaryIO,
    title: str,
    code: Code,
    state: Mapping[str, Tensor],
    example: Example,
    dtype: str = "",
) -> None:
    """Write the archive; with a `dtype`, the code's module is cast to it. All times in it are one,
    so that equal models give equal files; tensors go into it as they are, one after the other,
    since they hardly get smaller."""
    text: dict[str, bytes] = {**code.files}
    arguments = {"args": example.args, "kwargs": example.kwargs}
    tensors: dict[str, Callable[[BinaryIO], object]] = {
        "example.pt": lambda inner: torch.save(arguments, inner)
    }
    load = code.load
    if code.make:
        tensors["weights.pt"] = lambda inner: torch.save(state, inner)
        load = (
            f"    model = make(){f'.to(torch.{dtype})' if dtype else ''}\n"
            '    weights = torch.load(HERE / "weights.pt", weights_only=True)\n'
            "    model.load_state_dict(weights)\n"
            "    return model.eval()\n"
        )
    if code.program is not None:
        name, program = code.program
        tensors[name] = program.save
    text["run.py"] = _RUN.format(make=code.make, load=load).encode()
    text["requirements.txt"] = "".join(f"{line}\n" for line in requirements(code)).encode()
    names = sorted([*text, *tensors])
    text["README.md"] = _README.format(
        title=title,
        torch=torch.__version__,
        python=".".join(map(str, sys.version_info[:2])),
        files="\n".join(f"- `{name}`: {_file_words(name)}" for name in names),
        arguments=", ".join(["x"] * len(example.args) + [f"{k}=..." for k in example.kwargs]),
    ).encode()
    with zipfile.ZipFile(file, "w") as made:
        for name in sorted([*text, *tensors]):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            if name in text:
                made.writestr(info, text[name], zipfile.ZIP_DEFLATED)
                continue
            with made.open(info, "w", force_zip64=True) as inner:
                tensors[name](cast(BinaryIO, inner))


def requirements(code: Code) -> list[str]:
    """torch, and the packages that the files import, each with its version here."""
    names = {"torch"}
    for name, data in code.files.items():
        if name.endswith(".py"):
            names |= _imported(data)
    own = {name.split("/")[0].removesuffix(".py") for name in code.files}
    owners = importlib.metadata.packages_distributions()
    found = {
        distribution: importlib.metadata.version(distribution)
        for name in names - own - set(sys.stdlib_module_names)
        for distribution in owners.get(name, ())[:1]
    }
    return [f"{name}=={version.split('+')[0]}" for name, version in sorted(found.items())]


def class_name(module: nn.Module) -> str:
    """The name of the module's class; a model of blocks is called Model."""
    name = type(module).__name__
    return "Model" if name.startswith("GraphModule") else name


def _imported(source: bytes) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def _file_words(name: str) -> str:
    known = {
        "weights.pt": "the state_dict",
        "example.pt": "the arguments of one call",
        "run.py": "loads the model and calls it",
        "requirements.txt": "what pip installs",
        "model.pt2": "the model as a program of torch.export",
        "model.torchscript": "the model as TorchScript",
    }
    return known.get(name, "the code of the model")
