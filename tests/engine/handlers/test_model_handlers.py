"""Commands about models, answered by a lab, and the templates that projects start from."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import pytest
import torch
from torch import nn

from engine.datasets.load import load_dataset
from engine.handlers import models as handlers
from engine.handlers.backward import start_backward
from engine.lab import Lab
from engine.models.check import check
from engine.models.live import LiveModel
from engine.project import files
from engine.project.document import Model, Project, TrainingSetup
from engine.protocol import (
    CheckModelCommand,
    ForwardSnapshot,
    InitialiseCommand,
    ModelSnapshot,
    MoveForwardCommand,
    StartBackwardCommand,
    StartForwardCommand,
    WeightsSnapshot,
    encode_snapshot,
)
from engine.system.errors import LabError
from tests.engine.models.strategies import chain

FOLDER = Path(__file__).parents[3] / "assets" / "templates"
TEMPLATES = sorted(path.stem for path in FOLDER.glob("*.tlab"))
SETUP = TrainingSetup(batch_size=32)


def mlp(*loss: tuple[str, dict]) -> Model:
    return chain(
        ("Input", {"shape": (1, 8, 8)}), ("nn.Flatten", {}), ("nn.Linear", {"out_features": 10}),
        *(loss or (("Output", {}),)),
    )  # fmt: skip


@pytest.fixture
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


def start(lab: Lab, model: Model, setup: TrainingSetup = SETUP, batch: int = 0) -> ForwardSnapshot:
    command = StartForwardCommand(model=model, training=setup, batch=batch)
    (snapshot,) = handlers.start_forward(lab, command)
    assert isinstance(snapshot, ForwardSnapshot)
    return snapshot


def test_check_answers_and_leaves_the_live_model_alone(lab: Lab):
    (snapshot,) = handlers.check_model(lab, CheckModelCommand(model=mlp(), training=SETUP))
    assert isinstance(snapshot, ModelSnapshot) and snapshot.runnable and lab.models.live is None


def test_initialise_forgets_the_weights(lab: Lab):
    command = InitialiseCommand(model=mlp(), training=SETUP)
    (snapshot,) = handlers.initialise(lab, command)
    assert isinstance(snapshot, WeightsSnapshot) and snapshot.parameters == 650
    assert lab.models.live is not None
    weight = lab.models.live.module.get_parameter("linear_b2.weight")
    first = weight.detach().clone()
    with torch.no_grad():
        weight.zero_()
    list(handlers.initialise(lab, command))
    assert torch.equal(lab.models.live.module.get_parameter("linear_b2.weight"), first)


def test_forward_goes_through_the_training_batch(lab: Lab):
    assert start(lab, mlp(), batch=2).position == 0
    (snapshot,) = handlers.move_forward(lab, MoveForwardCommand(move="end"))
    assert lab.models.live is not None
    x, y = load_dataset(SETUP.data).train_batch(2, 32, SETUP.seed)
    expected = nn.functional.cross_entropy(lab.models.live.module(x), y).item()
    assert snapshot.loss == expected and snapshot.order[-1] == "loss" and snapshot.batch == 2
    moves: list[tuple[Literal["back", "step", "reset"], int]]
    moves = [("back", 4), ("step", 5), ("step", 5), ("reset", 0), ("back", 0)]
    for move, position in moves:
        (snapshot,) = handlers.move_forward(lab, MoveForwardCommand(move=move))
        assert snapshot.position == position
    (snapshot,) = handlers.move_forward(lab, MoveForwardCommand(move="to", target="b1"))
    assert snapshot.position == 2


def test_a_new_forward_pass_ends_the_consoles_backward_pass(lab: Lab):
    lab.console.namespace.variables["loss"] = torch.ones(2, requires_grad=True).sum()
    list(start_backward(lab, StartBackwardCommand(root="loss")))
    assert lab.backward.under_way is not None
    with pytest.raises(LabError):  # a pass that cannot begin leaves it alone
        start(lab, Model())
    assert lab.backward.under_way is not None
    start(lab, mlp())
    assert lab.backward.under_way is None


def test_a_loss_block_comes_before_the_training_set_up(lab: Lab):
    start(lab, mlp(("nn.MSELoss", {"reduction": "sum"})))
    (snapshot,) = handlers.move_forward(lab, MoveForwardCommand(move="end"))
    assert lab.models.live is not None and snapshot.order[-1] == "b3"
    x, y = load_dataset(SETUP.data).train_batch(0, 32, SETUP.seed)
    target = nn.functional.one_hot(y, 10).float()
    expected = nn.functional.mse_loss(lab.models.live.module(x), target, reduction="sum")
    assert snapshot.loss == pytest.approx(expected.item(), rel=1e-6)


def test_what_cannot_run_is_refused_with_its_problems(lab: Lab):
    model = chain(("Input", {"shape": (1, 8, 8)}), ("nn.Linear", {}), ("Output", {}))
    with pytest.raises(LabError) as error:
        start(lab, model)
    assert error.value.problems[0].block == "b1" and lab.models.forward is None
    with pytest.raises(LabError, match="Batch 999 does not exist"):
        start(lab, mlp(), batch=999)
    with pytest.raises(LabError, match="No forward pass"):
        list(handlers.move_forward(lab, MoveForwardCommand(move="step")))


# -- templates ------------------------------------------------------------------------------------


def template(name: str) -> Project:
    return files.load(FOLDER / f"{name}.tlab")


def test_the_index_lists_every_template():
    index = msgspec.json.decode((FOLDER / "index.json").read_bytes())
    assert sorted(entry["key"] for entry in index) == TEMPLATES and len(TEMPLATES) >= 5
    assert all(template(entry["key"]).name == entry["title"] for entry in index)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_clean_and_runs(name: str, lab: Lab):
    project = template(name)
    snapshot = check(project.model, project.training)
    assert snapshot.runnable and snapshot.problems == ()
    assert [report.problems for report in snapshot.blocks if report.problems] == []
    start(lab, project.model, project.training)
    for _ in lab.models.forward.order:
        (moved,) = handlers.move_forward(lab, MoveForwardCommand(move="step"))
        encode_snapshot(moved)
    assert lab.models.live is not None
    setup = project.training
    x, y = load_dataset(setup.data).train_batch(0, setup.batch_size, setup.seed)
    assert moved.loss == nn.functional.cross_entropy(lab.models.live.module(x), y).item()
    lab.models.forward.loss.backward()
    assert all(
        parameter.grad is not None for _, parameter in lab.models.forward.state.named_parameters()
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_code_of_a_template_is_its_live_model(name: str):
    project = template(name)
    namespace: dict = {"__name__": "generated"}
    exec(check(project.model, project.training).code, namespace)
    module, live = namespace["Model"](), LiveModel(project.model, seed=0).module
    module.load_state_dict(live.state_dict())
    x = torch.randn(4, 1, 8, 8)
    assert torch.equal(module(x), live(x))


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_two_blocks_of_a_template_overlap(name: str):
    blocks = template(name).model.blocks
    assert all(block.x % 8 == 0 and block.y % 8 == 0 for block in blocks)
    places = sorted((block.x, block.y) for block in blocks)
    for index, (x, y) in enumerate(places):
        assert all(abs(x - a) >= 192 or abs(y - b) >= 128 for a, b in places[index + 1 :])
