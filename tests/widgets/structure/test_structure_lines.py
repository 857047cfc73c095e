"""Lines of Python that act on modules and parameters, and torch's functions of initialising."""

from __future__ import annotations

import ast
import inspect

import pytest
from torch import nn

from tests.widgets.structure.small_structure import MODULES, WEIGHTS
from widgets.structure.lines import (
    EVAL,
    FREEZE,
    INITIALISERS,
    TRAIN,
    UNFREEZE,
    action_lines,
    initialising_lines,
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
