"""Stepping forward: bit for bit the module, forth and back, and it changes nothing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from engine.models.forward import LOSS, ForwardPass
from engine.models.live import LiveModel
from engine.project.document import Model
from engine.system.errors import LabError
from tests.engine.models.strategies import chain

CROSS_ENTROPY = nn.CrossEntropyLoss()


def cnn() -> Model:
    return chain(
        ("Input", {"shape": (1, 8, 8)}), ("nn.Conv2d", {}), ("nn.BatchNorm2d", {}), ("nn.ReLU", {}),
        ("nn.Dropout", {}), ("nn.Flatten", {}),
        ("nn.Linear", {"in_features": 288, "out_features": 10}), ("Output", {}),
    )  # fmt: skip


def batch(size: int = 16) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(size, 1, 8, 8, generator=generator)
    return x, torch.randint(10, (size,), generator=generator)


def start(live: LiveModel) -> ForwardPass:
    return ForwardPass(live, *batch(), CROSS_ENTROPY, seed=7)


def test_it_is_bit_for_bit_the_module_and_changes_nothing():
    live = LiveModel(cnn(), seed=0)
    before = {key: value.clone() for key, value in live.module.state_dict().items()}
    state = torch.get_rng_state()
    run = start(live)
    assert run.order == (*(f"b{i}" for i in range(8)), LOSS)
    while not run.done:
        run.step()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(live.module.state_dict()[key], before[key]) for key in before)

    x, y = batch()
    torch.manual_seed(7)
    prediction = live.module.train()(x)
    loss = CROSS_ENTROPY(prediction, y)
    assert torch.equal(run.values["b7"][0], prediction)
    assert run.loss is not None and torch.equal(run.loss, loss)
    assert run.snapshot().loss == loss.item()
    # What the plain pass has done to the running statistics, ours has done to its copy.
    theirs = dict(live.module.named_buffers())
    assert all(torch.equal(theirs[name], ours) for name, ours in run.state.named_buffers())


def test_plain_is_the_reference_and_gradients_agree():
    live = LiveModel(cnn(), seed=0)
    run = start(live)
    run.end()
    parameters = [p for _, p in run.state.named_parameters()]
    assert run.loss is not None
    ours = torch.autograd.grad(run.loss, parameters)
    plain = run.plain()
    assert torch.equal(plain, run.loss)
    theirs = torch.autograd.grad(plain, parameters)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["step", "back", "reset", "end", "b2", "b4", LOSS]), max_size=12))
def test_any_way_there_leads_to_the_same_loss(moves: list[str]):
    run = start(LIVE)
    for move in moves:
        if move == "step" and not run.done:
            run.step()
        elif move in ("back", "reset", "end"):
            getattr(run, move)()
        elif move not in ("step",):
            run.run_to(move)
            assert run.order[run.position - 1] == move
        assert list(run.values) == list(run.order[: run.position]) == list(run.sequence_ranges)
    run.end()
    assert run.loss is not None and torch.equal(run.loss, run.plain())


LIVE = LiveModel(cnn(), seed=0)


def test_sequence_ranges_hold_the_nodes_that_each_block_made():
    run = start(LIVE)
    run.end()
    for block_id, (first, after) in run.sequence_ranges.items():
        node = run.values[block_id][-1].grad_fn
        if block_id in ("b0",):
            assert node is None and first == after
        elif block_id != "b7":  # the Output makes no node
            assert node is not None and first <= node._sequence_nr() < after
    assert run.sequence_ranges["b7"][0] == run.sequence_ranges["b7"][1]


def test_the_model_keeps_its_mode():
    live = LiveModel(cnn(), seed=0)
    live.module.eval()
    start(live).end()
    assert not any(module.training for module in live.module.modules())


def test_a_snapshot_shows_what_has_run():
    run = start(LIVE)
    first = run.snapshot()
    assert (first.activations, first.current, first.inputs) == ((), (), ())
    run.run_to("b1")
    snapshot = run.snapshot()
    assert [activation.block for activation in snapshot.activations] == ["b0", "b1"]
    (value,), (given,) = snapshot.current, snapshot.inputs
    assert given.label == "input" and given.summary.shape == tuple(batch()[0].shape)
    assert given.summary.mean == pytest.approx(batch()[0].double().mean().item())
    expected = LIVE.module.get_submodule("conv_b1")(batch()[0])
    assert value.summary.shape == (16, 8, 6, 6) == tuple(expected.shape)
    assert value.summary.mean == pytest.approx(expected.double().mean().item())
    assert value.picture is not None and snapshot.loss is None and snapshot.batch_size == 16


def test_several_outputs_are_kept_in_the_ports_order():
    model = chain(
        ("Input", {"shape": (8, 8)}), ("nn.LSTM", {"hidden_size": 10}), ("torch.select", {}),
        ("Output", {}),
    )  # fmt: skip
    live = LiveModel(model, seed=0)
    x, y = batch()
    run = ForwardPass(live, x.squeeze(1), y, CROSS_ENTROPY, seed=0)
    run.run_to("b1")
    output, (h_n, c_n) = live.module.get_submodule("lstm_b1")(x.squeeze(1))
    values = run.values["b1"]
    assert all(torch.equal(a, b) for a, b in zip(values, (output, h_n, c_n), strict=True))
    assert [value.label for value in run.snapshot().current] == ["output", "h_n", "c_n"]


def test_an_edit_of_the_model_does_not_disturb_a_pass_under_way():
    live = LiveModel(cnn(), seed=0)
    run = start(live)
    run.run_to("b2")
    live.sync(chain(("Input", {"shape": (3,)}), ("nn.ReLU", {}), ("Output", {})), seed=0)
    run.end()
    assert run.loss is not None and torch.equal(run.loss, run.plain())
    with pytest.raises(LabError, match="not part of the forward pass"):
        run.run_to("gone")


def test_a_block_that_fails_is_named_and_the_pass_stands():
    live = LiveModel(cnn(), seed=0)
    x, y = batch()
    run = ForwardPass(live, x.expand(-1, 2, -1, -1), y, CROSS_ENTROPY, seed=0)
    run.step()
    with pytest.raises(LabError) as error:
        run.step()
    (problem,) = error.value.problems
    assert problem.block == "b1" and "expects 1 channels, gets 2" in problem.message
    assert "RuntimeError" in problem.detail and run.position == 1
    wrong_labels = ForwardPass(live, x, y + 90, CROSS_ENTROPY, seed=0)
    with pytest.raises(LabError, match="The loss cannot be computed"):
        wrong_labels.end()
    assert wrong_labels.position == 8


def test_back_gives_the_running_statistics_as_they_were():
    run = start(LIVE)
    run.run_to("b1")
    before = {name: buffer.clone() for name, buffer in run.state.named_buffers()}
    run.run_to("b2")
    after = dict(run.state.named_buffers())  # the same tensors throughout: written in place
    assert len(before) == 3 and not any(torch.equal(after[name], before[name]) for name in before)
    run.back()
    assert all(torch.equal(after[name], before[name]) for name in before)
    run.run_to("b2")
    run.reset()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_gradients_of_the_live_model_are_not_those_of_the_pass():
    live = LiveModel(cnn(), seed=0)
    x, y = batch()
    CROSS_ENTROPY(live.module(x), y).backward()
    run = start(live)
    assert all(p.grad is None for _, p in run.state.named_parameters())
    assert all(p.grad is not None for p in live.module.parameters())
    run.end()
    assert run.loss is not None
    run.loss.backward()
    for (_, ours), theirs in zip(
        run.state.named_parameters(), live.module.parameters(), strict=True
    ):
        assert ours.grad is not None and ours.grad is not theirs.grad
        torch.testing.assert_close(ours.grad, torch.autograd.grad(run.plain(), ours)[0])


@pytest.mark.parametrize("loss", [CROSS_ENTROPY, nn.functional.cross_entropy])
def test_the_recording_names_the_block_of_every_call(loss):
    """A block or loss that is not a module is recorded as if it were one, and a module but once."""
    model = chain(
        ("Input", {"shape": (1, 8, 8)}), ("nn.Flatten", {}), ("torch.softmax", {}),
        ("nn.Linear", {"in_features": 64, "out_features": 10}), ("Output", {}),
    )  # fmt: skip
    run = ForwardPass(LiveModel(model, seed=0), *batch(), loss, seed=7)
    run.end()
    names = [run.path_of(block) for block in ("b0", "b1", "b2", "b3", LOSS)]
    modules = [call for call in run.recording.calls if call.kind == "module"]
    assert [call.module for call in modules] == names and names[-1] == LOSS
    titles = [
        "Input",
        "Flatten",
        "softmax",
        "Linear",
        getattr(loss, "__name__", "CrossEntropyLoss"),
    ]
    assert [call.name for call in modules] == titles
    assert {call.module for call in run.recording.calls if call.kind == "op"} == set(names[1:])


def test_another_pass_keeps_what_a_block_that_fails_ran():
    x, y = batch()
    run = ForwardPass(LiveModel(cnn(), seed=0), x, y + 90, CROSS_ENTROPY, seed=0)
    for each, kept in ((run, False), (run.again(), True)):
        assert each.position == 0
        with pytest.raises(LabError, match="The loss cannot be computed"):
            each.end()
        assert any(call.error for call in each.recording.calls) is kept


def test_a_block_that_failed_draws_the_same_numbers_again():
    drawn: list[float] = []

    def loss(prediction: Tensor, labels: Tensor) -> Tensor:
        drawn.append(torch.rand(()).item())
        if len(drawn) == 1:
            raise RuntimeError("not yet")
        return CROSS_ENTROPY(prediction, labels)

    run = ForwardPass(LIVE, *batch(), loss, seed=7)
    with pytest.raises(LabError, match="not yet"):
        run.end()
    run.end()
    assert len(drawn) == 2 and drawn[0] == drawn[1]
