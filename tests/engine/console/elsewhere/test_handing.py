"""Names of the console in another process: a namespace that has nothing but what was handed."""

from __future__ import annotations

import pytest
import torch

from engine.console.elsewhere.handing import handed, names_of, take
from engine.console.namespace import Namespace
from engine.console.output import Output
from engine.system.control import Control
from engine.system.errors import LabError

CELLS = [
    "from torch.utils.data import Dataset, DataLoader\nimport math as m",
    "scale = 3.0\nx = torch.arange(6.0).reshape(3, 2)\nbase = x[0]\nunused = open",
    "def scaled(t, by=scale):\n    return t * by + m.floor(0.5)",
    "class Rows(Dataset):\n"
    "    size = 3\n"
    "    def __init__(self, x):\n        self.x = x\n"
    "    def __len__(self):\n        return self.size\n"
    "    def __getitem__(self, row):\n        return scaled(self.x[row])",
    "rows = Rows(x)\nrows.seen = 4",
    "collate = lambda samples: torch.stack(samples) - rows.seen",
    "drawn = torch.Generator().manual_seed(3)\n_ = torch.rand(5, generator=drawn)",
    "loader = DataLoader(rows, 2, collate_fn=collate, generator=drawn)",
    "net = nn.Linear(2, 1)",
]


class Console:
    def __init__(self, *cells: str) -> None:
        self.output, self.control = Output(lambda _: None), Control()
        self.names = Namespace()
        for cell in cells:
            error, _ = self.names.run(cell, "<cell>", self.output, self.control)
            assert error is None, error

    def __getitem__(self, name: str):
        return self.names.variables[name]

    def given(self, *names: str) -> Console:
        other = Console()
        take(other.names, handed(self.names, names), other.output, other.control)
        return other


@pytest.fixture(scope="module")
def console() -> Console:
    return Console(*CELLS)


def test_values_are_the_same_and_what_they_share_is_shared(console: Console) -> None:
    other = console.given("x", "base", "scale")
    assert torch.equal(other["x"], console["x"]) and other["scale"] == 3.0
    other["x"][0, 0] = 9
    assert other["base"][0] == 9 and console["base"][0] == 0
    assert "unused" not in other.names.variables and "rows" not in other.names.variables


def test_an_object_of_a_class_of_a_cell_comes_with_what_the_class_needs(console: Console) -> None:
    other = console.given("rows")
    assert type(other["rows"]) is other["Rows"] and other["rows"].seen == 4
    assert torch.equal(other["rows"][2], console["rows"][2])


def test_what_cannot_be_pickled_is_made_again(console: Console) -> None:
    other = console.given("loader")
    torch.manual_seed(0)
    expected = list(console["loader"])
    torch.manual_seed(0)
    found = list(other["loader"])
    assert len(found) == 2
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.equal(mine, theirs)


def test_a_generator_goes_on_where_it_is(console: Console) -> None:
    other = console.given("drawn")
    before = console["drawn"].get_state()
    assert torch.equal(other["drawn"].get_state(), before)
    assert torch.equal(other["drawn"].clone_state().get_state(), before)


def test_a_module_has_its_weights(console: Console) -> None:
    other = console.given("net")
    assert torch.equal(other["net"].weight, console["net"].weight)


def test_what_another_process_cannot_have_is_told(console: Console) -> None:
    with pytest.raises(LabError, match=r"`lost` .* cannot be pickled .* no cell") as told:
        console.names.variables["lost"] = lambda: 1
        console.given("lost")
    assert "one process" in told.value.hint
    with pytest.raises(LabError, match="ZeroDivisionError"):
        broken = Console("n = 1", "f = (lambda: 0, 1 / n)")
        broken.names.variables["n"] = 0
        broken.given("f")


def test_the_names_of_expressions_and_of_code() -> None:
    step = "def step(batch):\n    x, y = batch\n    return loss_fn(model(x), y)"
    assert names_of(["(x, y)", "Net(width)"], step) == {
        "x", "y", "Net", "width", "loss_fn", "model"
    }  # fmt: skip
