"""The walk through the text of a TorchScript program: which operations it finds for each statement
and expression, and what it knows without running any."""

from __future__ import annotations

import ast
from textwrap import dedent
from typing import Any

import pytest
import torch

from engine.artifacts.contents.descriptions import OtherObject, StorageOf, TensorOf
from engine.artifacts.programs import script_values, script_walk
from engine.artifacts.programs.script_code import ScriptCode
from engine.artifacts.programs.script_values import (
    NOTHING,
    Known,
    ModuleAt,
    Named,
    Several,
    TooLargeError,
    Value,
)
from engine.artifacts.programs.script_walk import Walk

CODE = """
class Net:
    __parameters__ = ["weight", ]
    eps : Final[float] = 0.5
    def twice(self, x):
        return torch.mul(x, 2)

class Inner:
    def forward(self, x, scale=3):
        return torch.mul(x, scale)

def helper(x):
    return torch.neg(x)

def endless(x):
    return __torch__.endless(x)
"""
W = TensorOf(StorageOf("0", torch.float32, 4), torch.float32, (4,), 0, (1,))
MODULES = {
    "": OtherObject("__torch__.Net", {
        "training": False, "size": 3, "name": "net", "nothing": None, "weight": W, "inner": None,
        "flat": OtherObject("torch.jit._pickle.build_tensorlist", ([W],)),
        "lost": OtherObject("torch.jit._pickle.build_tensorlist",
                            ([TensorOf(W.storage, torch.float32, (2,), 0, (1,))],)),
        "object": OtherObject("own.Other"),
    }),
    "inner": OtherObject("__torch__.Inner", {"deep": None}),
    "inner.deep": OtherObject("__torch__.Inner", {}),
}  # fmt: skip


class Walked:
    def __init__(self, source: str, *args: Any) -> None:
        code = ScriptCode({"__torch__": ast.parse(dedent(CODE))}, "")
        self.walk = Walk(MODULES, code, {"weight"})
        lines = dedent(source).strip().splitlines()
        body = "\n".join(f"    {line}" for line in lines)
        (function,) = ast.parse(f"def forward(self, x, y):\n{body}").body
        assert isinstance(function, ast.FunctionDef)
        self.result = self.walk.call(function, [ModuleAt(""), Value("x"), Value("y"), *args], "")

    @property
    def nodes(self) -> list[str]:
        """Each node as `name = op(inputs; attributes)`."""
        return [
            f"{node.name} = {node.op}({', '.join(node.inputs)}"
            f"{'; ' * bool(node.attributes)}{', '.join(text for _, text in node.attributes)})"
            + f" in {node.module}"
            * bool(node.module)
            for node in self.walk.nodes
        ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("return 5", Known(5)), ("return", NOTHING), ("pass", NOTHING), ("return x", Value("x")),
        ("return -3", Known(-3)), ("return -x", Value("x")), ("return not True", Known(False)),
        ("return not x", Value("x")), ("return -'a'", Known("a")), ("return inf", Known(torch.inf)),
        ("return torch.float32", Named("torch.float32")), ("return self.size", Known(3)),
        ("return self.name", Known("net")), ("return self.nothing", NOTHING),
        ("return self.eps", Known(0.5)), ("return self.weight", Value("weight")),
        ("return self.inner", ModuleAt("inner")),
        ("return self.inner.deep", ModuleAt("inner.deep")),
        ("return self.object", Named("object")), ("return self.inner.gone", NOTHING),
        ("return x.shape", Value("x")), ("return getattr(self, 'weight')", Value("weight")),
        ("return annotate(List[Tensor], x)", Value("x")),
        ("return unchecked_cast(Tensor, y)", Value("y")),
        ("a, b = x, y\nreturn b", Value("y")), ("a, (b, c) = x, (1, y)\nreturn c", Value("y")),
        ("a : Tensor = y\nreturn a", Value("y")), ("a, b = x\nreturn b", Value("x")),
        ("return (x, y)[1]", Value("y")), ("return [x, y][-2]", Value("x")),
        ("return torch.__is__(x, None)", Known(False)),
        ("return torch.__isnot__(x, None)", Known(True)),
        ("return torch.__is__(None, None)", Known(True)),
        ("return torch.__isnot__(1, None)", Known(True)),
        ("return torch.__isnot__(None, None)", Known(False)),
        ("if self.training:\n    return x\nreturn y", Value("y")),
        ("if not self.training:\n    a = x\nelse:\n    a = y\nreturn a", Value("x")),
        ("with torch.no_grad():\n    a = y\nreturn a", Value("y")),
        ("with torch.no_grad():\n    return y\nreturn x", Value("y")),
        ("a = [x]\nb = torch.append(a, y)\nreturn a[1]", Value("y")),
        ("a = [x, y]\nb = torch.pop(a)\nreturn b", Value("y")),
        ("a = [y, x]\nb = torch.pop(a)\nreturn a[-1]", Value("y")),
        ("return self.flat[0]", Value("weight")), ("return self.lost[0]", Named("tensor")),
        ("return 'a' if 1 else 'b'", Named("ifexp")), ("return (1, 2)[2]", Named("getitem")),
    ],
)  # fmt: skip
def test_what_is_known_without_an_operation(source: str, expected: Any) -> None:
    found = Walked(source)
    assert found.result == expected and not found.nodes


