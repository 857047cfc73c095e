"""Commands about the model that begin, end and tell: a forward pass, weights, the canvas."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from app.templates import load_template
from engine.lab import Lab
from engine.project.document import Loading, Model, replace
from engine.protocol import (
    CheckModelCommand,
    Command,
    InitialiseCommand,
    MoveForwardCommand,
    RunCellCommand,
    StartBackwardCommand,
    StartForwardCommand,
)
from engine.server.session import handler_of
from engine.system.errors import LabError

MLP = load_template("mlp")
OF_MLP: dict[str, Any] = {"model": MLP.model, "training": MLP.training}


@pytest.fixture
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


def ask(lab: Lab, command: Command) -> list[Any]:
    return [s for s in handler_of(type(command))(lab, command) if s is not None]


def variable(lab: Lab, name: str) -> Any:
    return lab.console.namespace.variables[name]


def test_a_forward_pass_that_cannot_begin_ends_the_one_before(lab: Lab) -> None:
    ask(lab, StartForwardCommand(**OF_MLP))
    ask(lab, StartBackwardCommand())
    with pytest.raises(LabError):
        ask(lab, StartForwardCommand(model=Model(), training=MLP.training))
    assert lab.models.forward is None and lab.backward.under_way is None
    with pytest.raises(LabError, match="Batch 999 does not exist") as refused:
        ask(lab, StartForwardCommand(**OF_MLP, batch=999))
    assert refused.value.hint == "Choose another batch."


def test_a_batch_of_the_users_sampler_is_the_one_that_runs(lab: Lab) -> None:
    data = replace(MLP.training.data, loading=Loading(sampler="order"))
    setup = replace(MLP.training, data=data, batch_size=3)
    lab.console.namespace.variables["order"] = [7, 5, 3, 2, 1, 0]
    ask(lab, StartForwardCommand(model=MLP.model, training=setup, batch=1))
    forward = lab.models.require_forward()
    whole = lab.models.require_forward().x
    ask(lab, StartForwardCommand(model=MLP.model, training=setup, batch=0))
    first = lab.models.require_forward()
    assert len(whole) == len(first.x) == 3 and forward.batch == 1
    lab.console.namespace.variables["order"] = [2, 1, 0]
    ask(lab, StartForwardCommand(model=MLP.model, training=setup, batch=0))
    assert torch.equal(lab.models.require_forward().x, whole)
    assert torch.equal(lab.models.require_forward().y, forward.y)


def test_weights_are_told_with_their_seed(lab: Lab) -> None:
    setup = replace(MLP.training, seed=7)
    (told,) = ask(lab, InitialiseCommand(model=MLP.model, training=setup))
    assert told.origin == "initialised with seed 7" and not told.learnt
    module = lab.models.live_model(MLP.model, 7).module
    assert told.parameters == sum(p.numel() for p in module.parameters())


def test_a_check_shows_the_canvas_to_the_console(lab: Lab) -> None:
    ask(lab, CheckModelCommand(**OF_MLP))
    ask(lab, RunCellCommand(source="shown = canvas.model"))
    live = lab.models.live_model(MLP.model, MLP.training.seed)
    assert variable(lab, "shown") is live.module
    ask(lab, StartForwardCommand(**OF_MLP))
    for move in ("step", "end", "step", "reset", "back"):
        (told,) = ask(lab, MoveForwardCommand(move=move))
    assert told.position == 0 and isinstance(live.module, nn.Module)
