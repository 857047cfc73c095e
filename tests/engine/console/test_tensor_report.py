"""Reports of tensors of every kind, with torch itself as oracle."""

from __future__ import annotations

import math
import warnings

import msgspec
import numpy as np
import pytest
import torch
from torch import nn

from engine.console.tensor_report import report, report_tensors
from engine.protocol import TensorReport


def to_builtins(t: TensorReport) -> dict:
    """What a reader of the JSON gets."""
    return msgspec.json.decode(msgspec.json.encode(t))


STRIDED = {
    "contiguous": torch.arange(6.0).reshape(2, 3),
    "transposed": torch.arange(6.0).reshape(2, 3).T,
    "sliced": torch.arange(20).reshape(4, 5)[1:3, ::2],
    "expanded": torch.ones(3, 1).expand(3, 4),
    "scalar": torch.tensor(3.5),
    "empty": torch.empty(0, 3),
    "channels last": torch.arange(48.0).reshape(1, 3, 4, 4).to(memory_format=torch.channels_last),
    "bool": torch.tensor([True, False]),
    "uint8": torch.tensor([0, 255], dtype=torch.uint8),
    "uint64": torch.tensor([2**64 - 1], dtype=torch.uint64),
    "int64": torch.tensor([-(2**63)]),
    "bfloat16": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "float8": torch.tensor([1.5, -2.0]).to(torch.float8_e4m3fn),
    "parameter": nn.Parameter(torch.ones(2, 2)),
}


@pytest.mark.parametrize("t", STRIDED.values(), ids=STRIDED.keys())
def test_every_field_is_torchs_own(t):
    r = report(t)
    assert r.shape == tuple(t.shape)
    assert r.dtype == str(t.dtype)
    assert r.device == str(t.device)
    assert r.stride == t.stride()
    assert r.storage_offset == t.storage_offset()
    assert r.is_contiguous == t.is_contiguous()
    assert r.requires_grad == t.requires_grad
    assert r.is_leaf == t.is_leaf
    assert r.grad_fn is None
    assert r.version == t._version
    assert to_builtins(r)["values"] == t.detach().tolist()


def test_graph_fields_of_leaf_and_result():
    w = torch.ones(2, requires_grad=True)
    kept = w * 2
    kept.retain_grad()
    lost = kept + 1
    loss = lost.sum()
    loss.backward()
    assert (report(w).is_leaf, report(w).grad, report(w).grad_fn) == (True, [2.0, 2.0], None)
    assert (report(kept).grad_fn, report(kept).grad) == ("MulBackward0", [1.0, 1.0])
    assert (report(lost).grad_fn, report(lost).grad) == ("AddBackward0", None)
    assert report(loss).is_leaf is False


def test_an_in_place_change_raises_the_version():
    t = torch.zeros(2)
    view = t[:1]
    t.add_(1)
    assert report(t).version == report(view).version == t._version == 1


def test_a_copy_slices_node_has_the_name_torch_prints():
    base = torch.zeros(3, requires_grad=True) * 1
    base[0] = 5.0
    assert report(base).grad_fn == "CopySlices"
    assert "CopySlices" in repr(base)


def test_nan_and_infinities_are_words_and_complex_too():
    t = torch.tensor([[1.0, math.nan], [math.inf, -math.inf]])
    assert report(t).values == [[1.0, "nan"], ["inf", "-inf"]]
    c = torch.tensor([1 + 2j, 0j]).conj()
    shown = report(c).values
    assert isinstance(shown, list)
    assert [complex(z) for z in shown] == c.tolist()


@pytest.mark.parametrize(("numel", "shown"), [(1000, True), (1001, False)])
def test_values_and_gradients_stop_at_a_thousand_elements(numel, shown):
    t = torch.ones(numel, requires_grad=True)
    t.sum().backward()
    r = report(t)
    assert (r.values == [1.0] * numel) is shown
    assert (r.grad == [1.0] * numel) is shown
    assert shown or (r.values is None and r.grad is None)


