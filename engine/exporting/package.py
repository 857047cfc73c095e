"""An archive with all that the model needs to run where there is nothing but PyTorch."""

from __future__ import annotations

import ast
import builtins
import importlib.metadata
import io
import sys
import zipfile
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .examples import Example

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
    `load` is the line that reads it."""

    files: Mapping[str, bytes]
    make: str = ""
    load: str = ""


def of_blocks(source: str) -> Code:
    return Code({"model.py": source.encode()}, _make("from model import Model", "Model()"))


def of_file(name: str, files: Mapping[str, bytes], expression: str, is_module: bool) -> Code:
    """A module of the user's file `name`, which an expression is (`is_module`) or makes."""
    named = dict.fromkeys(
        node.id
        for node in ast.walk(ast.parse(expression, mode="eval"))
        if isinstance(node, ast.Name) and not hasattr(builtins, node.id)
    )
    stem = name.removesuffix(".py").replace("/", ".")
    call = expression if is_module or expression.endswith(")") else f"{expression}()"
    return Code(files, _make(f"from {stem} import {', '.join(named)}", call))


def of_program(data: bytes) -> Code:
    line = 'return torch.export.load(HERE / "model.pt2").module()'
    return Code({"model.pt2": data}, load=f"    {line}\n")


def of_script(data: bytes) -> Code:
    line = 'return torch.jit.load(HERE / "model.torchscript").eval()'
    return Code({"model.torchscript": data}, load=f"    {line}\n")


def _make(imports: str, expression: str) -> str:
    """In a function of its own: the names of the user's code may be those of run.py."""
    return f'''
def make():
    """The model with new weights."""
    {imports}

    return {expression}

'''


def archive(title: str, code: Code, state: Mapping[str, Tensor], example: Example) -> bytes:
    """The bytes of the archive. All times in it are one, so that equal models give equal files."""
    files: dict[str, bytes] = {**code.files}
    load = code.load
    if code.make:
        files["weights.pt"] = _saved(state)
        load = (
            "    model = make()\n"
            '    weights = torch.load(HERE / "weights.pt", weights_only=True)\n'
            "    model.load_state_dict(weights)\n"
            "    return model.eval()\n"
        )
    files["example.pt"] = _saved({"args": example.args, "kwargs": example.kwargs})
    files["run.py"] = _RUN.format(make=code.make, load=load).encode()
    files["requirements.txt"] = "".join(f"{line}\n" for line in requirements(code)).encode()
    files["README.md"] = _README.format(
        title=title,
        torch=torch.__version__,
        python=".".join(map(str, sys.version_info[:2])),
        files="\n".join(f"- `{name}`: {_what(name)}" for name in sorted(files)),
        arguments=", ".join(["x"] * len(example.args) + [f"{k}=..." for k in example.kwargs]),
    ).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name in sorted(files):
            made.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), files[name])
    return buffer.getvalue()


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


def _saved(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _what(name: str) -> str:
    known = {
        "weights.pt": "the state_dict",
        "example.pt": "the arguments of one call",
        "run.py": "loads the model and calls it",
        "requirements.txt": "what pip installs",
        "model.pt2": "the model as a program of torch.export",
        "model.torchscript": "the model as TorchScript",
    }
    return known.get(name, "the code of the model")
