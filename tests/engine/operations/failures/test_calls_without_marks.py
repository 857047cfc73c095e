"""Calls that nothing is marked in: those whose operands fit, or whose arguments are of no use."""

from __future__ import annotations

from typing import Any

import pytest

from engine.operations.failures import Call, CallTensor, failed_operands
from engine.operations.failures.call import MAX_OPERANDS, MAX_TEXT, clip, counted, sizes_asked
from engine.protocol import FailedOperands

X, WIDE, ROW = CallTensor("x", (3, 4)), CallTensor("wide", (3, 5)), CallTensor("row", (4,))
SCALAR = CallTensor("s", ())
INDEX = CallTensor("i", (1, 1), "int64", extremes=(0, 2))


def failed(name: str, *args: Any, **kwargs: Any) -> FailedOperands | None:
    return failed_operands(Call(name, args, kwargs, "no such message"))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("reshape", (X, 6, 2)),
        ("view", (X, 6, 2)),  # without strides nothing is known
        ("view", (X, 3.5)),
        ("split", (X, "a")),
        ("split", (X, [1.5, 1.5])),
        ("split", (X, [1, 2], 0.5)),
        ("split", (X, [1, 2])),
        ("split", (X, [2, 2], 1)),
        ("split", (SCALAR, [1])),
        ("permute", (X, 1, 0)),
        ("permute", (X, "a")),
        ("select", (X, "a", 1)),
        ("select", (SCALAR, 0, 1)),
        ("index_select", (X, 0, INDEX)),
        ("gather", (X, "a", INDEX)),
        ("gather", (X, 0, 3)),
        ("gather", (SCALAR, 0, INDEX)),
        ("gather", (X, 0, INDEX)),
        ("scatter", (X, 1, CallTensor("i", (3, 1), "int64"))),
        ("expand", (X, 2, 3, 4)),
        ("expand", (X, -1, 4)),
        ("expand", (CallTensor("c", (3, 1)), 3, 9)),
        ("expand", (X, "a")),
        ("cat", ([X, WIDE], "a")),
        ("cat", ([X, WIDE], 1)),
        ("cat", ([X, CallTensor("e", (0,))],)),
        ("cat", ([X],)),
        ("stack", ([X, X],)),
        ("einsum", ("i", X)),
        ("einsum", ("!", X)),
        ("einsum", ("ij,jk", X)),
        ("einsum", ("ij,kj", X, WIDE)),
        ("matmul", (X, ROW)),
        ("matmul", (X,)),
        ("linear", (X,)),
        ("linear", (X, ROW)),
        ("linear", (SCALAR, X)),
        ("linear", (X, CallTensor("w", (2, 4)))),
        ("conv1d", (CallTensor("c", (1, 2, 9)),)),
        ("conv1d", (CallTensor("c", (1, 2, 9)), CallTensor("w", (4, 2, 3)))),
        ("conv1d", (CallTensor("c", (1, 2, 9)), CallTensor("w", (4, 2)))),
        ("conv1d", (CallTensor("c", (1, 2, 9)), CallTensor("w", (4, 1, 3)), None, 1, 0, 1, 2)),
        ("conv_transpose1d", (CallTensor("c", (1, 4, 9)), CallTensor("w", (4, 2, 3)))),
        ("embedding", (INDEX,)),
        ("embedding", (INDEX, SCALAR)),
        ("embedding", (INDEX, X)),
        ("add", (X, ROW)),
        ("softmax", (X,)),
    ],
)
def test_what_is_not_wrong_is_not_marked(name: str, args: tuple) -> None:
    found = failed(name, *args)
    if name == "einsum" and args[0] == "ij,kj":  # its inner sizes are those that differ
        assert found is not None and found.kind == "product"
        return
    tensors = Call(name, args).tensors
    assert found is not None and (found.kind, found.operation, found.text) == ("other", name, "")
    assert [row.text for row in found.operands] == [seen.text for seen in tensors]
    assert [row.cells for row in found.operands] == [seen.shape for seen in tensors]
    for row in found.operands:
        assert (row.failing, row.wrong, row.note) == ((), (), "")
        assert row.columns == tuple(range(len(row.cells)))
    most = max(len(seen.shape) for seen in tensors)
    assert found.headings == tuple(map(str, range(most)))


def test_without_tensors_there_is_no_picture() -> None:
    assert failed("arange", 3) is None and failed("cat", [1, 2]) is None


def test_no_more_operands_are_shown_than_there_is_room_for() -> None:
    found = failed("meshgrid", [X] * (MAX_OPERANDS + 3))
    assert found is not None and len(found.operands) == MAX_OPERANDS


def test_the_arguments_of_a_call_are_had_by_place_or_by_name() -> None:
    call = Call("f", (X, 5), {"dim": 1, "others": (ROW, [3])})
    assert [seen.text for seen in call.tensors] == ["x", "row"]
    assert call.given(1, "index") == 5 and call.given(1, "dim") == 1
    assert call.given(2, "index") is None and call.given(2, default=7) == 7
    assert call.given(2, "index", "dim", default=7) == 1


@pytest.mark.parametrize(
    ("args", "kwargs", "sizes"),
    [
        ((X, 2, 3), {}, (2, 3)),
        ((X, (2, 3)), {}, (2, 3)),
        ((X, [2, 3]), {}, (2, 3)),
        ((X, 2), {}, (2,)),
        ((X,), {"size": (2, 3)}, (2, 3)),
        ((X,), {"shape": [2]}, (2,)),
        ((X,), {"dims": (1, 0)}, (1, 0)),
        ((X,), {}, None),
        ((X, ()), {}, None),
        ((X, 2.0), {}, None),
        ((X, True), {}, None),
        ((X, ROW), {}, None),
        ((X, *range(20)), {}, tuple(range(12))),
    ],
)
def test_the_sizes_that_were_asked_for(args: tuple, kwargs: dict, sizes: tuple | None) -> None:
    assert sizes_asked(Call("f", args, kwargs)) == sizes


def test_a_long_text_is_cut_and_one_thing_is_one() -> None:
    assert clip("a" * MAX_TEXT) == "a" * MAX_TEXT
    assert clip("a" * (MAX_TEXT + 1)) == "a" * (MAX_TEXT - 1) + "…"
    assert [counted(n, "dim") for n in (0, 1, 2, 1000)] == [
        "0 dims",
        "1 dim",
        "2 dims",
        "1,000 dims",
    ]


@pytest.mark.parametrize(
    ("name", "kind"), [("add", "other"), ("add_", "broadcast"), ("__add__", "other")]
)
def test_only_a_call_in_place_may_not_stretch_its_first_tensor(name: str, kind: str) -> None:
    one, three = CallTensor("one", (1,)), CallTensor("three", (3,))
    found = failed_operands(Call(name, (one, three), message="they cannot be broadcast"))
    assert found is not None and found.kind == kind
    assert found.operands[0].failing == ((0,) if kind == "broadcast" else ())
