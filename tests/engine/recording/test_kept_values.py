"""Values that a recording keeps: how deep it looks into containers, and how much it holds."""

from __future__ import annotations

import torch

from engine.recording.argument_values import Keeper, Other
from engine.recording.line_values import MAX_DEPTH, MAX_ITEMS, glimpse


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
        assert found == Other(f"{name} of 1")


def test_long_containers_are_cut() -> None:
    few = list(range(MAX_ITEMS))
    assert seen(few) == few and seen(tuple(few)) == tuple(few)
    assert seen([*few, 1, 2]) == [*few, Other("… 2 more")]
    assert seen(dict.fromkeys([*few, -1])) == {
        **dict.fromkeys(few), Other("… 1 more"): Other("")}  # fmt: skip
    assert seen([torch.ones(3), {torch.ones(1): 1}.keys()])[0] == ("kept", 3.0)  # type: ignore[index]
    assert seen({1, 2}) == Other("set of 2")


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
