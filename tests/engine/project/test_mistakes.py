"""The code of every mistake does what its words say; the code to write instead does not."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from engine.autograd import BackwardStepper, read_graph
from engine.autograd.graph.stale import stale_saves
from engine.project.examples import mistakes
from engine.protocol import CellSnapshot, RunCellCommand
from engine.server.session import Session

MISTAKES = mistakes()


def run(code: str):
    answers: list = []
    session = Session(answers.append)
    session.handle(RunCellCommand(source=code))
    (cell,) = [a for a in answers if isinstance(a, CellSnapshot)]
    return cell, session.lab.console.namespace.variables


def made(key: str):
    return run(MISTAKES[key].wrong)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_it_happens_as_told(mistake):
    cell, variables = run(mistake.wrong)
    assert cell.ok == (not mistake.error)
    if mistake.error:
        assert cell.error.type == mistake.error
        assert cell.error.hint, "an error that is taught has plain words in the console too"
    if mistake.missing:
        asks_a_non_leaf = mistake.key == "not_a_leaf"
        with pytest.warns(UserWarning) if asks_a_non_leaf else nullcontext():
            assert variables[mistake.missing].grad is None
    graph = read_graph(variables[mistake.root])
    assert graph.nodes and mistake.look


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_what_to_write_instead_is_right(mistake):
    cell, variables = run(mistake.right)
    assert cell.ok, cell.error
    if mistake.missing:
        assert variables[mistake.missing].grad is not None


def test_what_is_said_of_the_graphs_holds():
    _, freed = made("freed")
    (saved,) = read_graph(freed["y"]).nodes[0].saved
    assert saved.data is None and "freed" in saved.note
    _, overwritten = made("overwritten")
    (stale,) = stale_saves(read_graph(overwritten["z"]).nodes)
    assert (stale.node.name, stale.version) == ("ExpBackward0", 1)
    _, stepped = made("step_before_backward")
    (stale,) = stale_saves(read_graph(stepped["second"]).nodes)
    assert stale.node.name == "AddmmBackward0" and stale.node.id <= 1
    _, unused = made("unused")
    assert sum(node.is_leaf for node in read_graph(unused["loss"]).nodes) == 1
    _, item = made("item")
    assert sum(node.is_leaf for node in read_graph(item["loss"]).nodes) == 1
    _, once = made("once_differentiable")
    assert "Error" in {node.name for node in read_graph(once["g"]).nodes}


def test_gradients_that_add_up():
    _, variables = made("no_zero_grad")
    w = variables["w"]
    assert w.grad == 18
    w.grad = None
    loss = 3 * w**2 / 2
    for expected in (6, 12, 18):
        with BackwardStepper(loss) as stepper:
            stepper.run()
        assert w.grad == expected


def test_the_losses_that_are_kept():
    _, kept = made("kept_losses")
    graph = read_graph(kept["total"])
    assert sum(node.name == "PowBackward0" for node in graph.nodes) == 3
    assert any("freed" in saved.note for node in graph.nodes for saved in node.saved)
    _, variables = run(MISTAKES["kept_losses"].right)
    assert variables["losses"] == [loss.item() for loss in kept["losses"]]


def test_the_hook_that_stays():
    _, variables = made("hook_stays")
    assert variables["w"].grad == 12
    _, removed = run(MISTAKES["hook_stays"].right)
    assert removed["w"].grad == 6


def test_the_nan_is_made_at_the_root():
    _, variables = made("nan_where")
    y, x = variables["y"], variables["x"]
    assert torch.isfinite(y).all() and x.grad.isnan().tolist() == [True, False]
    with BackwardStepper(y, torch.ones(2)) as stepper:
        culprits = []
        while (step := stepper.step()) is not None:
            incoming = all(g is None or g.isfinite().all() for g in step.incoming)
            outgoing = all(g is None or g.isfinite().all() for g in step.outgoing)
            if incoming and not outgoing:
                culprits.append(step.node.name)
    assert culprits == ["SqrtBackward0"]