def test_a_million_empty_rows_are_not_listed():
    assert report(torch.empty(1_000_000, 0)).values is None
    assert report(torch.empty(2, 0)).values == [[], []]


def test_sharers_of_a_storage_have_one_id_and_others_have_not():
    array = np.zeros(4, dtype=np.float32)
    base = torch.arange(6.0)
    reports = report_tensors({
        "base": base, "view": base[2:4], "detached": base.detach(), "clone": base.clone(),
        "empty": torch.empty(0), "empty too": torch.empty(0),
        "numpy": torch.from_numpy(array), "same numpy": torch.from_numpy(array),
        "half of it": torch.from_numpy(array[2:]), "meta": torch.empty(3, device="meta"),
    })  # fmt: skip
    ids = {name: r.storage_id for name, r in reports.items()}
    assert ids["base"] == ids["view"] == ids["detached"]
    assert ids["numpy"] == ids["same numpy"] == ids["half of it"]
    assert len(set(ids.values())) == 6
    assert None not in ids.values()


def shrunk() -> torch.Tensor:
    t = torch.ones(5)
    t.untyped_storage().resize_(0)
    return t


def inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(2)


def quantized() -> torch.Tensor:
    with warnings.catch_warnings(action="ignore"):  # torch warns once a process
        return torch.quantize_per_tensor(torch.tensor([0.0, 0.5]), 0.5, 0, torch.qint8)


def csr() -> torch.Tensor:
    with warnings.catch_warnings(action="ignore"):
        return torch.eye(2).to_sparse_csr()


ODD = {
    "coo": (lambda: torch.eye(2).to_sparse(), [[1.0, 0.0], [0.0, 1.0]]),
    "csr": (csr, [[1.0, 0.0], [0.0, 1.0]]),
    "quantized": (quantized, [0.0, 0.5]),
    "nested": (
        lambda: torch.nested.nested_tensor([torch.ones(1), torch.zeros(2)], layout=torch.jagged),
        [[1.0], [0.0, 0.0]],
    ),
    "mkldnn": (lambda: torch.ones(2).to_mkldnn(), [1.0, 1.0]),
    "inference": (inference, [1.0, 1.0]),
    "negated": (lambda: torch.tensor([1j]).conj().imag, [-1.0]),
    "meta": (lambda: torch.empty(2, device="meta"), None),
    "shrunk": (shrunk, None),
    "lazy": (lambda: nn.LazyLinear(2).weight, None),
    "batched": (None, None),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_tensors_are_reported_without_an_exception(name):
    make, values = ODD[name]
    if make is None:  # a tensor inside a transform, that has got out of it
        out = []
        torch.func.vmap(lambda x: (out.append(x), x)[1])(torch.ones(2, 3))
        make = out.pop
    r = report(make())
    assert r.values == values
    assert to_builtins(r)["dtype"] == ("torch.qint8" if name == "quantized" else "torch.float32")
    if name in ("coo", "csr", "mkldnn"):
        assert (r.stride, r.storage_offset, r.is_contiguous) == (None, None, None)
    if name == "inference":
        assert r.version is None


def test_a_subclass_that_refuses_everything_is_still_reported():
    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("no")

    assert report(torch.ones(2).as_subclass(Refusing)).values == [1.0, 1.0]


def test_reading_leaves_graph_version_and_rng_alone():
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).tanh()
    rng, sequence = torch.get_rng_state(), torch.autograd._get_sequence_nr()
    report_tensors({"x": x, "y": y})
    assert torch.equal(rng, torch.get_rng_state())
    assert torch.autograd._get_sequence_nr() == sequence
    assert (x._version, y._version, x.grad) == (0, 0, None)
    y.sum().backward()


def test_data_that_is_too_large_to_report_is_not_read(monkeypatch):
    def no_reading(t):
        raise AssertionError("this may copy all of it")

    monkeypatch.setattr("engine.console.tensor_report.readable", no_reading)
    t = torch.ones(50, 50, dtype=torch.complex64).conj()
    told = report(t)
    assert (told.shape, told.dtype, told.values) == ((50, 50), "torch.complex64", None)
