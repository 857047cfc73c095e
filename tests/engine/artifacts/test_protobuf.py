"""The fields of a message of protobuf, and what is refused."""

from __future__ import annotations

import pytest

from engine.artifacts.programs.protobuf import fields


def test_a_group_which_onnx_never_has_is_refused() -> None:
    number_1_as_a_group = memoryview(bytes([1 << 3 | 3]))
    with pytest.raises(ValueError, match="a field of wire type 3"):
        list(fields(number_1_as_a_group))
