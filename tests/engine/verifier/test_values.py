"""What the verifier compares, and the programs and weights that it reads."""

from __future__ import annotations

import math
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from engine.verifier.programs import open_program
from engine.verifier.values import (
    Case,
    ModuleCall,
    difference,
    entry,
    is_plain,
    leaves,
    read_calls,
    read_cases,
    write,
)
from engine.verifier.weights_readers import INDEX, read

X = torch.arange(6.0).view(2, 3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, [2.0, "a", None, True, X], {"b": (X,), 3: {}}), True),
        ({1.5: 2}, False), ([{1, 2}], False), ({"a": object()}, False),
        ((1, (2, {"a": {3}})), False),
        (type("Own", (dict,), {})(), False),
    ],
)  # fmt: skip
def test_what_can_be_written_without_pickles(value: Any, expected: bool) -> None:
    assert is_plain(value) == expected


def test_cases_and_calls_are_read_as_they_were_written(tmp_path: Path) -> None:
    case = Case(4, (X, [2]), {"k": "v"}, [X + 1], [False], seed=3)
    call = ModuleCall("net.0", 1, (X,), {"k": None}, [X, X * 2])
    write(tmp_path / "cases", [case])
    write(tmp_path / "calls", [call, call])
    (found,) = read_cases(str(tmp_path / "cases"))
    assert (found.batch_size, found.kwargs, found.drawn, found.seed) == (4, {"k": "v"}, [False], 3)
    assert torch.equal(found.args[0], X) and torch.equal(found.outputs[0], X + 1)
    first, second = read_calls(str(tmp_path / "calls"))
    assert (first.path, first.number, first.kwargs) == ("net.0", 1, {"k": None})
    assert torch.equal(second.outputs[1], X * 2)


def test_numbers_of_an_output_are_tensors_and_text_is_none() -> None:
    found = leaves([True, 2, 3.5, "text", None, X, {"a": (1,)}])
    assert [each.dtype for each in found] == [
        torch.bool, torch.int64, torch.float32, torch.float32, torch.int64,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "of_size", "of_all"),
    [
        (torch.float64, 1e-7, 1e-9), (torch.float32, 1e-3, 1e-5), (torch.float16, 1e-2, 1e-3),
        (torch.bfloat16, 5e-2, 1e-2),
    ],
)  # fmt: skip
def test_the_tolerance_is_that_of_the_dtype_and_grows_with_the_numbers(
    dtype: torch.dtype, of_size: float, of_all: float
) -> None:
    def agrees(size: float, apart: float, largest: float = 0.0) -> bool:
        expected = torch.tensor([size, largest], dtype=dtype)
        found = expected.double().clone()
        found[0] += apart
        return difference(expected, found).agrees

    for factor, expected in ((0.9, True), (1.1, False)):
        assert agrees(0.0, factor * of_all) == expected
        assert agrees(0.0, factor * 64 * of_all, largest=64.0) == expected
        assert agrees(64.0, factor * (64 * of_size + 64 * of_all)) == expected
        assert agrees(-0.5, factor * (0.5 * of_size + of_all)) == expected


def test_whole_numbers_and_bools_must_be_equal() -> None:
    assert difference(torch.tensor([2**40, 5]), torch.tensor([2**40, 5])) == (0.0, 0.0, True)
    assert difference(torch.tensor([2**40]), torch.tensor([2**40 + 1])) == (1.0, 2.0**-40, False)
    assert difference(torch.tensor([True]), torch.tensor([False])) == (1.0, 1.0, False)


def test_nothing_differs_from_nothing_and_sparse_is_compared_as_dense() -> None:
    assert difference(torch.empty(0, 3), torch.empty(0, 3)) == (0.0, 0.0, True)
    assert difference(torch.empty(0, 3), torch.empty(3, 0)) == (math.inf, math.inf, False)
    assert difference(X, X.to_sparse()) == (0.0, 0.0, True)
    inf = torch.tensor([math.inf])
    assert difference(inf, -inf) == (math.inf, math.inf, False)
    assert difference(inf, torch.ones(1)).agrees is False
    assert difference(torch.zeros(1), torch.tensor([1e-9])).relative == math.inf


