"""Batches of code as the set-up says: sequences of different lengths, DataLoader's arguments."""

from __future__ import annotations

import inspect
import multiprocessing
import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset

from app.templates import load_template
from engine.lab import Lab
from engine.project.document import DataSetup, Loading, TrainingSetup, replace
from engine.protocol import TrainCommand
from engine.server.session import handler_of
from engine.system.errors import LabError
from engine.training.loop import TrainingLoop
from engine.training.objectives.batches import batches_of, in_order
from engine.training.objectives.code_data import CodeData
from engine.training.objectives.code_objective import CodeObjective, compile_step
from engine.training.objectives.loaders import Padding
from engine.training.objectives.objective import CatalogueObjective
from engine.training.objectives.usual_steps import write_step

generator = torch.Generator().manual_seed(0)
LENGTHS = [3, 1, 4, 2, 2, 5, 1]
ROWS = [torch.randint(1, 9, (length,), generator=generator) for length in LENGTHS]


class Sequences(Dataset):
    """Ids of different lengths, and whether their sum is even."""

    def __len__(self) -> int:
        return len(ROWS)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        return ROWS[row], int(ROWS[row].sum()) % 2


class Drawn(Dataset):
    """Samples that are drawn by each library, in whichever process reads them."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, row: int) -> Tensor:
        return torch.tensor([row, torch.rand(()).item(), random.random(), np.random.rand()])


class Tagger(nn.Module):
    """The mean of the ids of a sequence that are real, by their lengths or a mask."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        mask = real if real.dtype == torch.bool else torch.arange(x.shape[1]) < real[:, None]
        total = (self.embedding(x) * mask[..., None]).sum(1)
        return self.head(total / mask.sum(1, keepdim=True))


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_batch_is_padded_to_its_own_longest_as_pad_sequence_does(side) -> None:
    loading = Loading(padding=side, padding_value=7.0, gives="lengths")
    found = list(in_order(Sequences(), 3, loading))
    for start, (x, lengths, y) in zip((0, 3, 6), found, strict=True):
        rows = ROWS[start : start + 3]
        assert torch.equal(x, pad_sequence(rows, True, 7.0, side))
        assert lengths.tolist() == [len(row) for row in rows]
        assert y.tolist() == [int(row.sum()) % 2 for row in rows]


@pytest.mark.parametrize("side", ["right", "left"])
def test_the_mask_is_true_at_real_elements(side) -> None:
    (x, mask, _), *_ = in_order(Sequences(), 7, Loading(padding=side, gives="mask"))
    assert mask.dtype == torch.bool and torch.equal(mask, x != 0)  # no id is 0
    (x, _), *_ = in_order(Sequences(), 7, Loading(padding=side))
    assert x.shape == (7, 5)


def test_targets_that_are_sequences_are_ignored_behind_their_end() -> None:
    samples = [(torch.ones(n, 2), torch.arange(n), torch.ones(n)) for n in (1, 3)]
    x, labels, numbers = Padding("right", 0.0, "nothing")(samples)
    assert x.shape == (2, 3, 2)
    assert labels.tolist() == [[0, -100, -100], [0, 1, 2]]
    assert numbers.tolist() == [[1, 0, 0], [1, 1, 1]]
    assert Padding("left", 0.0, "nothing")([torch.ones(1), torch.ones(2)]).tolist() == [
        [0, 1],
        [1, 1],
    ]


def test_lengths_of_half_precision_samples_are_exact() -> None:
    """float16 has no 2,049."""
    samples = [(torch.zeros(n, dtype=torch.float16), 0) for n in (2, 2049)]
    _, lengths, _ = Padding("right", 0.0, "lengths")(samples)
    assert lengths.dtype == torch.int64
    assert lengths.tolist() == [2, 2049]


def test_what_cannot_be_padded_is_told() -> None:
    with pytest.raises(LabError, match="Only dim 0"):
        Padding("right", 0.0, "nothing")([(torch.ones(2, 3), 0), (torch.ones(2, 4), 1)])
    with pytest.raises(LabError, match="dicts cannot be padded"):
        Padding("right", 0.0, "nothing")([{"x": torch.ones(2)}])


@pytest.mark.parametrize("gives", ["lengths", "mask"])
def test_a_model_trains_on_sequences_as_with_a_collate_of_its_own(gives) -> None:
    loading = Loading(padding="right", gives=gives)
    setup = TrainingSetup(batch_size=3, epochs=2, seed=5, optimizer_params={"lr": 0.1})
    model = Tagger()
    batch = next(iter(in_order(Sequences(), 3, loading)))
    step = compile_step(write_step(model, batch).source, model, {})
    loop = TrainingLoop(model, setup, CodeObjective(step, Sequences(), None, 3, loading=loading))
    for _ in loop.steps():
        pass
    loop.close()

    def collate(samples):
        rows, labels = zip(*samples, strict=True)
        x = pad_sequence(list(rows), batch_first=True)
        return x, torch.tensor([len(row) for row in rows]), torch.tensor(labels)

    other = Tagger()
    optimizer = torch.optim.Adam(other.parameters(), lr=0.1)
    torch.manual_seed(5)
    loader = DataLoader(Sequences(), 3, shuffle=True, collate_fn=collate)
    for _ in range(2):
        for x, lengths, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(other(x, lengths), y).backward()
            optimizer.step()
    for name, tensor in other.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor), name


