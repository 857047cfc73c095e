"""Results of the calls in a pickle: a call that rebuilds a tensor gives a description of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import NoneType
from typing import Any

import torch

from .descriptions import Global, NotAPickle, OtherObject, StorageOf, TensorOf

_INTEGERS = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}
_KEYS = (str, bytes, int, float, NoneType, OtherObject)
_UTILS = "torch._utils._rebuild_"
DIM_RANGE = "torch._dynamo.decorators._DimRange"
JAGGED = frozenset(
    {
        "torch.nested._internal.nested_tensor._rebuild_njt",
        "torch.nested._internal.nested_tensor.NestedTensor",
        DIM_RANGE,
    }
)
"""What jagged tensors ask for: torch's loader allows it once torch.nested is imported."""


def _tensor(
    storage: Any, start: Any, size: Any, stride: Any,
    _grad: Any = None, _hooks: Any = None, bits: Any = None,
) -> TensorOf:  # fmt: skip
    if not isinstance(storage, StorageOf):
        raise NotAPickle("a tensor of no storage")
    if not isinstance(bits, dict | None):
        raise NotAPickle("a tensor with other metadata than torch writes")
    conj, neg = ((bits or {}).get(name) is True for name in ("conj", "neg"))
    return TensorOf(storage, storage.dtype, size, start, stride, conj, neg)


def _typed_tensor(
    storage: Any, start: Any, size: Any, stride: Any,
    grad: Any, hooks: Any, dtype: Any, bits: Any = None,
) -> TensorOf:  # fmt: skip
    whole = _tensor(storage, start, size, stride, grad, hooks, bits)
    return replace(whole, dtype=_dtype(dtype))


def _parameter(data: Any = None, *_: Any) -> Any:
    return (
        replace(data, is_parameter=True) if isinstance(data, TensorOf) else OtherObject("Parameter")
    )


def _quantized(
    storage: Any, start: Any, size: Any, stride: Any, scheme: Any = (), *_: Any
) -> TensorOf:
    """Its integers are a tensor of their own; the note says which numbers they stand for."""
    whole = _tensor(storage, start, size, stride)
    plain = _INTEGERS.get(whole.dtype)
    how, *of = scheme if isinstance(scheme, tuple) and scheme else ("",)
    name = str(how.name if isinstance(how, Global) else how).removeprefix("torch.")
    inner = {"scales": of[0], "zero_points": of[1]} if len(of) > 2 else {}
    inner = {key: each for key, each in inner.items() if isinstance(each, TensorOf)}
    told = "(int_repr - zero_points) * scales"
    if _are_numbers(of):
        told = f"(int_repr - {of[1]}) * {of[0]!r}"
    elif len(of) > 2:
        told += f" along dim {of[2]}"
    note = f"it is quantized, {name}: its numbers are {told}"
    if plain is None:
        return replace(whole, storage=None, note="it is quantized", inner=inner)
    integers = replace(whole, storage=replace(storage, dtype=plain), dtype=plain)
    return replace(whole, storage=None, note=note, inner={"int_repr": integers, **inner})


def _are_numbers(of: list[Any]) -> bool:
    return len(of) == 2 and isinstance(of[0], float | int) and isinstance(of[1], int)


def _sparse(layout: Any, data: Any) -> TensorOf:
    name = str(layout.name if isinstance(layout, Global) else layout).removeprefix("torch.")
    names = {
        "sparse_coo": ("indices", "values"),
        "sparse_csr": ("crow_indices", "col_indices", "values"),
        "sparse_csc": ("ccol_indices", "row_indices", "values"),
        "sparse_bsr": ("crow_indices", "col_indices", "values"),
        "sparse_bsc": ("ccol_indices", "row_indices", "values"),
    }[name]
    inner = {n: t for n, t in zip(names, data, strict=False) if isinstance(t, TensorOf)}
    note = f"layout {name}: its numbers are those of its parts"
    if name == "sparse_coo" and data[3:4] == (False,):
        note += ", added up where an index is there more than once"
    return TensorOf(None, inner["values"].dtype, data[len(names)], note=note, inner=inner)


def _meta(dtype: Any, size: Any, *_: Any) -> TensorOf:
    return TensorOf(None, _dtype(dtype), size, note="it is on the meta device")


def _nested(buffer: Any, *_: Any) -> TensorOf:
    return replace(buffer, note="nested: these are the numbers of all its parts, flat")


def _jagged(state: Any, *_: Any) -> TensorOf:
    if not isinstance(state, dict) or not isinstance(state.get("values"), TensorOf):
        raise NotAPickle("a jagged tensor without values")
    named = {name: state.get(name) for name in ("offsets", "lengths")}
    inner = {name: each for name, each in named.items() if isinstance(each, TensorOf)}
    note = "jagged: its parts one after the other; offsets say where each begins"
    return replace(state["values"], note=note, inner=inner)


def _subclass(_class: Any, dtype: Any, size: Any, *_: Any) -> TensorOf:
    return TensorOf(None, _dtype(dtype), size, note="it is of a subclass of Tensor")


def _dtype(value: Any) -> torch.dtype:
    if not isinstance(value, Global) or not isinstance(value.value, torch.dtype):
        raise NotAPickle("a dtype is expected")
    return value.value


def _dict(items: Any = (), *_: Any) -> dict:
    return items if isinstance(items, dict) else pairs([each for pair in items for each in pair])


def pairs(items: list[Any]) -> dict:
    """A dict from a list of key, value, key, value, ... A key that is a tuple is replaced: the hash
    of nested tuples could exhaust the stack."""
    keys = [key if isinstance(key, _KEYS) else OtherObject("a key") for key in items[::2]]
    return dict(zip(keys, items[1::2], strict=True))


def _encoded(text: Any, *_: Any) -> bytes:
    return text.encode("latin1")


def _sized(data: Any = b"", *_: Any) -> Any:
    if isinstance(data, int):  # bytearray(n) is a request for n bytes
        raise NotAPickle("an array of bytes by its length")
    return data


def _complex(real: float, imaginary: float = 0.0) -> complex:
    return complex(float(real), float(imaginary))


CALLS: dict[str, Callable[..., Any]] = {
    f"{_UTILS}tensor": _tensor,
    f"{_UTILS}tensor_v2": _tensor,
    f"{_UTILS}tensor_v3": _typed_tensor,
    f"{_UTILS}parameter": _parameter,
    f"{_UTILS}parameter_with_state": _parameter,
    f"{_UTILS}qtensor": _quantized,
    f"{_UTILS}sparse_tensor": _sparse,
    f"{_UTILS}meta_tensor_no_storage": _meta,
    f"{_UTILS}nested_tensor": _nested,
    f"{_UTILS}wrapper_subclass": _subclass,
    "torch.nested._internal.nested_tensor._rebuild_njt": _jagged,
    DIM_RANGE: lambda *_: OtherObject(DIM_RANGE),
    f"{_UTILS}device_tensor_from_cpu_tensor": lambda data, *_: data,
    "torch.nn.parameter.Parameter": _parameter,
    "collections.OrderedDict": _dict,
    "collections.Counter": _dict,
    "torch.Size": lambda sizes=(): tuple(sizes),
    "torch.device": lambda *names: Global(":".join(map(str, names))),
    "torch.serialization._get_layout": lambda name: Global(str(name)),
    "torch.jit._pickle.restore_type_tag": lambda value, *_: value,
    "_codecs.encode": _encoded,
    "builtins.bytearray": _sized,
    "builtins.set": lambda items=(): list(items),
    "builtins.complex": _complex,
}
"""By the name of each function that torch's own safe loader calls: what gives a description for its
arguments here."""
