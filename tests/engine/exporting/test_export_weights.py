"""Weights to files and back, against torch.load and safetensors themselves."""

from __future__ import annotations

import hashlib
import math
import os
import signal
import sys
import tracemalloc
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch
from torch import nn

from engine.exporting import check_fits, load_weights, save_weights, weights
from engine.exporting.weights import WeightsFormat, save_state
from engine.system.errors import LabError
from engine.tensors.compare import max_difference, same_bits

FORMATS: list[WeightsFormat] = ["pt", "safetensors"]


class Odd(nn.Module):
    """Every way in which a state_dict can be awkward."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.tied = nn.Linear(4, 3)
        self.tied.weight = self.first.weight
        self.thrice = nn.Linear(4, 3)
        self.thrice.weight = self.first.weight
        self.register_buffer("view", torch.arange(1000.0)[10:14])
        self.register_buffer("transposed", torch.randn(5, 2).t())
        self.register_buffer("brain", torch.randn(3, dtype=torch.bfloat16))
        self.register_buffer("imaginary", torch.randn(3, dtype=torch.complex64))
        self.register_buffer("empty", torch.empty(0, 3))
        self.register_buffer("strange", torch.tensor([math.nan, math.inf, -0.0]))


@pytest.fixture
def module() -> nn.Module:
    torch.manual_seed(0)
    return Odd()


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_loads_into_the_same_class(
    module: nn.Module, format: WeightsFormat, tmp_path: Path
) -> None:
    path = tmp_path / f"weights.{format}"
    written = save_weights(module, path, format)
    state = module.state_dict()
    data = path.read_bytes()
    assert written.keys == tuple(state) and written.max_error == 0.0
    assert (written.size_bytes, written.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert os.listdir(tmp_path) == [path.name]  # no temporary file is left
    other = Odd()
    if format == "pt":
        loaded = torch.load(path, weights_only=True)
        assert loaded._metadata == state._metadata  # type: ignore[attr-defined]
        other.load_state_dict(loaded)
    else:
        loaded = safetensors.torch.load_file(path)
        left_out, unexpected = other.load_state_dict(loaded, strict=False)
        assert (left_out, unexpected) == (["tied.weight", "thrice.weight"], [])
        with safetensors.safe_open(path, "pt") as file:
            assert file.metadata() == {
                "format": "pt", "tied.weight": "first.weight", "thrice.weight": "first.weight"
            }  # fmt: skip
    for key, tensor in other.state_dict().items():
        assert same_bits(tensor, state[key]), key
    assert all(same_bits(load_weights(path)[key], state[key]) for key in state)


@pytest.mark.parametrize("format", FORMATS)
def test_a_module_without_state_is_written_too(format: WeightsFormat, tmp_path: Path) -> None:
    written = save_weights(nn.ReLU(), tmp_path / f"none.{format}", format)
    assert (written.keys, written.max_error) == ((), 0.0)
    assert load_weights(written.path) == {}


@pytest.mark.parametrize("format", FORMATS)
def test_no_bytes_of_the_file_are_held(format: WeightsFormat, tmp_path: Path) -> None:
    """A state_dict of several GB is written from its own memory and compared with the file, mapped.
    tracemalloc counts the bytes that Python holds, and none of torch's."""
    state = {"a": torch.randn(2**20), "b": torch.randn(2**20)}
    tracemalloc.start()
    try:
        save_state(state, tmp_path / f"w.{format}", format)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 2**20 < (tmp_path / f"w.{format}").stat().st_size


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
@pytest.mark.parametrize("format", FORMATS)
def test_a_disk_without_room_is_told(format: WeightsFormat, tmp_path: Path) -> None:
    """What was there stays, and nothing is left beside it."""
    import resource

    path = tmp_path / f"w.{format}"
    path.write_bytes(b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(LabError, match=r"cannot be written: File too large"):
            save_state({"w": torch.zeros(100_000)}, path, format)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == [path.name] and path.read_bytes() == b"before"


def test_a_view_does_not_drag_its_storage_into_the_file(tmp_path: Path) -> None:
    holder = nn.Module()
    holder.register_buffer("view", torch.zeros(1_000_000)[:4])
    assert save_weights(holder, tmp_path / "w.pt", "pt").size_bytes < 10_000
    assert holder.view.untyped_storage().nbytes() == 4_000_000


@pytest.mark.parametrize("format", FORMATS)
def test_saving_leaves_the_module_alone(
    module: nn.Module, format: WeightsFormat, tmp_path: Path
) -> None:
    before = {k: (t, t._version) for k, t in module.state_dict(keep_vars=True).items()}
    rng = torch.get_rng_state()
    save_weights(module, tmp_path / "w", format)
    for key, tensor in module.state_dict(keep_vars=True).items():
        assert before[key] == (tensor, tensor._version) or tensor is before[key][0]
    assert torch.equal(torch.get_rng_state(), rng)


def test_an_existing_file_is_replaced_in_one_piece(module: nn.Module, tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    path.write_bytes(b"old")
    save_weights(module, path, "pt")
    assert load_weights(path).keys() == module.state_dict().keys()


@pytest.mark.parametrize(
    ("name", "words"),
    [("missing/w.pt", "does not exist"), ("", "is a folder"), ("file/w.pt", "does not exist")],
)
def test_paths_that_cannot_be_written_are_explained(
    module: nn.Module, tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match=words) as caught:
        save_weights(module, tmp_path / name, "pt")
    assert str(tmp_path) in str(caught.value) and caught.value.hint


def test_a_refusing_disk_is_explained_and_the_old_file_stays(
    module: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w.pt"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LabError, match="No space left on device"):
        save_weights(module, path, "pt")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["w.pt"]


def test_keys_that_came_back_beside_ours_are_named(
    module: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def more(path: Path, mapped: bool) -> dict[str, torch.Tensor]:
        return {**torch.load(path, weights_only=True), "stranger": torch.ones(1)}

    monkeypatch.setattr(weights, "_load_pt", more)
    with pytest.raises(LabError, match="what was read back differs in stranger"):
        save_weights(module, tmp_path / "w.pt", "pt")


NESTED = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])


class Payload:
    def __reduce__(self):
        return os.mkdir, ("executed",)


@pytest.mark.parametrize(
    ("name", "write", "words"),
    [
        ("none.pt", lambda path: None, "no file"),
        ("empty.pt", lambda path: path.write_bytes(b""), "damaged"),
        ("empty.safetensors", lambda path: path.write_bytes(b""), "damaged"),
        ("noise.safetensors", lambda path: path.write_bytes(b"\xff" * 64), "damaged"),
        ("list.pt", lambda path: torch.save([torch.ones(1)], path), "holds a list"),
        (
            "numbers.pt",
            lambda path: torch.save({"a": 1}, path),
            "by name. 'a': a tensor",
        ),
        ("keys.pt", lambda path: torch.save({1: torch.ones(1)}, path), "1: this is not a name"),
        (
            "meta.pt",
            lambda path: torch.save({"a": torch.ones(1, device="meta")}, path),
            "no numbers",
        ),
        ("half.pt", lambda path: torch.save({"\ud800": torch.ones(1)}, path), "this is not a name"),
        ("nested.pt", lambda path: torch.save({"a": NESTED}, path), "not a nested one"),
        ("pipe.pt", os.mkfifo, "no file"),
        ("words.pt", lambda path: path.write_text('{"a": 1}'), "of another kind"),
        ("code.pt", lambda path: torch.save({"a": Payload()}, path), "would run code"),
    ],
)
def test_files_that_are_no_weights_are_refused_unexecuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, write, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    write(tmp_path / name)
    with pytest.raises(LabError, match=words) as caught:
        load_weights(tmp_path / name)
    assert caught.value.hint and not (tmp_path / "executed").exists()


def test_a_training_checkpoint_gives_its_model(tmp_path: Path) -> None:
    path = tmp_path / "step-00000001.pt"
    torch.save({"model": {"w": torch.ones(2)}, "optimizer": {"state": {}}, "step": 1}, path)
    assert torch.equal(load_weights(path)["w"], torch.ones(2))


def test_weights_that_do_not_fit_are_named() -> None:
    module = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    state = module.state_dict()
    check_fits(state, module)
    del state["0.bias"]
    state["extra"] = torch.ones(1)
    state["1.weight"] = torch.ones(2, 5)
    with pytest.raises(LabError) as caught:
        check_fits(state, module, "weights.pt")
    text = str(caught.value)
    assert text == (
        "weights.pt does not fit the model. missing: 0.bias; not in the model: extra;"
        " of another shape: 1.weight is (2, 5) float32, the model has (2, 3) float32."
    )
    for count, told in ((5, "k3, k4."), (6, "k3, k4 and 1 more."), (20, "k4 and 15 more.")):
        many = {f"k{i}": torch.ones(1) for i in range(count)}
        with pytest.raises(LabError) as caught:
            check_fits(many, nn.Module())
        assert str(caught.value).endswith(told)


def test_differences_are_absolute_and_know_nan() -> None:
    nan, inf = math.nan, math.inf
    t = torch.tensor
    assert max_difference(t([1.0, 2.0]), t([1.5, 2.0])) == 0.5
    assert max_difference(t([nan, inf, -inf]), t([nan, inf, -inf])) == 0.0
    assert max_difference(t([nan]), t([1.0])) == inf
    assert max_difference(t([inf]), t([1.0])) == inf
    assert max_difference(t([]), t([])) == 0.0
    assert max_difference(t([3j]), t([4 + 0j])) == 5.0
    sparse = torch.sparse_coo_tensor(
        t([[0, 1], [0, 1]]), t([1.0, 1.0]), (2, 2), check_invariants=True
    )
    assert max_difference(sparse, 3 * torch.eye(2)) == 2.0
    assert not same_bits(t([0.0]), t([-0.0])) and same_bits(t([nan]), t([nan]))
    assert not same_bits(t([1.0]), t([1.0], dtype=torch.float64))
