"""Objects of the user's code as arguments of the DataLoader, against a loop of plain torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Sampler,
    TensorDataset,
    WeightedRandomSampler,
)

from engine.project import edits
from engine.project.document import DataSetup, Loading, Project, TrainingSetup, replace
from engine.project.edits import EditError
from engine.system.errors import LabError
from engine.training.loop import TrainingLoop
from engine.training.objectives.batches import batches_of, generators_of, in_order
from engine.training.objectives.code_objective import CodeObjective
from engine.training.objectives.loaders import Given, given_by
from engine.training.objectives.objective import CatalogueObjective

X = torch.randn(10, 3, generator=torch.Generator().manual_seed(0))
Y = torch.arange(10) % 2
DATA = DataSetup("moons", {"samples": 100, "noise": 0.2})


class EveryThird(Sampler[int]):
    """A class that makes a sampler of a data set."""

    def __init__(self, dataset) -> None:
        self.rows = range(0, len(dataset), 3)

    def __iter__(self):
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def doubled(samples: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    x, y = zip(*samples, strict=True)
    return 2 * torch.stack(x), torch.stack(y)


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def weighted(rows: int) -> WeightedRandomSampler:
    weights = torch.arange(1.0, rows + 1).tolist()
    return WeightedRandomSampler(weights, rows, generator=generator())


def in_batches(rows: int) -> BatchSampler:
    order = RandomSampler(range(rows), generator=generator())
    return BatchSampler(order, 7, drop_last=True)


CASES = {
    "sampler": lambda rows: {"sampler": weighted(rows)},
    "batch_sampler": lambda rows: {"batch_sampler": in_batches(rows)},
    "generator": lambda rows: {"generator": generator()},
    "collate_fn": lambda rows: {"collate_fn": doubled},
}


@pytest.mark.parametrize("case", CASES)
def test_a_set_of_the_catalogue_trains_as_with_that_loader(case: str) -> None:
    setup = TrainingSetup(data=DATA, batch_size=16, epochs=2, seed=5, optimizer_params={"lr": 0.1})
    model = nn.Linear(2, 2)
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    objective = CatalogueObjective(model, setup, given=Given(**CASES[case](80)))
    loop = TrainingLoop(model, setup, objective)
    for _ in loop.steps():
        pass
    loop.close()

    other = nn.Linear(2, 2)
    other.load_state_dict(start)
    plain = TensorDataset(objective.dataset.x_train, objective.dataset.y_train)
    usual = {} if case == "batch_sampler" else {"batch_size": 16}
    usual |= {"shuffle": True} if case in ("generator", "collate_fn") else {}
    loader = DataLoader(plain, **usual, **CASES[case](80))
    optimizer = torch.optim.Adam(other.parameters(), lr=0.1)
    torch.manual_seed(5)
    steps = 0
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(other(x), y).backward()
            optimizer.step()
            steps += 1
    assert loop.step == steps == loop.total_steps
    for name, tensor in other.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor), name


def test_a_run_goes_on_in_the_middle_of_an_epoch_of_a_sampler_with_a_generator() -> None:
    setup = TrainingSetup(data=DATA, batch_size=16, epochs=2, seed=5)

    def loop_of() -> TrainingLoop:
        torch.manual_seed(0)
        model = nn.Linear(2, 2)
        given = Given(sampler=weighted(80), generator=generator(8))
        return TrainingLoop(model, setup, CatalogueObjective(model, setup, given=given))

    whole, first, second = loop_of(), loop_of(), loop_of()
    for _ in whole.steps():
        pass
    steps = first.steps()
    for _ in range(3):
        next(steps)
    second.restore(first.checkpoint("run"))
    steps.close()
    for _ in second.steps():
        pass
    assert second.step == whole.step
    for mine, other in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(mine, other)


@pytest.mark.parametrize("data", [(X, Y), TensorDataset(X, Y)])
def test_data_of_code_comes_with_the_objects_and_validation_in_its_own_order(data) -> None:
    given = Given(sampler=EveryThird, collate_fn=doubled)
    batches = batches_of(data, 3, given=given)
    assert isinstance(batches, DataLoader) and len(batches) == 2
    assert torch.equal(torch.cat([x for x, _ in batches]), 2 * X[::3])
    assert torch.equal(torch.cat([x for x, _ in in_order(data, 3, given=given)]), 2 * X)
    objective = CodeObjective(lambda _: X.sum(), data, data, 3, given=given)
    assert len(list(objective.batches(0, 0))) == 2 and objective.batches_per_epoch == 2
    assert torch.equal(torch.cat([x for x, _ in objective.validation_batches()]), 2 * X)


def test_workers_call_the_function_for_their_start() -> None:
    def begin(worker: int) -> None:
        torch.manual_seed(100 + worker)

    def drawn(samples):
        return torch.rand(len(samples))

    given = Given(worker_init_fn=begin, collate_fn=drawn)
    found = list(batches_of(X, 5, Loading(workers=1, shuffle=False), given=given))
    torch.manual_seed(100)
    assert torch.equal(torch.cat(found), torch.cat([torch.rand(5), torch.rand(5)]))


def test_every_generator_is_found() -> None:
    one, two, three = (generator(n) for n in range(3))
    inner = BatchSampler(RandomSampler(X, generator=one), 4, drop_last=False)  # pyright: ignore
    loader = DataLoader(TensorDataset(X), batch_sampler=inner, generator=two)
    weights = WeightedRandomSampler([1.0], 1, generator=three)
    other = DataLoader(TensorDataset(X), 2, sampler=weights)
    found = {id(each) for each in generators_of(loader, other)}
    assert found == {id(one), id(two), id(three)}


NAMES = {
    "rows": [2, 0],
    "once": iter([1]),
    "number": 3,
    "doubled": doubled,
    "cuda": object(),
    "generator": generator(),
}


@pytest.mark.parametrize(
    ("loading", "words"),
    [
        (Loading(sampler="rows", batch_sampler="rows"), "takes one"),
        (Loading(collate_fn="doubled", padding="right"), "each make a batch"),
        (Loading(sampler="once"), "sampler is once, of type list_iterator: it must be a Sampler"),
        (Loading(batch_sampler="number"), "batch_sampler is number, of type int"),
        (Loading(worker_init_fn="rows"), "a function of the worker's number"),
        (Loading(collate_fn="number"), "a function of a list of samples"),
        (Loading(generator="cuda"), "must be a torch.Generator on the CPU"),
    ],
)
def test_objects_that_a_loader_cannot_take_are_told(loading: Loading, words: str) -> None:
    with pytest.raises(LabError, match=words):
        given_by(loading, NAMES.__getitem__)


def test_objects_that_it_can_take_are_taken() -> None:
    loading = Loading(sampler="rows", generator="generator", collate_fn="doubled")
    given = given_by(loading, NAMES.__getitem__)
    assert given.sampler is NAMES["rows"] and given.generator is NAMES["generator"]
    assert given.collate_fn is doubled and given and not given_by(Loading(), NAMES.__getitem__)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(X)


def test_what_torch_refuses_is_told() -> None:
    with pytest.raises(LabError, match=r"torch says: .*IterableDataset"):
        batches_of(Stream(), 2, given=Given(sampler=[1, 2]))


def test_a_model_of_blocks_needs_pairs_and_no_balance() -> None:
    def alone(samples):
        return torch.stack([x for x, _ in samples])

    setup = TrainingSetup(data=DATA, batch_size=16)
    objective = CatalogueObjective(nn.Linear(2, 2), setup, given=Given(collate_fn=alone))
    with pytest.raises(LabError, match="no pair of tensors"):
        next(objective.batches(0, 0))
    balanced = TrainingSetup(data=replace(DATA, loading=Loading(balanced=True)))
    with pytest.raises(LabError, match="balanced says itself"):
        CatalogueObjective(nn.Linear(2, 2), balanced, given=Given(generator=generator()))


def test_mixed_labels_of_a_collate_fn_have_a_loss_and_no_accuracy() -> None:
    def mixed(samples):
        x, y = (torch.stack(part) for part in zip(*samples, strict=True))
        shares = nn.functional.one_hot(y, 2).float()
        return (x + x.flip(0)) / 2, (shares + shares.flip(0)) / 2

    setup = TrainingSetup(data=DATA, batch_size=16, epochs=1)
    model = nn.Linear(2, 2)
    objective = CatalogueObjective(model, setup, given=Given(collate_fn=mixed))
    x, y = next(objective.batches(0, 0))
    outcome = objective.outcome((x, y))
    assert torch.equal(outcome.loss, nn.functional.cross_entropy(model(x), y))
    assert outcome.samples == 16 and outcome.scores is None


def test_the_document_keeps_names_of_a_bounded_length() -> None:
    setup = TrainingSetup(data=DataSetup(loading=Loading(sampler="s" * 5000)))
    with pytest.raises(EditError, match="sampler has at most"):
        edits.set_training(Project(), setup)