def test_a_tensor_is_told_by_the_digest_of_its_bits() -> None:
    found = entry(X)
    assert (found.dtype, found.shape) == ("float32", (2, 3))
    assert found == entry(X.t().contiguous().t())  # laid out in another way
    assert found.digest != entry(X.view(3, 2) + 1).digest
    assert found.digest == entry(X.view(torch.int32)).digest
    assert entry(torch.tensor(-0.0)).digest != entry(torch.tensor(0.0)).digest


# -- programs ------------------------------------------------------------------------------------

NET = """
import torch
from torch import nn
from shapes import SIZE

class Model(nn.Linear):
    def __init__(self):
        super().__init__(SIZE, 1)
"""


def program(folder: Path, source: str = NET, size: int = 3) -> Path:
    folder.mkdir()
    (folder / "shapes.py").write_text(f"SIZE = {size}\n")
    (folder / "net.py").write_text(source)
    return folder / "net.py"


def test_a_file_of_python_gives_its_class_or_what_it_makes(tmp_path: Path) -> None:
    paths = list(sys.path)
    for number, size in enumerate((3, 4)):  # the second has a file of the same name beside it
        model = open_program("py", str(program(tmp_path / f"{number}", size=size)))
        assert isinstance(model, nn.Linear) and model.in_features == size and not model.training
    made = f"{NET}\ndef made():\n    return nn.Sequential(Model())\n"
    path = program(tmp_path / "made", made)
    assert isinstance(open_program("script", str(path)), nn.Sequential)
    assert "shapes" not in sys.modules and sys.path == paths
    weights = {"weight": torch.ones(1, 3), "bias": torch.zeros(1)}
    plain = program(tmp_path / "with")
    torch.save({"weights": weights}, plain.with_suffix(".data.pt"))
    assert open_program("py", str(plain))(torch.ones(3)).item() == 3.0
    torch.save({**weights, "bias": torch.ones(1)}, tmp_path / "state.pt")
    assert open_program("py", str(plain), str(tmp_path / "state.pt"))(torch.ones(3)).item() == 4.0


def test_an_archive_gives_what_its_run_file_loads(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with zipfile.ZipFile(tmp_path / "net.zip", "w") as archive:
        archive.writestr(
            "run.py", "from inner import SIZE\n\ndef load():\n    return SIZE.__add__\n"
        )
        archive.writestr("inner.py", "SIZE = 5\n")
    assert open_program("zip", str(tmp_path / "net.zip"))(2) == 7


# -- weights -------------------------------------------------------------------------------------


def same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> bool:
    return found.keys() == expected.keys() and all(
        torch.equal(found[k], expected[k]) for k in found
    )


def test_weights_are_read_with_the_library_of_their_format(tmp_path: Path) -> None:
    state = {"a.weight": X, "b.weight": X + 1}
    torch.save(state, tmp_path / "w.pt")
    torch.save({"model": state, "step": 3}, tmp_path / "c.pt")
    assert same(dict(read("pt", str(tmp_path / "w.pt"))), state)
    assert same(dict(read("checkpoint", str(tmp_path / "c.pt"))), state)
    safetensors.torch.save_file(state, tmp_path / "w.safetensors", {"format": "pt"})
    assert same(dict(read("safetensors", str(tmp_path / "w.safetensors"))), state)


def test_a_tied_key_that_was_left_out_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    tied = {"head.weight": "a.weight", "a.weight": "b.weight", "lost": "gone", "format": "pt"}
    safetensors.torch.save_file({"a.weight": X, "b.weight": X + 1}, path, tied)
    expected = {"a.weight": X, "b.weight": X + 1, "head.weight": X}
    assert same(dict(read("safetensors", str(path))), expected)
    assert same(dict(read("hf", str(tmp_path))), expected)
    (tmp_path / INDEX).write_text(
        '{"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}}'
    )
    safetensors.torch.save_file({"c": X}, tmp_path / "one.safetensors")
    assert same(dict(read("hf", str(tmp_path))), {"c": X})
