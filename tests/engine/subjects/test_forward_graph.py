"""The graph that one step records, with the module of each node, against plain torch."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from engine.lab import Lab
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    ForwardGraphSnapshot,
    GraphSnapshot,
    ReadForwardGraphCommand,
    RunCellCommand,
    RunFileCommand,
    join_graph,
)
from engine.system.errors import LabError

from .conftest import Ask
from .eight import CASES, SEED, SETUP, Case, imported


def read(ask: Ask, command: ReadForwardGraphCommand) -> GraphSnapshot:
    answers = ask(command)
    assert all(isinstance(answer, ForwardGraphSnapshot) for answer in answers)
    return join_graph([answer.graph for answer in answers])


def plain_nodes(loss: torch.Tensor) -> Counter[tuple[str, bool]]:
    """The nodes under a loss: how often each name occurs, and whether it is that of a leaf."""
    found, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [after for after, _ in node.next_functions]
    return Counter((node.name().rpartition("::")[2], hasattr(node, "variable")) for node in found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_graph_of_a_step_is_that_of_the_plain_loop(lab: Lab, ask: Ask, case: Case) -> None:
    ask(RunFileCommand(path=str(case.path)))
    before = torch.get_rng_state()
    command = ReadForwardGraphCommand(
        subject=case.subject, objective=case.objective, training=SETUP
    )
    graph = read(ask, command)
    assert torch.equal(torch.get_rng_state(), before) and lab.backward.under_way is None
    with imported(case.path) as file:
        model = case.model(file).train()
        torch.manual_seed(SEED)
        batch = next(iter(case.batches(file)))
        loss = case.loss(file, model, batch)
        expected = plain_nodes(loss)
        assert all(parameter.grad is None for parameter in model.parameters())
    told = Counter((node.name, node.kind == "leaf") for node in graph.nodes)
    assert told == expected
    title = type(model).__name__
    leaves = {node.label: node.module for node in graph.nodes if node.kind == "leaf"}
    paths = {part: f"{title}.{name}" if name else title for name, part in model.named_modules()}
    owners = {
        name: {paths[part] for part in paths if any(p is each for each in own(part))}
        for name, p in model.named_parameters()
    }
    assert all(module in owners[name] for name, module in leaves.items())
    inside = {node.module for node in graph.nodes if node.module.split(".")[0] == title}
    assert inside <= set(paths.values())


def own(part: torch.nn.Module) -> list[torch.nn.Parameter]:
    return list(part.parameters(recurse=False))


def test_a_loss_without_a_graph_is_refused(ask: Ask) -> None:
    source = (
        "net = nn.Linear(3, 2).requires_grad_(False)\nd = (torch.zeros(9, 3), torch.ones(9, 2))"
    )
    ask(RunCellCommand(source=source))
    command = ReadForwardGraphCommand(subject=ConsoleSubject("net"), objective=Objective(data="d"))
    with pytest.raises(LabError, match="no graph"):
        ask(command)
