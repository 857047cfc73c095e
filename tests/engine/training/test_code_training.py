"""Training on the user's data with the user's step, against the loop that a user would write."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from engine.project.document import TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.figures.metrics import StepRow
from engine.training.loop import TrainingLoop
from engine.training.objectives.batches import (
    batches_of,
    generators_of,
    in_order,
    length_of,
    moved,
    samples_in,
    tensors_in,
)
from engine.training.objectives.code_objective import CodeObjective, compile_step, outcome_of

SETUP = TrainingSetup(optimizer_params={"lr": 0.01}, batch_size=16, epochs=3, seed=5)


def noisy() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)
    )


def samples(count: int = 70) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, 4, generator=torch.Generator().manual_seed(2))
    return x, x.sum(1, keepdim=True)


def squared(model: nn.Module) -> Callable[[tuple[Tensor, Tensor]], dict[str, Tensor | float]]:
    def step(batch: tuple[Tensor, Tensor]) -> dict[str, Tensor | float]:
        x, y = batch
        error = model(x) - y
        return {"loss": error.square().mean(), "bias": error.mean(), "rows": len(x)}

    return step


def by_hand(model: nn.Module, loader: DataLoader, validation: tuple[Tensor, Tensor]):
    """The plain loop; returns per step (loss, bias), per epoch the mean validation loss."""
    torch.manual_seed(SETUP.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step, steps, epochs = squared(model), [], []
    for _ in range(SETUP.epochs):
        model.train()
        for batch in loader:
            optimizer.zero_grad()
            figures = step(batch)
            figures["loss"].backward()
            optimizer.step()
            steps.append((figures["loss"].item(), figures["bias"].item()))
        model.eval()
        with torch.no_grad():
            epochs.append(step(validation)["loss"].item())
    return steps, epochs


def loop_of(model: nn.Module, data: object, validation: object | None = None) -> TrainingLoop:
    objective = CodeObjective(squared(model), data, validation, SETUP.batch_size)
    return TrainingLoop(model, SETUP, objective)


@pytest.mark.parametrize("form", ["tensors", "dataset", "loader", "function"])
def test_weights_and_figures_are_those_of_the_plain_loop(form: str) -> None:
    dataset, held = TensorDataset(*samples()), samples(20)
    loader = DataLoader(dataset, SETUP.batch_size, shuffle=True)
    data = {
        "tensors": samples(),
        "dataset": dataset,
        "loader": loader,
        "function": lambda: loader,
    }[form]
    plain, ours = noisy(), noisy()
    steps, epochs = by_hand(plain, loader, held)
    loop = loop_of(ours, data, held)
    for _ in loop.steps():
        pass
    loop.flush()
    assert all(
        torch.equal(a, b) for a, b in zip(plain.parameters(), ours.parameters(), strict=True)
    )
    assert all(torch.equal(a, b) for a, b in zip(plain.buffers(), ours.buffers(), strict=True))
    history = loop.metrics.history
    assert [row.loss for row in history] == pytest.approx([loss for loss, _ in steps])
    biases = [row.figures["bias"] for row in history]
    assert biases == pytest.approx([bias for _, bias in steps], abs=1e-6)
    assert [row.figures["rows"] for row in history] == [16, 16, 16, 16, 6] * 3
    assert all(math.isnan(row.accuracy) for row in history)
    # The held-out batches are of 16 and 4 rows; a mean over samples is that over all rows.
    assert [row.validation_loss for row in loop.metrics.epochs] == pytest.approx(epochs)
    first = loop.metrics.epochs[0]
    weighted = sum(loss * n for (loss, _), n in zip(steps[:5], [16, 16, 16, 16, 6], strict=True))
    assert first.train_loss == pytest.approx(weighted / 70)
    assert first.train_figures["rows"] == pytest.approx((4 * 16**2 + 6**2) / 70)
    assert first.validation_figures["rows"] == pytest.approx((16**2 + 4**2) / 20)
    assert math.isnan(first.train_accuracy)
    assert loop.total_steps == (None if form == "function" else 15)


def test_a_run_resumed_within_an_epoch_goes_on_bit_for_bit(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path))
    straight, broken = noisy(), noisy()
    whole = loop_of(straight, samples(), samples(20))
    for _ in whole.steps():
        pass
    first = loop_of(broken, samples(), samples(20))
    steps = first.steps()
    while first.step < 8:  # three batches into the second epoch
        next(steps)
    steps.close()
    path = checkpoint_files.save(first.checkpoint("run"))
    resumed_model = noisy()
    resumed = loop_of(resumed_model, samples(), samples(20))
    resumed.restore(checkpoint_files.load(path))
    for _ in resumed.steps():
        pass
    for a, b in zip(
        straight.state_dict().values(), resumed_model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)
    whole.flush()
    resumed.flush()
    assert untimed(resumed.metrics.history) == untimed(whole.metrics.history)
    assert repr(resumed.metrics.epochs) == repr(whole.metrics.epochs)  # some figures are NaN


def untimed(history: list[StepRow]) -> list[StepRow]:
    """Rows without what differs from run to run, and without NaN, which is not equal to itself."""
    rest = {"step_ms": 0, "rss_bytes": 0, "accuracy": 0, "samples_per_second": 0, "gpu_percent": 0}
    return [row._replace(**rest) for row in history]


def test_an_accuracy_of_the_step_takes_the_place_of_the_counted_one() -> None:
    model = nn.Linear(4, 2)
    x, y = samples(32)[0], torch.arange(32) % 2

    def step(batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        prediction = model(batch[0])
        right = (prediction.argmax(1) == batch[1]).float().mean()
        return {"loss": F.cross_entropy(prediction, batch[1]), "accuracy": right}

    loop = TrainingLoop(model, SETUP, CodeObjective(step, (x, y), (x, y), 16))
    for _ in loop.steps():
        pass
    loop.flush()
    assert all(0 <= row.accuracy <= 1 and not row.figures for row in loop.metrics.history)
    last = loop.metrics.epochs[-1]
    with torch.no_grad():
        assert last.validation_accuracy == pytest.approx(
            (model(x).argmax(1) == y).float().mean().item()
        )
    assert last.validation_figures == {}


# -- what a step may return ------------------------------------------------------------------------

GRAPH = torch.ones(1, requires_grad=True)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "The step's loss is of type NoneType"),
        ({"error": GRAPH.sum()}, "The step returned error, but no “loss”"),
        ({}, "The step returned nothing, but no “loss”"),
        (3.0, "The step's loss is of type float"),
        (GRAPH * torch.ones(3), r"has shape \(3,\); it must be one number"),
        (torch.ones(()), "The step's loss has no graph"),
        ({"loss": GRAPH.sum(), "f1": "high"}, "The figure “f1” of the step is not a number: str"),
        ({"loss": GRAPH.sum(), "f1": torch.ones(2)}, r"“f1” of the step is not a number: \(2,\)"),
    ],
)
def test_what_is_no_loss_is_told(result: object, words: str) -> None:
    with pytest.raises(LabError, match=words) as told:
        outcome_of(result, 1)
    assert told.value.hint


def test_figures_are_taken_as_numbers_without_their_graph() -> None:
    got = outcome_of({"loss": GRAPH * 2, "twice": GRAPH * 2, "n": 3, "flag": True}, samples=7)
    assert got.loss.shape == () and got.loss.requires_grad and got.samples == 7
    assert {name: value.item() for name, value in got.figures.items()} == {
        "twice": 2.0, "n": 3.0, "flag": 1.0,
    }  # fmt: skip
    assert not any(value.requires_grad for value in got.figures.values())


def test_a_loss_without_graph_is_right_in_validation() -> None:
    with torch.no_grad():
        assert outcome_of(torch.tensor([2.0]), 1).loss.item() == 2.0


def test_the_source_of_a_step_sees_the_model_and_the_variables_around() -> None:
    model = nn.Linear(2, 1)
    source = "w = 3\ndef step(batch):\n    return F.mse_loss(model(batch), batch[:, :1]) * k * w"
    step = compile_step(source, model, {"k": 2, "model": None, "step": 5})
    x = torch.ones(4, 2)
    assert torch.equal(step(x), F.mse_loss(model(x), x[:, :1]) * 2 * 3)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def step(batch)\n    return 1", "Line 1 of the step: expected ':'"),
        ("x = 1", "defines no function `step`"),
        ("step = 3", "defines no function `step`"),
        ("1 / 0", "raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_source_without_step_is_told(source: str, words: str) -> None:
    with pytest.raises(LabError, match=words) as caught:
        compile_step(source, nn.Identity(), {"step": print})
    assert caught.value.hint.startswith("def step(batch): ... returns the loss")


# -- data ------------------------------------------------------------------------------------------


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[Tensor]:
        yield from torch.arange(5.0)


def test_data_in_its_usual_forms_has_batches() -> None:
    x, y = torch.arange(10.0), torch.arange(10)
    assert [samples_in(batch) for batch in batches_of((x, y), 4)] == [4, 4, 2]
    assert [len(batch) for (batch,) in batches_of(x, 4)] == [4, 4, 2]
    assert [len(batch) for batch in batches_of(Stream(), 2)] == [2, 2, 1]
    assert length_of(batches_of(Stream(), 2)) is None and length_of(batches_of((x, y), 4)) == 3
    loader = DataLoader(TensorDataset(x), 3)
    assert batches_of(loader, 99) is loader
    own = [x, x]
    assert len(list(batches_of(own, 4))) == 3  # a list of tensors is like a tuple
    pieces = [{"x": x}, {"x": x}]
    assert batches_of(pieces, 4) is pieces
    assert sorted(torch.cat([b[0] for b in batches_of((x, y), 4)]).tolist()) == x.tolist()
    assert torch.cat([b[0] for b in in_order((x, y), 4)]).tolist() == x.tolist()
    assert torch.cat([b[0] for b in in_order(TensorDataset(x), 4)]).tolist() == x.tolist()


def test_tensors_come_as_a_plain_loader_stacks_them() -> None:
    x, y = torch.randn(11, 2, 3), torch.arange(11)
    given = [((x, y), (x, y)), (TensorDataset(x, y), (x, y)), (x, (x,))]
    for data, tensors in given:
        for batches, shuffle in ((batches_of(data, 4), True), (in_order(data, 4), False)):
            torch.manual_seed(3)
            ours, drawn = list(batches), torch.rand(1)
            torch.manual_seed(3)
            plain = list(DataLoader(TensorDataset(*tensors), 4, shuffle=shuffle))
            assert torch.equal(drawn, torch.rand(1))
            assert [type(batch) for batch in ours] == [type(batch) for batch in plain] == [list] * 3
            for batch, other in zip(ours, plain, strict=True):
                assert all(map(torch.equal, batch, other)) and len(batch) == len(other)


@pytest.mark.parametrize(
    ("data", "words", "hint"),
    [
        (3, "An object of type int has no batches", "Data is"),
        ("text", "An object of type str has no batches", "Data is"),
        ({"x": 1}, "An object of type dict has no batches", "Data is"),
        (
            (torch.zeros(3), torch.zeros(4)),
            r"different numbers of samples: \(3,\) and \(4,\)",
            "Dim 0 counts",
        ),
        (torch.zeros(0, 3), "The data has no samples", "Data is"),
        ((torch.ones(()), torch.ones(1)), r"numbers of samples: \(\) and \(1,\)", "Dim 0 counts"),
        (iter([1]), "can be read once only", "Give the function"),
        ((n for n in range(3)), "can be read once only", "Give the function"),
    ],
)
def test_data_without_batches_is_told(data: object, words: str, hint: str) -> None:
    with pytest.raises(LabError, match=words) as caught:
        batches_of(data, 4)
    assert caught.value.hint.startswith(hint)


def test_nested_batches_are_moved_with_their_form() -> None:
    from collections import namedtuple

    Pair = namedtuple("Pair", "a b")
    packed = nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    value = {"pair": Pair(torch.ones(2), [torch.zeros(1)]), "text": "x", "packed": packed}
    there = moved(value, torch.device("meta"))
    assert isinstance(there["pair"], Pair) and there["text"] == "x"
    assert all(tensor.is_meta for tensor in tensors_in((there["pair"], there["packed"].data)))
    assert [tuple(t.shape) for t in tensors_in(value)][:2] == [(2,), (1,)]
    assert (
        samples_in({"label": torch.tensor(3), "x": torch.ones(6, 2)}) == 6 and samples_in([]) == 1
    )


def test_a_model_goes_back_to_where_it_was() -> None:
    model = noisy()
    loop = TrainingLoop(
        model, replace(SETUP, epochs=1), CodeObjective(squared(model), samples(), None, 16)
    )
    for _ in loop.steps():
        pass
    loop.close()
    assert model.training and next(model.parameters()).device.type == "cpu"
    assert math.isnan(loop.metrics.epochs[0].validation_loss)


# -- what a run leaves as it was -------------------------------------------------------------------


def test_a_loader_with_a_generator_of_its_own_is_resumed_and_left_as_it_was(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path))
    own = torch.Generator().manual_seed(3)
    torch.randn(5, generator=own)  # the run begins with the state that the user's code left
    loader = DataLoader(TensorDataset(*samples()), 16, shuffle=True, generator=own)
    at_first = own.get_state()
    plain = noisy()
    steps, _ = by_hand(plain, loader, samples(20))
    own.set_state(at_first)
    first = loop_of(noisy(), loader)
    running = first.steps()
    while first.step < 8:  # three batches into the second epoch
        next(running)
    running.close()
    path = checkpoint_files.save(first.checkpoint("run"))
    assert torch.equal(own.get_state(), at_first)
    resumed = loop_of(noisy(), loader)
    resumed.restore(checkpoint_files.load(path))
    for _ in resumed.steps():
        pass
    resumed.flush()
    assert torch.equal(own.get_state(), at_first)
    assert [row.loss for row in resumed.metrics.history] == pytest.approx([a for a, _ in steps])
    ours = resumed.model.state_dict()
    assert all(torch.equal(value, ours[key]) for key, value in plain.state_dict().items())


def test_generators_are_found_where_loaders_keep_them() -> None:
    a, b, c = (torch.Generator() for _ in range(3))
    dataset = TensorDataset(torch.arange(4))
    dataset.augment = c
    sampler = torch.utils.data.RandomSampler(dataset, generator=b)
    loader = DataLoader(dataset, sampler=sampler, generator=a)
    found = generators_of(loader, (), None, loader)
    assert {id(g) for g in found} == {id(a), id(b), id(c)} and len(found) == 3


def test_modules_that_the_user_has_set_to_eval_stay_so() -> None:
    model = noisy()
    model[1].eval()
    mean = model.state_dict()["1.running_mean"].clone()
    loop = loop_of(model, samples(), samples(20))
    for _ in loop.steps():
        assert model[1].training is False
    loop.close()
    assert torch.equal(model.state_dict()["1.running_mean"], mean)
    assert [module.training for module in model] == [True, False, True, True, True]
    model.eval()
    loop = loop_of(model, samples())
    next(loop.steps())
    assert model.training and model[1].training
    loop.close()
    assert not any(module.training for module in model.modules())


def test_a_loss_of_another_model_is_told() -> None:
    model, other = noisy(), noisy()
    loop = TrainingLoop(model, SETUP, CodeObjective(squared(other), samples(), None, 16))
    with pytest.raises(LabError, match="No parameter of this Sequential got a gradient"):
        next(loop.steps())
