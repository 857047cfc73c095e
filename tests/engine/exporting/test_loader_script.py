"""Objects of the console for the DataLoader, in the script of a run: the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.exporting.code_data_lines import _columns
from engine.exporting.loader_lines import loader_function, loader_lines
from engine.handlers.training.run_script import FILE
from engine.project.document import (
    Averaging,
    DataSetup,
    Loading,
    TrainingSetup,
    Transform,
    replace,
)
from engine.protocol import RunCellCommand, TrainCommand, TrainingSnapshot
from engine.server.session import Session
from engine.system.errors import LabError
from tests.engine.handlers.test_export_handlers import chain
from tests.scripts import run_script

CELLS = [
    "seed = 4",
    "drawn = torch.Generator().manual_seed(seed)\nweights = torch.linspace(1, 2, 5000)",
    "class Drawn(torch.utils.data.WeightedRandomSampler):\n"
    "    def __init__(self, data):\n        super().__init__(weights[: len(data)], len(data))",
    "def shifted(samples):\n"
    "    x, y = zip(*samples)\n"
    "    return torch.stack(x) + np.float32(0.5), F.relu(torch.stack(y))",
]
MODEL = chain(
    ("Input", "x", {"shape": (1, 8, 8)}),
    ("nn.Flatten", "flatten", {}),
    ("nn.BatchNorm1d", "norm", {"num_features": 64}),
    ("nn.Linear", "linear", {"in_features": 64, "out_features": 10}),
    ("Output", "output", {}),
)
DATA = DataSetup("digits", transforms=(Transform("GaussianNoise"),))


@pytest.mark.parametrize(
    "loading",
    [
        Loading(sampler="Drawn", generator="drawn", collate_fn="shifted"),
        Loading(batch_sampler="torch.utils.data.BatchSampler(range(900), 300, True)", workers=0),
    ],
)
def test_the_script_of_a_run_gives_its_weights(tmp_path: Path, loading: Loading) -> None:
    setup = TrainingSetup(
        data=replace(DATA, loading=loading),
        batch_size=400,
        epochs=3,
        averaging=Averaging("SWA", start=0),
    )
    answers: list = []
    session = Session(answers.append)
    for number, cell in enumerate(CELLS, 1):
        session.handle(RunCellCommand(id=number, source=cell))
    folder, out = tmp_path / "run", tmp_path / "weights.pt"
    session.handle(TrainCommand(id=99, model=MODEL, training=setup, folder=str(folder)))
    while session.advance():
        pass
    assert any(isinstance(each, TrainingSnapshot) for each in answers), answers[-1]
    ended = [each for each in answers if isinstance(each, TrainingSnapshot)][-1]
    assert ended.state == "finished", answers[-1]
    run_script(folder / FILE, "--out", str(out))
    state = torch.load(out, weights_only=True)
    live = session.lab.models.live_model(MODEL, setup.seed)
    for name, tensor in live.module.state_dict().items():
        assert torch.equal(tensor, state[name]), name
    run_script(folder / FILE, "--averaged", str(out))
    averaged = session.lab.run.loop.averaged.weights
    state = torch.load(out, weights_only=True)
    for name, tensor in averaged.items():
        assert torch.equal(tensor, state[name]), name
    session.close()


def lines(loading: Loading, cells: list[str]):
    setup = TrainingSetup(data=DataSetup(loading=loading), batch_size=16)
    return loader_lines(setup, cells, {}, 5)


def test_a_script_that_cannot_have_the_objects_is_refused() -> None:
    for loading, cells, words in (
        (Loading(sampler="s"), ["s = Own(n)"], "No cell makes `Own`"),
        (Loading(sampler="mine.py:s"), [], "is of a file"),
    ):
        with pytest.raises(LabError, match=words):
            lines(loading, cells)
    assert lines(Loading(), []) is None


@pytest.mark.parametrize("cell", ["def train(x): return x", "train = list", "samples = loaded = 1"])
def test_a_name_that_the_script_has_itself_is_refused(cell: str) -> None:
    name = cell.removeprefix("def ").split("(")[0].split(" ")[0]
    found = lines(Loading(collate_fn=name), [cell])
    assert found is not None
    script = f"{found.functions}\n\ndef train(model, data):\n{found.made}    return loader\n"
    with pytest.raises(LabError, match="of its own"):
        found.check(script)
    other = lines(Loading(collate_fn="fine"), ["fine = list"])
    assert other is not None
    other.check(script.replace(found.functions, other.functions))


X = torch.arange(8.0).view(4, 2)


@pytest.mark.parametrize(
    ("value", "rows", "shapes"),
    [
        (X, "", [(4, 2)]), (X, "[rows]", [(2, 2)]), (X.numpy(), "[rows]", [(2, 2)]),
        (X.numpy(), "", [(4, 2)]), ((X, X[:, 0]), "", [(4, 2), (4,)]),
        ([X, X[:, 0]], "[rows]", [(2, 2), (2,)]), ((X.numpy(), X), "", [(4, 2), (4, 2)]),
        ((X.numpy(), X), "[rows]", [(2, 2), (2, 2)]),
        (torch.utils.data.TensorDataset(X), "", [(4, 2)]),
        (torch.utils.data.TensorDataset(X, X), "[rows]", [(2, 2), (2, 2)]),
    ],
)  # fmt: skip
def test_the_expression_of_columns_gives_their_tensors(value, rows: str, shapes: list) -> None:
    names = {"value": value, "rows": torch.tensor([3, 1]), "torch": torch}
    text = _columns("value", value, rows)
    made = eval(text, {**names, "TensorDataset": torch.utils.data.TensorDataset})
    assert type(made) is torch.utils.data.TensorDataset
    assert [tuple(tensor.shape) for tensor in made.tensors] == shapes
    assert torch.equal(made.tensors[0], X[[3, 1]] if rows else X)


def test_the_loader_of_a_script_has_the_arguments_that_torch_takes() -> None:
    """A batch sampler stands for size, order and sampler; a sampler for the order."""
    for loading, words, others in (
        (Loading(collate_fn="fine"), ("batch_size=16", "shuffle=True", "drop_last=False"), ()),
        (Loading(collate_fn="fine", shuffle=False, drop_last=True),
         ("shuffle=False", "drop_last=True"), ()),
        (Loading(sampler="fine"), ("sampler=fine", "batch_size=16"), ("shuffle",)),
        (Loading(batch_sampler="fine"), ("batch_sampler=fine",),
         ("shuffle", "batch_size=", "drop_last")),
    ):  # fmt: skip
        found = lines(loading, ["fine = list"])
        assert found is not None and found.batches == 5 and found.names == {"fine"}
        arguments = found.functions.partition("return DataLoader(")[2].partition("    )\n")[0]
        assert all(word in arguments for word in words), arguments
        assert not any(word in arguments for word in others), arguments
    made = loader_function(TrainingSetup(), {"sampler": "Own"}, {"sampler": True})
    assert "sampler=(Own)(samples)," in made
    assert "sampler=Own," in loader_function(TrainingSetup(), {"sampler": "Own"}, {})
