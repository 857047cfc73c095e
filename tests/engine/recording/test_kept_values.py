"""Values that a recording keeps: how deep it looks into containers, and how much it holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from engine.recording.argument_values import Keeper, OtherArgument, tiny_values
from engine.recording.line_values import (
    MAX_BITS,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_ITEMS,
    MISSING,
    attribute,
    glimpse,
    is_data,
)


def seen(value: object) -> object:
    return glimpse(value, lambda t: ("kept", t.sum().item()))  # type: ignore[arg-type, return-value]


def nested(depth: int, wrap) -> object:
    value: object = 7
    for _ in range(depth):
        value = wrap(value)
    return value


def test_containers_are_looked_into_down_to_a_depth() -> None:
    for wrap, name in (
        (lambda x: [x], "list"), (lambda x: (x,), "tuple"), (lambda x: {"k": x}, "dict"),
    ):  # fmt: skip
        assert seen(nested(MAX_DEPTH, wrap)) == nested(MAX_DEPTH, wrap)
        found = seen(nested(MAX_DEPTH + 1, wrap))
        for _ in range(MAX_DEPTH):
            (found,) = found.values() if isinstance(found, dict) else found  # type: ignore[misc]
        assert found == OtherArgument(f"{name} of 1")


def test_long_containers_are_cut() -> None:
    few = list(range(MAX_ITEMS))
    assert seen(few) == few and seen(tuple(few)) == tuple(few)
    assert seen([*few, 1, 2]) == [*few, OtherArgument("… 2 more")]
    assert seen(dict.fromkeys([*few, -1])) == {
        **dict.fromkeys(few), OtherArgument("… 1 more"): OtherArgument("")}  # fmt: skip
    assert seen([torch.ones(3), {torch.ones(1): 1}.keys()])[0] == ("kept", 3.0)  # type: ignore[index]
    assert seen({1, 2}) == OtherArgument("set of 2")


def test_a_copy_of_what_is_written_to_takes_its_own_bytes() -> None:
    values = Keeper(1000)
    whole = torch.arange(100.0)
    part = whole[:10]
    kept = values.keep(part)
    assert kept.shared and values.held_bytes == 400  # it keeps the whole storage alive
    values.before_write([whole])
    assert not kept.shared and values.held_bytes == 40
    whole.zero_()
    assert kept.tensor is not None and kept.tensor.tolist() == list(range(10))


def test_a_value_is_kept_once_until_its_tensor_is_written_to() -> None:
    keeper = Keeper()
    x = torch.ones(3, requires_grad=True)
    first = keeper.keep(x)
    assert keeper.keep(x) is first and keeper.held_bytes == 12
    assert first.tensor is not None and not first.tensor.requires_grad
    view = keeper.keep(x.detach())
    assert view is not first and keeper.held_bytes == 12  # the same memory, held once
    with torch.no_grad():
        keeper.before_write([x])
        x += 1
    assert first.tensor.tolist() == [1, 1, 1] and not first.shared and keeper.held_bytes == 24
    second = keeper.keep(x)
    assert second is not first and second.tensor is not None and second.tensor.tolist() == [2, 2, 2]
    keeper.before_write([torch.empty(2, device="meta"), torch.eye(2).to_sparse()])
    kept = keeper.values({"a": [x, (x, 5)], "size": x.size(), "other": object()})
    assert kept["a"] == [second, (second, 5)] and kept["size"] == torch.Size([3])
    assert kept["other"] == OtherArgument("object")
    del x
    keeper.forget_the_dead()
    assert not keeper._newest


def test_a_keeper_that_is_full_says_so_in_place_of_the_value() -> None:
    keeper = Keeper(2 << 20)
    whole = torch.zeros(1 << 18)  # one MiB
    first, second = keeper.keep(whole), keeper.keep(whole[:5].clone())
    assert not keeper.full and first.tensor is not None and second.tensor is not None
    lost = keeper.keep(torch.zeros(1 << 18))
    assert keeper.full and lost.tensor is None and lost.shape == (1 << 18,)
    assert lost.note == "not kept: the values of this recording take more than 2 MiB"
    small = Keeper(800)
    row = torch.ones(100)
    all_of_it = small.keep(row)
    other = small.keep(row[:50])
    small.before_write([row])
    assert all_of_it.tensor is not None  # its copy stands beside the storage for a moment
    assert other.tensor is None and small.full
    assert other.note == f"overwritten since, and {small.full_note}"


def test_what_has_no_value_of_its_own_says_why() -> None:
    keeper, inside = Keeper(), []

    def seen_inside(x: torch.Tensor) -> torch.Tensor:
        inside.append(keeper.keep(x))
        return x.sum()

    torch.func.grad(seen_inside)(torch.ones(2))
    assert inside[0].tensor is None and "inside a transform of torch.func" in inside[0].note
    sparse = keeper.keep(torch.eye(2).to_sparse())
    assert sparse.tensor is not None and not sparse.shared and keeper.held_bytes == 0


def test_the_numbers_of_a_tiny_result_are_read_where_that_is_quick() -> None:
    x = torch.tensor([[1.5, 2.0], [3.0, 4.0]], requires_grad=True)
    found = tiny_values(x * 1)
    assert found is not None and torch.equal(found.tensor(), x) and found.dtype == torch.float32
    emptied = torch.ones(2, requires_grad=True)
    part = emptied[:1]
    part.untyped_storage().resize_(0)
    for other in (
        torch.ones(5, requires_grad=True), torch.ones(2), nn.Parameter(torch.ones(1)), 3.0, part,
        torch.ones(2, requires_grad=True, device="meta"),
        torch.eye(2).to_sparse().requires_grad_(),
    ):  # fmt: skip
        assert tiny_values(other) is None


class Own:
    kind = "of the class"

    def __init__(self) -> None:
        self.kept = 3


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, None),
        (2.5, 2.5),
        (2**MAX_BITS - 1, 2**MAX_BITS - 1),
        (2**MAX_BITS, OtherArgument(f"an int of {MAX_BITS + 1} bits")),
        ("a" * MAX_CHARACTERS, OtherArgument(repr("a" * MAX_CHARACTERS))),
        ("a" * (MAX_CHARACTERS + 1), OtherArgument(f"{'a' * MAX_CHARACTERS!r}…")),
        (b"raw", OtherArgument("b'raw'")),
        (np.zeros((2, 3)), OtherArgument("array (2, 3) float64")),
        (np.int8(5), OtherArgument("int8(5)")),
        (torch.float32, torch.float32),
        (torch.ones(2), ("kept", 2.0)),
        ({(1, 2): 3}, {OtherArgument("tuple"): 3}),
        (frozenset({1}), OtherArgument("frozenset of 1")),
        (math, OtherArgument("module")),
        (Own, OtherArgument("class Own")),
        (Own(), OtherArgument("Own")),
    ],
)
def test_a_value_is_told_in_few_words(value: object, told: object) -> None:
    assert seen(value) == told


def test_data_is_shown_where_a_line_reads_it_and_functions_are_not() -> None:
    for value in (torch.ones(1), 3, "a", b"a", np.ones(1), None, 1.5, [1], (), {}, {1}):
        assert is_data(value)
    for value in (math, math.sqrt, Own, Own(), nn.ReLU()):
        assert not is_data(value)


def test_attributes_are_those_an_object_holds_and_torch_tells_without_effect() -> None:
    leaf = torch.ones(2, requires_grad=True)
    leaf.sum().backward()
    made = leaf * 2
    leaf.note = "own"  # type: ignore[attr-defined]
    net, norm, own = nn.Sequential(nn.Linear(2, 1)), nn.BatchNorm1d(2), Own()
    assert attribute(leaf, "grad") is leaf.grad
    assert attribute(leaf, "shape") == leaf.shape and attribute(made, "is_leaf") is False
    assert attribute(net, "0") is net[0] and attribute(net[0], "weight") is net[0].weight
    assert attribute(norm, "running_mean") is norm.running_mean
    assert attribute(norm, "training") is True and attribute(own, "kept") == 3
    for value, name in (
        (made, "grad"), (made, "T"), (leaf, "note"), (net, "weight"), (own, "kind"),
        (own, "__class__"), (Own, "kind"), (math, "pi"), (3, "real"), (object(), "own"),
    ):  # fmt: skip
        assert attribute(value, name) is MISSING, name


def test_tensors_that_are_gone_are_forgotten_between_two_recordings() -> None:
    values = Keeper()
    lives = torch.ones(2)
    kept = values.keep(lives)
    values.keep(torch.ones(2))
    values.forget_the_dead()
    assert len(values._newest) == 1 and values.keep(lives) is kept


def test_a_recording_keeps_512_mib_of_values() -> None:
    """The memory is asked for and never touched."""
    values = Keeper()
    most = torch.empty(512 << 20, dtype=torch.uint8)
    assert values.keep(most).tensor is not None and not values.full
    assert values.keep(most[:3]).tensor is not None and not values.full  # the same memory
    more = values.keep(torch.ones(1))
    assert more.tensor is None and values.full and "more than 512 MiB" in more.note
