"""What torch keeps private is named in one file; what its objects keep private, in one list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HERE = "engine/system/private_torch.py"
FILES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8"))
    for side in ("app", "widgets", "engine")
    for path in sorted((ROOT / side).rglob("*.py"))
}
FORMATS = "engine/artifacts/"
"""It reads what files name: names of torch's there are text."""
PRIVATE_PATH = re.compile(r"torch(\.\w+)*\._[a-zA-Z][\w.]*")
PYTHONS = {
    *("_replace", "_asdict", "_fields", "_field_defaults"),  # NamedTuple's
    *("_getframe", "_exit", "_EndRecData", "_Unpickler", "_showwarnmsg", "_showwarnmsg_impl"),
}
"""Of Python's own library."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def from_torch(tree: ast.Module) -> dict[str, str]:
    """What the names that a file imports from torch stand for."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    found[alias.asname or "torch"] = alias.name if alias.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            if module.split(".")[0] == "torch":
                found |= {a.asname or a.name: f"{module}.{a.name}" for a in node.names}
    return found


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and path of each module, or name in one, that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def private_names(tree: ast.Module, with_texts: bool = True) -> Iterator[tuple[int, str]]:
    """Line and path of each private name of torch that a file imports, reaches from an import, or
    has as a text."""
    names = from_torch(tree)
    for line, path in imported(tree):
        if path.startswith("torch.") and any(map(is_private, path.split("."))):
            yield line, path
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if is_private(name):
                root, _, rest = ast.unparse(node).partition(".")
                if root in names:
                    yield node.lineno, f"{names[root]}.{rest}"
            case ast.Call(func=ast.Name(), args=[owner, ast.Constant(value=str(text)), *_]):
                if is_private(text) and ast.unparse(owner).split(".")[0] in names:
                    yield node.lineno, ast.unparse(node)
            case ast.Constant(value=str(text)) if with_texts and PRIVATE_PATH.fullmatch(text):
                yield node.lineno, text


@pytest.mark.parametrize(
    "source",
    [
        "import torch._dynamo as dynamo",
        "from torch.utils._pytree import tree_map",
        "from torch.overrides import _push_mode",
        "import torch\ntorch._C._len_torch_function_stack()",
        "from torch import nn\nnn.modules.batchnorm._NormBase",
        "from torch.autograd import profiler as p\np._is_profiler_enabled",
        "import torch\ngetattr(torch.autograd, '_profiler_enabled')",
        "import sys\nsys.modules.get('torch._dynamo')",
        "def f():\n    from torch._dynamo import config",
    ],
)
def test_the_reader_sees_a_private_name(source: str):
    """Guards the test below, which would pass if it saw none."""
    assert list(private_names(ast.parse(source)))


def test_one_file_names_what_torch_keeps_private():
    assert list(private_names(FILES[HERE]))
    found = [
        f"{file}:{line}: {path}"
        for file, tree in FILES.items()
        if file != HERE
        for line, path in private_names(tree, with_texts=not file.startswith(FORMATS))
    ]
    assert found == [], f"{HERE} is to name them"


def has(path: str) -> bool:
    """Whether this torch has a module, or a name in one."""
    found: Any = None
    parts = path.split(".")
    for end in range(1, len(parts) + 1):
        if hasattr(found, parts[end - 1]):
            found = getattr(found, parts[end - 1])
            continue
        try:
            found = import_module(".".join(parts[:end]))
        except ImportError:
            return False
    return True


def test_this_torch_has_every_private_name():
    """All that are gone, at once: with one of them gone the engine cannot be imported."""
    paths = sorted({path for _, path in private_names(FILES[HERE]) if PRIVATE_PATH.fullmatch(path)})
    assert len(paths) > 30
    assert not has("torch._C._no_such_name") and not has("torch._no_such_module.name")
    assert [path for path in paths if not has(path)] == []


def test_each_name_of_that_file_is_used_and_tested():
    tree = FILES[HERE]
    names = {
        *(node.name for node in tree.body if isinstance(node, ast.FunctionDef)),
        *(
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        ),
        *(
            alias.asname
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.asname == alias.name
        ),
    }
    used = {
        alias.name
        for file, other in FILES.items()
        for node in ast.walk(other)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("system.private_torch")
        for alias in node.names
    }
    assert names == used
    tests = (ROOT / "tests/engine/system/test_private_torch.py").read_text("utf-8")
    assert {name for name in names if f"private.{name}" not in tests} == set()


def own_names() -> set[str]:
    """Private names that this program gives its own functions, classes and attributes."""
    found: set[str] = set()
    for tree in FILES.values():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                    found.add(name)
                case ast.Name(name, ast.Store()):
                    found.add(name)
                case ast.Attribute(ast.Name("self" | "cls"), name, ast.Store()):
                    found.add(name)
    return found


def test_the_private_attributes_of_torchs_objects_are_listed():
    """A name that is also one of ours cannot be told apart, and is listed by hand."""
    from tests.engine.system.test_private_torch import ATTRIBUTES  # fails where a name is gone

    reached, texts = set(), set()
    for file, tree in FILES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and file != HERE:
                reached.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
    assert reached - own_names() - PYTHONS - ATTRIBUTES.keys() == set()
    assert ATTRIBUTES.keys() - reached - texts == set()
