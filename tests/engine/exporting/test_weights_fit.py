"""How weights fit a module: by name, after a prefix, in part; compared with plain PyTorch."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from engine.exporting import load_weights
from engine.exporting.weights_fit import Fit, find_fit, load_fit, under_names


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight


def test_names_that_fit_are_taken_as_they_are():
    source, module = net(), net()
    fit = find_fit(source.state_dict(), module)
    assert fit.is_whole and not fit.is_renamed and not fit.unexpected and fit.renaming == ""
    load_fit(source.state_dict(), module, fit)
    plain = net()
    plain.load_state_dict(source.state_dict())
    assert all(torch.equal(v, module.state_dict()[k]) for k, v in plain.state_dict().items())


WRAPPED = ["module.", "model.", "net.", "module.model."]


@pytest.mark.parametrize("prefix", [*WRAPPED, "state_dict."])
def test_a_prefix_is_taken_off(prefix):
    source = net().state_dict()
    wrapped = {f"{prefix}{key}": value for key, value in source.items()}
    module = net()
    fit = find_fit(wrapped, module)
    assert (fit.without, fit.before) == (prefix, "") and fit.is_whole and not fit.unexpected
    assert fit.renaming == f"“{prefix}” is taken off the names of the file"
    load_fit(wrapped, module, fit)
    assert all(torch.equal(value, module.state_dict()[key]) for key, value in source.items())


@pytest.mark.parametrize("prefix", WRAPPED)
def test_a_prefix_is_put_before(prefix):
    source = net().state_dict()
    outer: nn.Module = net()
    for name in reversed(prefix.split(".")[:-1]):
        inner, outer = outer, nn.Module()
        outer.add_module(name, inner)
    fit = find_fit(source, outer)
    assert (fit.without, fit.before) == ("", prefix) and fit.is_whole
    load_fit(source, outer, fit)
    assert all(torch.equal(v, outer.state_dict()[f"{prefix}{k}"]) for k, v in source.items())


def test_a_model_in_data_parallel_gives_its_weights_to_a_compiled_one():
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self._orig_mod = net()

    source = nn.DataParallel(net()).state_dict()
    fit = find_fit(source, Wrapped())
    assert (fit.without, fit.before) == ("module.", "") and fit.is_whole


def test_a_module_that_is_called_model_needs_no_renaming():
    outer = nn.Module()
    outer.model = net()
    fit = find_fit(outer.state_dict(), outer)
    assert fit.is_whole and not fit.is_renamed


def test_what_does_not_fit_is_named_and_left_alone():
    source = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 7)).state_dict()
    del source["0.bias"]
    source["extra"] = torch.ones(1)
    module = net()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    fit = find_fit(source, module)
    assert not fit.is_whole and not fit.is_renamed
    assert (fit.missing, fit.unexpected) == (("0.bias",), ("extra",))
    assert fit.misshapen == {"2.weight": "2.weight", "2.bias": "2.bias"}
    load_fit(source, module, fit)
    for key, value in module.state_dict().items():
        kept = key in ("0.bias", "2.weight", "2.bias")
        assert torch.equal(value, before[key] if kept else source[key]), key


def test_a_tensor_under_two_names_needs_one_of_them():
    source, module = Tied(), Tied()
    fit = find_fit({"embed.weight": source.embed.weight.detach()}, module)
    assert fit.is_whole and fit.missing == ()
    load_fit({"embed.weight": source.embed.weight.detach()}, module, fit)
    assert torch.equal(module.head.weight, source.embed.weight)
    assert module.head.weight is module.embed.weight


def test_a_lazy_parameter_takes_the_shape_of_the_file():
    module = nn.LazyLinear(2)
    source = nn.Linear(3, 2).state_dict()
    fit = find_fit(source, module)
    assert fit.is_whole
    load_fit(source, module, fit)
    assert torch.equal(module.weight, source["weight"])


@pytest.mark.parametrize("nest", ["state_dict", "model_state_dict", "model", "module"])
def test_a_state_dict_in_a_checkpoint_is_found(tmp_path, nest):
    source = net().state_dict()
    torch.save({"epoch": 3, nest: source, "optimizer_states": [{"lr": 1.0}]}, tmp_path / "x.pt")
    loaded = load_weights(tmp_path / "x.pt")
    assert loaded.keys() == source.keys()
    assert all(torch.equal(value, loaded[key]) for key, value in source.items())


def test_a_tensor_that_is_called_model_is_a_tensor(tmp_path):
    save_file({"model": torch.ones(2)}, tmp_path / "x.safetensors")
    torch.save({"model": torch.ones(2)}, tmp_path / "x.pt")
    for name in ("x.pt", "x.safetensors"):
        assert torch.equal(load_weights(tmp_path / name)["model"], torch.ones(2))


def test_names_of_modules_stand_in_place_of_their_branches():
    x = torch.ones(1)
    state: dict[str, torch.Tensor] = dict.fromkeys(("a/b.w", "a/c/w", "a.b.c.d", "ab.w", "z"), x)
    assert list(under_names(state, {"first": "a/b", "second": "a", "third": "a.b"})) == [
        "first.w", "second.c/w", "third.c.d", "ab.w", "z",
    ]  # fmt: skip
    assert list(under_names(state, {"net": "", "own": "a"})) == [
        "own.b.w", "own.c/w", "own.b.c.d", "net.ab.w", "net.z",
    ]  # fmt: skip
    assert under_names({"a/w": x}, {}) == {"a/w": x}


def test_the_fit_says_what_is_renamed_and_what_does_not_fit():
    module = nn.Sequential(nn.Linear(2, 1), nn.LazyLinear(3))
    state = {"model.0.weight": torch.ones(1, 2), "model.0.bias": torch.ones(2), "model.x": X}
    state |= {"model.1.weight": torch.ones(3, 5), "other": X}
    fit = find_fit(state, module)
    assert fit.matched == {"0.weight": "model.0.weight", "1.weight": "model.1.weight"}
    assert fit.misshapen == {"0.bias": "model.0.bias"} and fit.missing == ("1.bias",)
    assert fit.unexpected == ("model.x", "other") and fit.is_renamed and not fit.is_whole
    assert fit.renamed("model.0.bias") == "0.bias"
    both = Fit({}, (), (), {}, "a.", "b.")
    assert both.renamed("a.w") == "b.w" and both.renaming == (
        "“a.” is taken off the names of the file, and “b.” is put before the names of the file"
    )


X = torch.ones(1)
