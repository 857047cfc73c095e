"""The fields of a message of protobuf, and what is refused."""

from __future__ import annotations

import pytest

from engine.artifacts.programs.protobuf import fields, float32, integers


def test_a_group_which_onnx_never_has_is_refused() -> None:
    number_1_as_a_group = memoryview(bytes([1 << 3 | 3]))
    with pytest.raises(ValueError, match="a field of wire type 3"):
        list(fields(number_1_as_a_group))


def read(*data: int, offset: int = 0) -> list[tuple[int, object, int]]:
    return [
        (each.number, each.value if isinstance(each.value, int) else bytes(each.value), each.offset)
        for each in fields(memoryview(bytes(data)), offset)
    ]


def test_fields_are_told_with_their_place_in_the_file() -> None:
    whole, text, eight, four = [8, 150, 1], [18, 2, 65, 66], [25, *range(8)], [37, 1, 2, 3, 4]
    assert read(*whole, *text, *eight, *four, offset=100) == [
        (1, 150, 103), (2, b"AB", 105), (3, bytes(range(8)), 108), (4, b"\1\2\3\4", 117),
    ]  # fmt: skip
    assert read() == [] and read(18, 0) == [(2, b"", 2)]
    assert read(128 | 2, 1, 1, 65) == [(16, b"A", 3)]  # a number of two bytes


@pytest.mark.parametrize(
    "data",
    [
        [8], [8, 128], [18], [18, 2, 65], [25, *range(7)], [37, 1, 2, 3], [128],
        [8, *[128] * 10, 1],
    ],
)  # fmt: skip
def test_a_message_that_is_cut_off_is_told(data: list[int]) -> None:
    with pytest.raises(ValueError, match="it is cut off"):
        read(*data)


def test_numbers_have_a_sign_and_64_bits() -> None:
    most = [255] * 9 + [1]
    (field,) = fields(memoryview(bytes([8, *most])))
    assert field.value == 2**64 - 1 and field.integer == -1
    (half,) = fields(memoryview(bytes([8, *[255] * 8, 127])))
    assert half.integer == 2**63 - 1
    assert integers(field) == [-1]
    (packed,) = fields(memoryview(bytes([10, 13, 3, 150, 1, *most])))
    assert integers(packed) == [3, 150, -1]
    assert read(8, *[255] * 9, 127) == [(1, 2**64 - 1, 11)]  # beyond 64 bits nothing counts


def test_what_is_asked_of_a_field_of_the_other_kind_is_refused() -> None:
    whole, text, real = fields(memoryview(bytes([8, 3, 18, 1, 255, 29, 0, 0, 0, 63])))
    with pytest.raises(ValueError, match="a number where bytes are expected"):
        _ = whole.data
    with pytest.raises(ValueError, match="bytes where a number is expected"):
        _ = text.integer
    assert text.text == "\\xff" and float32(real) == 0.5
    with pytest.raises(ValueError, match="a field without a number"):
        read(0, 1)
