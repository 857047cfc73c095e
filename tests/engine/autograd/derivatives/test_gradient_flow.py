"""Gradient flow against a plain training loop."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from torch import nn

from engine.autograd.derivatives.gradient_flow import (
    BIN_HIGH,
    BIN_LOW,
    BINS,
    INITIALISATIONS,
    alive_units,
    histogram_of,
    verdicts,
)
from engine.datasets.load import load_dataset
from engine.models.live import LiveModel
from engine.project.files import load
from engine.protocol import (
    ErrorSnapshot,
    FlowCommand,
    FlowHistogramsSnapshot,
    FlowSnapshot,
    InitialiseCommand,
    ReadFlowCommand,
)
from engine.server.session import Session
from engine.training.components.losses import make_loss
from engine.training.components.optimizers import make_optimizer

TEMPLATES = Path(__file__).parents[4] / "assets" / "templates"
MLP = load(TEMPLATES / "mlp.tlab")
LENET = load(TEMPLATES / "lenet.tlab")


def numbers(picture):
    return np.frombuffer(picture.data, "<f4").reshape(picture.shape)


def plain_loop(project, initialisation, steps):
    """Gradients of each step, by name, as everyone writes the loop."""
    setup = project.training
    module = LiveModel(project.model, setup.seed).module
    torch.manual_seed(setup.seed)
    INITIALISATIONS[initialisation](module)
    dataset = load_dataset(setup.data)
    loss_fn = make_loss(setup.loss, {})
    optimizer = make_optimizer(setup.optimizer, setup.optimizer_params, module.parameters())
    module.train()
    torch.manual_seed(setup.seed)
    gradients, losses = [], []
    for step in range(steps):
        x, y = dataset.train_batch(step, setup.batch_size, setup.seed)
        optimizer.zero_grad()
        loss = loss_fn(module(x), y)
        loss.backward()
        gradients.append({name: p.grad.clone() for name, p in module.named_parameters()})
        losses.append(loss.item())
        optimizer.step()
    return module, gradients, losses


def of_layer(gradients, layer):
    """All gradients of a layer, as one vector of doubles."""
    own = [g.double().reshape(-1) for n, g in gradients.items() if n.startswith(f"{layer}.")]
    return torch.cat(own)


@pytest.fixture
def session():
    answers = []
    session = Session(answers.append)
    session.answers = answers
    return session


def ask(session, command, kind):
    del session.answers[:]
    session.handle(command)
    return [a for a in session.answers if isinstance(a, kind)]


@pytest.mark.parametrize("project", [MLP, LENET], ids=["mlp", "lenet"])
def test_three_initialisations_side_by_side(session, project):
    chosen = ("default", "normal_0.01", "kaiming_normal")
    command = FlowCommand(
        model=project.model, training=project.training, steps=4, initialisations=chosen
    )
    got = {s.initialisation: s for s in ask(session, command, FlowSnapshot)}
    assert tuple(got) == chosen
    for name, snapshot in got.items():
        _, gradients, losses = plain_loop(project, name, 4)
        assert (snapshot.step, snapshot.steps, snapshot.ended) == (4, 4, "")
        assert snapshot.losses == pytest.approx(losses, rel=1e-6)
        for row, layer in enumerate(snapshot.layers):
            for step in range(4):
                grads = [
                    g.double() for n, g in gradients[step].items() if n.startswith(f"{layer}.")
                ]
                whole = torch.cat([g.reshape(-1) for g in grads])
                assert snapshot.parameters[row] == whole.numel()
                assert numbers(snapshot.rms)[row, step] == pytest.approx(
                    float(whole.square().mean().sqrt()), rel=1e-5
                )
            assert snapshot.norms[row] == pytest.approx(float(whole.norm()), rel=1e-5)


@pytest.mark.parametrize(
    ("step_s", "shown"), [(0.0, [4]), (0.09, [2, 4, 4]), (0.11, [1, 2, 3, 4, 4])]
)
def test_a_run_is_shown_ten_times_a_second_and_at_its_end(session, monkeypatch, step_s, shown):
    clock = itertools.count()
    monkeypatch.setattr("engine.handlers.flow.perf_counter", lambda: next(clock) * step_s)
    command = FlowCommand(
        model=MLP.model, training=MLP.training, steps=4, initialisations=("default",)
    )
    assert [snapshot.step for snapshot in ask(session, command, FlowSnapshot)] == shown


def test_no_steps_show_the_layers_without_figures(session):
    command = FlowCommand(
        model=MLP.model, training=MLP.training, steps=0, initialisations=("default",)
    )
    (snapshot,) = ask(session, command, FlowSnapshot)
    assert snapshot.layers == ("linear1", "linear2", "linear3") and snapshot.norms == ()
    assert (snapshot.step, snapshot.rms, snapshot.losses) == (0, None, ())


def test_a_layers_gradients_as_histograms(session):
    command = FlowCommand(model=MLP.model, training=MLP.training, steps=2)
    ask(session, command, FlowSnapshot)
    (got,) = ask(session, ReadFlowCommand(layer="linear2", step=1), FlowHistogramsSnapshot)
    assert [run.initialisation for run in got.runs] == list(command.initialisations)
    for run in got.runs:
        _, gradients, _ = plain_loop(MLP, run.initialisation, 2)
        grads = [
            gradients[1][f"linear2.{name}"].double().reshape(-1) for name in ("weight", "bias")
        ]
        sizes = torch.cat(grads).abs().numpy()
        edges = 10.0 ** np.linspace(BIN_LOW, BIN_HIGH, BINS + 1)
        counts, _ = np.histogram(sizes[sizes > 0].clip(edges[0], edges[-1] * 0.999), edges)
        assert run.zeros == int((sizes == 0).sum())
        assert np.abs(np.array(run.counts) - counts).sum() <= 2  # edges are not exact powers
        assert sum(run.counts) + run.zeros == sizes.size
        assert run.norm == pytest.approx(float(np.linalg.norm(sizes)), rel=1e-5)
    error = ask(session, ReadFlowCommand(layer="linear2", step=9), ErrorSnapshot)[0].error
    assert "step 9" in error.message


def test_zeros_let_no_gradient_past_the_last_layer(session):
    command = FlowCommand(
        model=MLP.model, training=MLP.training, steps=1, initialisations=("zeros",)
    )
    snapshot = ask(session, command, FlowSnapshot)[-1]
    last = snapshot.layers.index("linear3")
    for row in range(len(snapshot.layers)):
        assert (snapshot.norms[row] == 0) == (row != last)
        assert snapshot.verdicts[row] == ("" if row == last else "vanishing")
    assert numbers(snapshot.dead).tolist() == [[1.0], [1.0]]  # all stand exactly on the corner


def test_a_run_that_diverges_says_so(session):
    wild = msgspec.structs.replace(
        MLP.training, optimizer="optim.SGD", optimizer_params={"lr": 1e6}
    )
    command = FlowCommand(model=MLP.model, training=wild, steps=40, initialisations=("normal_1",))
    snapshot = ask(session, command, FlowSnapshot)[-1]
    assert "The loss became" in snapshot.ended and snapshot.step < 40
    assert np.isnan(numbers(snapshot.rms)[:, snapshot.step :]).all()


def test_the_labs_own_weights_are_left_alone(session):
    session.handle(InitialiseCommand(model=MLP.model, training=MLP.training))
    module = session.lab.models.live.module
    before = {k: v.clone() for k, v in module.state_dict().items()}
    state = torch.get_rng_state()
    ask(session, FlowCommand(model=MLP.model, training=MLP.training, steps=2), FlowSnapshot)
    assert all(torch.equal(before[k], v) for k, v in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())
    assert torch.equal(torch.get_rng_state(), state)


def test_too_many_steps_are_refused_with_what_fits(session):
    long = msgspec.structs.replace(MLP.training, epochs=1000)
    command = FlowCommand(model=MLP.model, training=long, steps=100_000)
    error = ask(session, command, ErrorSnapshot)[0].error
    assert "at most" in error.hint


def test_the_largest_layer_is_the_measure():
    nan = float("nan")
    norms = np.array([2.0, 1e4, 1e-9, float("inf"), 0.5], np.float32)
    rms = np.array([1.0, 0.5, 1e-12, float("inf"), 0.1], np.float32)
    assert verdicts(norms, rms) == ["", "exploding", "vanishing", "exploding", ""]
    assert verdicts(np.array([nan, nan]), np.array([nan, nan])) == ["", ""]


def test_histograms_count_every_size_once():
    sizes = torch.tensor([0.0, 1e-30, 1e-12, 1.0, 9.9e3, 1e30, float("inf"), float("nan")]).double()
    counts = histogram_of(sizes)
    assert counts.sum() == 5 and counts[0] == 2 and counts[-1] == 2
    assert counts[round((0 - BIN_LOW) / (BIN_HIGH - BIN_LOW) * BINS)] == 1


def test_units_on_a_flat_part_are_dead():
    out = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    assert alive_units(nn.ReLU(), out).tolist() == [False, True, True]
    assert alive_units(nn.ReLU6(), torch.tensor([[0.0, 3.0, 6.0]])).tolist() == [False, True, False]
    images = torch.zeros(2, 3, 4, 4)
    images[1, 2, 0, 0] = 1
    assert alive_units(nn.ReLU(), images).tolist() == [False, False, True]
    sequence = torch.zeros(2, 5, 3)
    sequence[0, 4, 1] = 1
    assert alive_units(nn.ReLU(), sequence).tolist() == [False, True, False]
