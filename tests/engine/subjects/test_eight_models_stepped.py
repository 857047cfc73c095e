"""The loss of a step of each model file, stepped backward node by node, against `backward()`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from engine.handlers.subjects.find import find_subject
from engine.lab import Lab
from engine.project.document import Model
from engine.project.subject import ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    BackwardSnapshot,
    CompareGradientsCommand,
    GraphSnapshot,
    MoveBackwardCommand,
    ReadBackwardCodeCommand,
    RunCellCommand,
    RunFileCommand,
    StartBackwardCommand,
    WhyNoGradientCommand,
    join_graph,
)
from engine.system.errors import LabError

from .conftest import Ask, Write
from .eight import SEED, SETUP, Case, imported
from .test_eight_models import every_file, module_of, opened


@pytest.fixture(autouse=True)
def nothing_stays_held(lab: Lab) -> Any:
    yield
    lab.close()


def start(case: Case, **options: Any) -> StartBackwardCommand:
    return StartBackwardCommand(
        subject=case.subject, objective=case.objective, training=SETUP, **options
    )


def plain_gradients(case: Case, batch: int) -> dict[str, Tensor | None]:
    """Those of `loss.backward()`, for a batch of the loop that begins after the seed."""
    with imported(case.path) as file:
        model = case.model(file).train()
        torch.manual_seed(SEED)
        batches = iter(case.batches(file))
        for _ in range(batch):
            next(batches)
        case.loss(file, model, next(batches)).backward()
        return {name: p.grad for name, p in model.named_parameters()}


def same(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b if a is None or b is None else torch.equal(a, b)


@every_file
@pytest.mark.parametrize(("real_engine", "batch"), [(False, 0), (False, 1), (True, 0)])
def test_stepped_gradients_are_those_of_backward(
    lab: Lab, ask: Ask, case: Case, real_engine: bool, batch: int
) -> None:
    expected = plain_gradients(case, batch)
    opened(lab, case)
    module = module_of(lab, case)
    state = {name: (t, t.clone()) for name, t in module.state_dict(keep_vars=True).items()}
    random = torch.get_rng_state()
    *parts, begun = ask(start(case, real_engine=real_engine, batch=batch))
    assert isinstance(begun, BackwardSnapshot) and begun.position == 0
    assert all(isinstance(part, GraphSnapshot) for part in parts)
    assert parts[0].root == "loss"
    assert torch.equal(torch.get_rng_state(), random)
    assert {row.name for row in begun.gradients if row.missing} == {
        name for name, gradient in expected.items() if gradient is None
    }
    assert all(p.grad is None for p in module.parameters())
    for _ in range(3):
        (stepped,) = ask(MoveBackwardCommand(move="step"))
    assert stepped.position == 3
    (done,) = ask(MoveBackwardCommand(move="end"))
    assert done.next is None
    for name, gradient in expected.items():
        assert same(module.get_parameter(name).grad, gradient), name
    for name, (tensor, value) in state.items():  # a step that is looked at changes nothing else
        assert module.state_dict(keep_vars=True)[name] is tensor and torch.equal(tensor, value)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    if not real_engine:
        (compared,) = ask(CompareGradientsCommand())
        assert compared.max_difference == 0.0


@every_file
def test_nodes_name_the_users_lines_and_modules(lab: Lab, ask: Ask, case: Case) -> None:
    opened(lab, case)
    *parts, _ = ask(start(case))
    nodes = join_graph([part for part in parts if isinstance(part, GraphSnapshot)]).nodes
    module = module_of(lab, case)
    names = dict(module.named_parameters())
    leaves = [node.label for node in nodes if node.op == "AccumulateGrad" or node.label in names]
    assert leaves and set(leaves) <= names.keys()
    title = type(module).__name__
    inside = {f"{title}.{path}" if path else title for path, _ in module.named_modules()}
    assert {node.module for node in nodes} & inside
    lines = {node.source.file for node in nodes if node.source is not None}
    assert str(case.path) in lines


def test_a_step_that_raises_shows_the_users_lines_and_changes_nothing(
    ask: Ask, lab: Lab, write: Write
) -> None:
    path = write(
        "net.py",
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(3)

            def forward(self, x):
                x = self.norm(x)
                raise ValueError("not yet")

        data = torch.randn(4, 3), torch.randn(4, 3)

        def step(model, batch):
            return model(batch[0]).sum()
        """,
    )
    ask(RunFileCommand(path=str(path)))
    subject = FileSubject(str(path), "Net")
    with pytest.raises(ValueError, match="not yet"):
        ask(StartBackwardCommand(subject=subject, objective=Objective("data"), training=SETUP))
    module = find_subject(lab, subject, Model(), SETUP).module
    assert module.norm.num_batches_tracked == 0 and module.training
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    with pytest.raises(LabError, match="No backward pass is under way"):
        ask(MoveBackwardCommand(move="step"))


CELL = """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
net.spare = nn.Parameter(torch.ones(2))
net[0].bias.requires_grad_(False)
data = torch.randn(8, 3), torch.randn(8, 1)
"""


def test_a_module_of_the_console_is_stepped_too(ask: Ask, lab: Lab) -> None:
    ask(RunCellCommand(source=CELL))
    net = lab.console.namespace.variables["net"]
    x, y = lab.console.namespace.variables["data"]
    step = "def step(batch):\n    x, y = batch\n    return ((model(x) - y) ** 2).mean()"
    command = StartBackwardCommand(
        subject=ConsoleSubject("net"), objective=Objective(data="data", step=step), training=SETUP
    )
    *_, begun = ask(command)
    missing = {row.name: row.missing for row in begun.gradients if row.missing}
    assert missing == {"spare": "no_path", "0.bias": "not_required"}
    ask(MoveBackwardCommand(move="end"))
    ours = {name: p.grad for name, p in net.named_parameters()}
    net.zero_grad()
    torch.manual_seed(SEED)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), SETUP.batch_size, shuffle=True
    )
    x, y = next(iter(loader))
    ((net(x) - y) ** 2).mean().backward()
    for name, p in net.named_parameters():
        assert same(p.grad, ours[name])
    (why,) = ask(WhyNoGradientCommand(name="spare"))
    assert why.reason == "no_path"
    with pytest.raises(LabError, match="starts at variables of the console"):
        ask(ReadBackwardCodeCommand())


@pytest.mark.filterwarnings("ignore:.*create_graph=True.*:UserWarning")
def test_the_graph_of_its_gradient_is_stepped_and_not_copied_as_code(ask: Ask, lab: Lab) -> None:
    ask(RunCellCommand(source=CELL))
    subject, objective = ConsoleSubject("net"), Objective(data="data")
    command = StartBackwardCommand(
        subject=subject, objective=objective, training=SETUP, create_graph=True
    )
    ask(command)
    ask(MoveBackwardCommand(move="end"))
    *_, begun = ask(StartBackwardCommand(of="0.weight", create_graph=True))
    assert begun.position == 0
    with pytest.raises(LabError, match="starts at variables of the console"):
        ask(ReadBackwardCodeCommand())
    lab.console.namespace.variables["net"].zero_grad()


def test_a_loss_without_a_graph_is_told(ask: Ask) -> None:
    ask(RunCellCommand(source=CELL + "net.requires_grad_(False)"))
    step = "def step(batch):\n    return model(batch[0]).sum()"
    with pytest.raises(LabError, match="has no graph"):
        ask(
            StartBackwardCommand(
                subject=ConsoleSubject("net"),
                objective=Objective(data="data", step=step),
                training=SETUP,
            )
        )
