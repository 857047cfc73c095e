"""Which inputs the weights of a script tell, and what an operation gives, without a file."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch

from engine.artifacts.programs.script_inputs import _dim, _input, likely_inputs
from engine.artifacts.programs.script_shapes import (
    MAX_SIZE,
    MAX_TENSORS,
    UNKNOWN,
    MisfitError,
    ShapeRun,
    is_several,
    same,
    spec_of,
)
from engine.protocol import ProgramGraph, ProgramNode, ProgramValue

FLOAT, HALF = torch.float32, torch.float16


def node(op: str, *inputs: str, **attributes: str) -> ProgramNode:
    named = tuple((name.removeprefix("n"), text) for name, text in attributes.items())
    return ProgramNode(op, op, "", inputs, (ProgramValue(f"{op}_out"),), named)


@pytest.mark.parametrize(
    ("op", "sizes", "row", "sequence"),
    [
        (node("linear"), (5, 3), ("N", 3), ("N", 16, 3)),
        (node("matmul"), (5, 3), ("N", 5), ("N", 16, 5)),
        (node("addmm"), (5, 3), ("N", 5), ("N", 16, 5)),
        (node("layer_norm"), (7,), ("N", 7), ("N", 16, 7)),
        (node("lstm"), (8, 3), (16, "N", 3), (16, "N", 3)),
        (node("gru", n8="True"), (8, 3), ("N", 16, 3), ("N", 16, 3)),
        (node("conv2d"), (4, 3, 5, 5), ("N", 3, 28, 28), None),
        (node("conv2d", n6="2"), (4, 3, 5, 5), ("N", 6, 28, 28), None),
        (node("conv2d", n6="g"), (4, 3, 5, 5), ("N", 3, 28, 28), None),
        (node("conv1d"), (4, 3, 5), ("N", 3, 28), None),
        (node("conv_transpose2d"), (4, 3, 5, 5), ("N", 4, 28, 28), None),
        (node("_convolution", n6="True"), (4, 3, 5, 5), ("N", 4, 28, 28), None),
        (node("_convolution", n6="False", n8="2"), (4, 3, 5, 5), ("N", 6, 28, 28), None),
    ],
)
def test_an_input_that_a_weight_may_take(
    op: ProgramNode, sizes: tuple[int, ...], row: Any, sequence: Any
) -> None:
    assert _input(op, sizes, HALF, 28, 16, False) == (row, HALF)
    assert _input(op, sizes, HALF, 28, 16, True) == (sequence and (sequence, HALF))
    is_image = len(sizes) > 2
    assert (_input(op, sizes, HALF, 28, 0, False) is not None) is is_image


def test_an_embedding_takes_whole_numbers() -> None:
    whole = node("embedding")
    assert _input(whole, (9, 4), FLOAT, 28, 16, False) == (("N", 16), torch.int64)
    assert _input(whole, (9, 4), FLOAT, 28, 16, True) == (("N",), torch.int64)


@pytest.mark.parametrize(
    ("two", "three", "dim"),
    [(2, 3, "N"), (4, 6, "2N"), (5, 5, 5), (3, 4, "N+1"), (1, 2, "N-1"), (7, 10, "3N+1")],
)
def test_a_size_in_terms_of_the_batch(two: int, three: int, dim: Any) -> None:
    assert _dim(two, three) == dim


def test_usual_inputs_come_once_each_and_images_first_of_their_usual_sizes() -> None:
    def graph(*nodes: ProgramNode) -> ProgramGraph:
        return ProgramGraph(inputs=(ProgramValue("x"), ProgramValue("y")), nodes=nodes)

    image = graph(node("relu", "x"), node("conv2d", "relu_out", "w"))
    found = [each["x"][0] for each in likely_inputs(image, {"w": ((4, 3, 5, 5), FLOAT)})]
    assert found[:3] == [("N", 3, 28, 28), ("N", 3, 32, 32), ("N", 3, 64, 64)]
    assert len(found) == len(set(found)) == 12
    rows = graph(node("linear", "x", "w"), node("linear", "y", "v"))
    both = list(likely_inputs(rows, {"w": ((5, 3), FLOAT), "v": ((5, 4), HALF)}))
    assert both[0] == {"x": (("N", 3), FLOAT), "y": (("N", 4), HALF)}
    assert both[1] == {"x": (("N", 16, 3), FLOAT), "y": (("N", 16, 4), HALF)}
    assert len(both) == 7  # a row, and a sequence of each length
    assert list(likely_inputs(graph(node("relu", "x")), {})) == []
    assert list(likely_inputs(graph(node("linear", "z", "w")), {"w": ((5, 3), FLOAT)})) == []
    other = {"w": ((5, 3, 1), FLOAT)}
    assert list(likely_inputs(graph(node("linear", "x", "w")), other)) == []


META = torch.device("meta")
X = torch.empty(2, 3, device=META)


def ran(op: str, *args: Any, **named: Any) -> Any:
    return ShapeRun({}, {}, {}, 2).run(op, list(args), named)


@pytest.mark.parametrize(
    ("op", "args", "result"),
    [
        ("add", [2, 3], 5), ("sub", [2, 3], -1), ("mul", [2, 3], 6), ("div", [3, 2], 1.5),
        ("floordiv", [7, 2], 3), ("floor_divide", [7, 2], 3), ("remainder", [7, 4], 3),
        ("neg", [2], -2), ("lt", [1, 1], False), ("le", [1, 1], True), ("gt", [1, 1], False),
        ("ge", [1, 1], True), ("sqrt", [4], 2.0), ("Int", [2.7], 2), ("int", [2.7], 2),
        ("Float", [2], 2.0), ("float", [2], 2.0), ("prim.NumToTensor", [3], 3),
        ("eq", ["a", "a"], True), ("ne", ["a", "a"], False), ("__not__", [0], True),
        ("__and__", [True, False], False), ("__or__", [True, False], True),
        ("__getitem__", [[5, 6], 1], 6), ("__contains__", [[5, 6], 5], True), ("bool", [[]], False),
        ("len", [[1, 2]], 2), ("all", [[1, 0]], False), ("any", [[1, 0]], True),
        ("prim.min", [[3, 1]], 1), ("prim.max", [[3, 1]], 3), ("format", ["{}", 1], ""),
        ("is_grad_enabled", [], False), ("is_autocast_enabled", ["cpu"], False),
        ("device", ["cuda"], META), ("prim.type", ["cpu"], "cpu"),
        ("div", [1, 0], UNKNOWN), ("__getitem__", [[5], 3], UNKNOWN), ("sqrt", [-1], UNKNOWN),
        ("add", [MAX_SIZE, 1], MAX_SIZE + 1), ("add", [MAX_SIZE + 1, 1], UNKNOWN),
        ("add", [sys.maxsize, 0], sys.maxsize), ("nothing", [1], UNKNOWN),
        ("add", [[1], 2], UNKNOWN),
    ],
)  # fmt: skip
def test_numbers_are_those_of_python(op: str, args: list[Any], result: Any) -> None:
    found = ran(op, *args)
    assert found is UNKNOWN if result is UNKNOWN else found == result
    assert type(found) is type(result)


def test_what_is_asked_of_a_tensor() -> None:
    assert (ran("size", X), ran("size", X, 1), ran("dim", X), ran("len", X)) == ([2, 3], 3, 2, 2)
    assert (ran("numel", X), ran("prim.dtype", X), ran("prim.device", X)) == (6, FLOAT, META)
    assert ran("prim.data", X) is X and ran("cpu", X) is X
    assert ran("prim.requires_grad", X) is ran("prim.is_nested", X) is False
    assert ran("__is__", X, X) is True and ran("__isnot__", X, X) is False
    assert [tuple(each.shape) for each in ran("split", X, 2, 1)] == [(2, 2), (2, 1)]


def test_to_gives_the_dtype_that_it_is_told() -> None:
    half = torch.empty(1, dtype=HALF, device=META)
    for args, dtype in (((half,), HALF), ((5,), HALF), ((HALF,), HALF), ((META,), FLOAT)):
        found = ran("to", X, *args)
        assert (found.dtype, tuple(found.shape), found.device) == (dtype, (2, 3), META)
    assert ran("to", X, META) is X
    assert ran("to", X, dtype=7).dtype == torch.float64
    assert ran("to", X, True) is X  # non_blocking is no dtype


def test_operations_of_torch_run_on_meta() -> None:
    weight = torch.empty(5, 3, device=META)
    assert tuple(ran("linear", X, weight).shape) == (2, 5)
    made = ran("ones", [2, 2], dtype=5, layout=0, pin_memory=False)
    assert (made.dtype, made.device, tuple(made.shape)) == (HALF, META, (2, 2))
    assert ran("softmax", X, 1, 5).dtype == HALF
    assert ran("sum", X, dtype=7).dtype == torch.float64
    assert ran("zeros_like", X, device=torch.device("cpu")).device == META
    assert not ran("relu", torch.empty(2, device=META, requires_grad=True)).requires_grad
    wide = torch.empty(MAX_TENSORS, device=META)
    assert len(ran("unbind", wide)) == MAX_TENSORS
    assert ran("unbind", torch.empty(MAX_TENSORS + 1, device=META)) is UNKNOWN
    assert ran("linear", X, UNKNOWN) is UNKNOWN and ran("cat", [X, UNKNOWN]) is UNKNOWN
    with pytest.raises(MisfitError):
        ran("cat", [X, torch.empty(3, 4, device=META)])


def test_values_have_the_shapes_of_weights_and_inputs() -> None:
    run = ShapeRun({"w": ((5, 3), HALF)}, {"n": 4}, {"x": (("N", 3), FLOAT)}, 7)
    w, x = run.of("w"), run.of("x")
    assert (tuple(w.shape), w.dtype, w.device) == ((5, 3), HALF, META)
    assert (tuple(x.shape), x.dtype) == ((7, 3), FLOAT) and run.of("x") is x
    assert run.of("n") == 4 and run.of("gone") is UNKNOWN
    run.keep("gone", 3)
    assert run.of("gone") == 3


def test_what_is_told_of_a_value() -> None:
    assert spec_of(X) == ((2, 3), "float32")
    assert [spec_of(each) for each in (3, 0.5, True, [1], "a", None)] == [
        (None, "int"), (None, "float"), (None, "bool"), (None, "list"), (None, ""), (None, ""),
    ]  # fmt: skip
    assert is_several([X, X]) and is_several((X, [X])) and not is_several([]) and not is_several(X)
    assert not is_several([X, 1])


def test_values_are_the_same_if_shapes_can_depend_on_nothing_else() -> None:
    other = torch.empty(2, 3, device=META)
    assert same(X, other) and same([X, 1], [other, 1]) and same(1, 1) and same("a", "a")
    for one, two in (
        (X, X.half()), (X, X.t()), ([X], [X, X]), ([X], X), (1, 2), (1, 1.0), (True, 1),
        (UNKNOWN, UNKNOWN), (X, 1),
    ):  # fmt: skip
        assert not same(one, two)
