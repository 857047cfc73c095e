"""Lines of Python that act on modules and parameters, and torch's functions of initialising."""

from __future__ import annotations

import ast
import inspect

import pytest
import torch
from torch import nn

from engine.subjects.structure import weight_rows
from tests.widgets.structure.small_structure import MODULES, WEIGHTS
from widgets.structure.python_lines import (
    EVAL,
    FREEZE,
    INITIALISERS,
    TRAIN,
    UNFREEZE,
    action_lines,
    initialising_lines,
    tying_line,
    why_not_tied,
)


def test_lines_reach_what_is_selected():
    assert action_lines(FREEZE, "model", MODULES[:1]) == ["model.requires_grad_(False)"]
    assert action_lines(EVAL, "nets[0]", MODULES[2:3]) == ["nets[0].body[0].eval()"]
    assert action_lines(TRAIN, "Net(3)", MODULES[4:]) == ["Net(3).head.train()"]
    assert action_lines(UNFREEZE, "a or b", WEIGHTS[:2]) == [
        "(a or b).body[0].weight.requires_grad_(True)",
        "(a or b).body[0].bias.requires_grad_(True)",
    ]
    assert initialising_lines("normal_", " std=0.02", "net", WEIGHTS[6:7]) == [
        "torch.nn.init.normal_(net.head.weight, std=0.02)"
    ]
    assert initialising_lines("zeros_", "", "net", WEIGHTS[7:]) == [
        "torch.nn.init.zeros_(net.head.bias)"
    ]


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.inner = nn.Module()
        self.inner.register_parameter("w w", nn.Parameter(torch.ones(5, 3)))
        self.all = nn.ParameterList([torch.ones(5, 3), torch.ones(3)])


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        ("emb.weight", "head.weight", "net.head.weight = net.emb.weight"),
        ("head.weight", "all.0", "net.all[0] = net.head.weight"),
        (
            "emb.weight",
            "inner.w w",
            "net.inner.register_parameter('w w', net.emb.weight)",
        ),
        ("inner.w w", "emb.weight", "net.emb.weight = net.inner.get_parameter('w w')"),
    ],
)
def test_a_line_ties_two_parameters(first, second, line):
    net = Pair()
    rows = {row.name: row for row in weight_rows(net)}
    assert why_not_tied(rows[first], rows[second]) == ""
    assert tying_line("net", rows[first], rows[second]) == line
    kept = net.get_parameter(first)
    exec(line, {"net": net})
    assert net.get_parameter(second) is kept is net.get_parameter(first)
    rows = {row.name: row for row in weight_rows(net)}
    assert rows[second].shared_with == (first,)
    assert "one tensor already" in why_not_tied(rows[first], rows[second])


def test_parameters_of_other_shapes_are_not_tied():
    rows = {row.name: row for row in weight_rows(Pair())}
    words = "Only parameters of equal shapes can be tied; these have (5, 3) and (3,)."
    assert why_not_tied(rows["emb.weight"], rows["all.1"]) == words


@pytest.mark.parametrize("initialiser", INITIALISERS, ids=lambda one: one.name)
def test_an_initialiser_has_the_arguments_and_defaults_of_torch(initialiser):
    function = getattr(nn.init, initialiser.name)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    wanted = {p.name: p.default for p in parameters if p.name != "generator"}
    call = ast.parse(f"f({initialiser.arguments})", mode="eval").body
    assert isinstance(call, ast.Call) and not call.args
    given = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    assert given.keys() == wanted.keys()
    for name, default in wanted.items():
        assert default in (inspect.Parameter.empty, given[name])