@pytest.mark.parametrize(
    ("source", "nodes"),
    [
        ("return torch.add(x, y, alpha=2)", ["add = add(x, y; 2)"]),
        ("return ops.aten.add(x, x)", ["add = add(x)"]),
        ("return x.view(3, [-1, 2])", ["view = view(x; 3, [-1, 2])"]),
        ("a = torch.relu(x)\nreturn torch.relu(a)", ["relu = relu(x)", "relu_1 = relu(relu)"]),
        ("return self.twice(x)", ["mul = mul(x; 2)"]),
        ("return self.inner.forward(x)", ["mul = mul(x; 3) in inner"]),
        ("return self.inner.deep.forward(x, 4)", ["mul = mul(x; 4) in inner.deep"]),
        ("return __torch__.helper(x)", ["neg = neg(x)"]),
        ("return x + y", ["binop = binop(x, y)"]),
        ("return x[0]", ["getitem = getitem(x)"]),
        ("return (x, y)[x]", ["getitem = getitem(x, y)"]),
        ("return (x, y)[2]", ["getitem = getitem(x, y)"]),
        ("torch.neg(y)\nreturn x", ["neg = neg(y)"]),
        ("while bool(x):\n    y = torch.neg(y)\nreturn y", ["bool = bool(x)", "neg = neg(y)"]),
        ("for a in x:\n    y = torch.neg(a)\nreturn y", ["neg = neg(x)"]),
        ("if bool(x):\n    a = torch.neg(y)\nelse:\n    a = y\nreturn a",
         ["bool = bool(x)", "neg = neg(y)", "if = if(bool, neg, y)"]),
        ("if bool(x):\n    return torch.neg(y)\nelse:\n    return y",
         ["bool = bool(x)", "neg = neg(y)", "if = if(bool, neg, y)"]),
        ("if bool(x):\n    return torch.neg(y)\nreturn x", ["bool = bool(x)", "neg = neg(y)"]),
        ("if bool(x):\n    a = torch.neg(y)\nreturn a", ["bool = bool(x)", "neg = neg(y)"]),
        ("a = [x]\nif bool(x):\n    b = torch.append(a, y)\nreturn a",
         ["bool = bool(x)", "append = append(x, y)", "if = if(bool, append, x)"]),
        ("a = [x]\nb = torch.insert(a, 0, y)\nreturn a", ["insert = insert(x, y; 0)"]),
        ("a = [y, x]\nb = torch.pop(a, 0)\nreturn b", ["pop = pop(y, x; 0)"]),
    ],
)  # fmt: skip
def test_the_operations_of_a_statement(source: str, nodes: list[str]) -> None:
    found = Walked(source)
    assert found.nodes == nodes
    assert found.walk.has_loop == source.startswith(("while", "for")) and not found.walk.unsure


def test_what_a_branch_changes_is_told_in_the_order_in_which_the_names_were_made() -> None:
    names = "a, b, c, d, e, f"
    changes = "".join(f"    {name} = torch.neg({name})\n" for name in names.split(", "))
    found = Walked(f"{names} = {'x, ' * 6}\nif bool(y):\n{changes}return a")
    assert found.nodes[7:] == [
        f"if{end} = if(bool, neg{end}, x)" for end in ("", "_1", "_2", "_3", "_4", "_5")
    ]


def test_a_program_that_is_too_large_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooLargeError):
        Walked("return __torch__.endless(x)")
    monkeypatch.setattr(script_walk, "MAX_NODES", 2)
    assert len(Walked("torch.neg(x)\ntorch.neg(x)").nodes) == 2
    with pytest.raises(TooLargeError):
        Walked("torch.neg(x)\ntorch.neg(x)\ntorch.neg(x)")
    monkeypatch.setattr(script_values, "MAX_ITEMS", 4)
    inner = Several.of([Value("a"), Value("b")])
    assert inner.size == 3 and Several.of([inner]).size == 4
    with pytest.raises(TooLargeError):
        Several.of([inner, Value("c")])
    monkeypatch.setattr(script_walk, "MAX_CALLS", 2)
    assert Walked("return __torch__.helper(x)").nodes == ["neg = neg(x)"]
    monkeypatch.setattr(script_walk, "MAX_CALLS", 1)
    with pytest.raises(TooLargeError):
        Walked("return __torch__.helper(x)")