def test_order_and_size_of_batches() -> None:
    x = torch.arange(7)
    in_turn = Loading(shuffle=False, drop_last=True)
    for data in (x, TensorDataset(x)):
        batches = batches_of(data, 3, in_turn)
        assert [batch[0].tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5]]
        assert len(batches) == 2  # pyright: ignore[reportArgumentType]
        assert sum(len(batch[0]) for batch in in_order(data, 3, in_turn)) == 7
    drawn = batches_of(Drawn(), 4, in_turn)
    assert isinstance(drawn, DataLoader) and len(drawn) == 1


def test_all_arguments_reach_the_loader() -> None:
    loading = Loading(
        workers=2,
        prefetch_factor=3,
        persistent_workers=True,
        timeout=60.0,
        start_method="forkserver",
        in_order=False,
    )
    loader = batches_of(TensorDataset(torch.arange(4)), 2, loading)
    assert isinstance(loader, DataLoader)
    assert (loader.num_workers, loader.prefetch_factor) == (2, 3)
    assert (loader.persistent_workers, loader.timeout, loader.in_order) == (True, 60.0, False)
    assert loader.multiprocessing_context.get_start_method() == "forkserver"  # pyright: ignore[reportOptionalMemberAccess]
    none = batches_of(TensorDataset(torch.arange(4)), 2, Loading(workers=0, timeout=60.0))
    assert isinstance(none, DataLoader) and (none.num_workers, none.timeout) == (0, 0)


def test_each_argument_of_torchs_loader_has_a_field() -> None:
    names = {
        "num_workers": "workers",
        "multiprocessing_context": "start_method",
    }
    of_torch = {*inspect.signature(DataLoader).parameters} - {"dataset", "pin_memory_device"}
    fields = {*Loading.__struct_fields__, "batch_size"}  # the set-up has it
    assert {names.get(name, name) for name in of_torch} <= fields


def test_what_needs_the_same_batches_again_is_refused_without_their_order() -> None:
    """The script says so; so do going to a step, and several processes."""
    loading = Loading(workers=2, in_order=False)
    setup = TrainingSetup(data=DataSetup("digits", loading=loading), epochs=1)
    assert Loading(workers=1, in_order=False).repeats and not loading.repeats
    run = Lab(emit=lambda snapshot: None)
    train = TrainCommand(model=load_template("mlp").model, training=setup)
    *_, last = handler_of(TrainCommand)(run, train)
    assert last.state == "finished", last.error
    assert "in_order off" in run.run.files.writer.record.no_script
    for command, words in (
        (replace(train, to_step=1), "cannot go to a step"),
        (replace(train, training=replace(setup, processes=2)), "must come in order"),
    ):
        with pytest.raises(LabError, match=words):
            next(iter(handler_of(TrainCommand)(run, command)))


@pytest.mark.parametrize("workers", [None, 0])
def test_data_goes_to_the_device_at_once_and_by_a_loader_batch_by_batch(workers) -> None:
    data = DataSetup("moons", {"samples": 100}, loading=Loading(workers=workers))
    setup = TrainingSetup(data=data, loss_params={"weight": (1.0, 2.0)}, batch_size=32)
    objective = CatalogueObjective(nn.Linear(2, 2), setup)
    meta = torch.device("meta")  # every machine has this one
    objective.to(meta)
    whole = objective.dataset.x_train, objective.dataset.y_train
    assert {tensor.device.type for tensor in whole} == {"meta" if workers is None else "cpu"}
    assert objective.loss_fn.weight.device == meta  # pyright: ignore[reportAttributeAccessIssue]
    for batches in (objective.batches(0, 0), objective.validation_batches()):
        assert {tensor.device for batch in batches for tensor in batch} == {meta}


def test_workers_of_a_set_of_the_catalogue_end_with_it() -> None:
    data = DataSetup("moons", {"samples": 100}, loading=Loading(workers=1, persistent_workers=True))
    objective = CatalogueObjective(nn.Linear(2, 2), TrainingSetup(data=data, batch_size=32))
    batches = list(objective.batches(0, 0))
    [worker] = objective._loader._iterator._workers  # pyright: ignore
    assert len(batches) == 3 and worker.is_alive()
    objective.close()
    assert not worker.is_alive()


def test_workers_that_load_the_rows_of_one_rank_end_with_the_data() -> None:
    rows = TensorDataset(torch.arange(8.0))
    data = CodeData(DataLoader(rows, 4, num_workers=1, persistent_workers=True), None, 4)
    assert data.divide(1, 2)
    others = set(multiprocessing.active_children())
    assert [part.batch[0].tolist() for part in data.parts(0)] == [[1, 3], [5, 7]]
    [worker] = set(multiprocessing.active_children()) - others
    data.close()
    assert not worker.is_alive()


def test_workers_stay_until_the_run_ends_and_draw_the_same_numbers_in_each_run() -> None:
    loading = Loading(workers=1, persistent_workers=True)
    seen: list[list[Tensor]] = []

    def finish() -> list[Tensor]:
        model = nn.Linear(4, 1)
        batches: list[Tensor] = []

        def step(batch: Tensor) -> Tensor:
            batches.append(batch.clone())
            return model(batch).sum()

        objective = CodeObjective(step, Drawn(), None, 3, loading=loading)
        loop = TrainingLoop(model, TrainingSetup(batch_size=3, epochs=2, seed=1), objective)
        processes = set()
        for _ in loop.steps():
            workers = objective.loaded._batches._iterator._workers  # pyright: ignore[reportAttributeAccessIssue]
            processes.add(workers[0].pid)
        assert len(processes) == 1
        loop.close()
        assert not workers[0].is_alive()
        return batches

    seen = [finish(), finish()]
    for first, second in zip(*seen, strict=True):
        assert torch.equal(first, second)
    assert len({row[3].item() for batch in seen[0] for row in batch}) == 12
