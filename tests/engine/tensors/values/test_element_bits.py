"""The bits of one element, and that they add up to its value, for every dtype."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from engine.protocol import BitsCommand, BitsSnapshot, ErrorSnapshot, RunCellCommand
from engine.server.session import Session
from engine.tensors.values.bits import FORMATS, bits_of

INTEGERS = {
    torch.int8: torch.uint8,
    torch.int16: torch.uint16,
    torch.int32: torch.uint32,
    torch.int64: torch.uint64,
}


def all_values(dtype: torch.dtype) -> torch.Tensor:
    """All bit patterns of up to 16 bits (some of those), the interesting ones of more."""
    if dtype.itemsize == 1:
        return torch.arange(256, dtype=torch.uint8).view(dtype)
    info = torch.finfo(dtype)
    numbers = [0.0, -0.0, 1.0, -1.5, 0.1, info.max, info.tiny, info.tiny / 4, float("inf")]
    return torch.tensor([*numbers, -float("inf"), float("nan")], dtype=dtype)


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_floats(dtype: torch.dtype) -> None:
    layout = FORMATS[dtype]
    for element in all_values(dtype):
        (part,) = bits_of(element)
        value = element.double().item()
        widths = {field.kind: len(field.bits) for field in part.fields}
        assert widths.get("sign", 0) == int(layout.signed)
        assert widths["exponent"] == layout.exponent_bits
        assert widths.get("mantissa", 0) == layout.mantissa_bits
        if value != value or value in (float("inf"), -float("inf")):
            assert part.exact == str(value)
            continue
        assert Fraction(part.exact) == Fraction(value)
        product = part.formula.split(" (")[0]
        factor, power = product.split(" × 2^")
        assert Fraction(factor) * Fraction(2) ** int(power) == Fraction(value) or value == 0
        raw = "".join(field.bits for field in part.fields)
        assert int(raw, 2).to_bytes(len(raw) // 8, "little") == bytes(
            element.reshape(1).view(torch.uint8).tolist()
        )


def test_one_tenth_in_float32_written_out() -> None:
    (part,) = bits_of(torch.tensor(0.1))
    assert [(f.kind, f.bits) for f in part.fields] == [
        ("sign", "0"),
        ("exponent", "01111011"),
        ("mantissa", "10011001100110011001101"),
    ]
    assert part.fields[1].meaning == "123 - bias 127 = -4"
    assert part.formula == "1.60000002384185791015625 × 2^-4"
    assert part.exact == "0.100000001490116119384765625"


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers(dtype: torch.dtype) -> None:
    info = torch.iinfo(dtype)
    for value in (info.min, -2, -1, 0, 1, info.max):
        (part,) = bits_of(torch.tensor(value, dtype=dtype))
        assert part.exact == str(value)
        assert int("".join(f.bits for f in part.fields), 2) == value % (1 << info.bits)
        factor, weight, rest = part.formula.split(" = ")[0].replace("×", "+").split(" + ")
        assert int(factor) * int(weight) + int(rest) == value
    unsigned = torch.iinfo(INTEGERS[dtype]).max
    (part,) = bits_of(torch.tensor(unsigned, dtype=INTEGERS[dtype]))
    assert part.exact == str(unsigned)


def test_bool_and_complex() -> None:
    assert bits_of(torch.tensor(True))[0].exact == "True"
    real, imaginary = bits_of(torch.tensor(1 - 2j).conj())
    assert (real.name, real.exact, imaginary.name, imaginary.exact) == (
        "real",
        "1",
        "imaginary",
        "2",
    )


def test_an_element_that_is_not_there() -> None:
    out: list = []
    session = Session(out.append)
    session.handle(RunCellCommand(source="x = torch.ones(2, 3); m = x.to('meta'); n = 5"))

    def ask(name: str, *index: int):
        del out[:]
        session.handle(BitsCommand(expression=name, index=index))
        (snapshot,) = out
        return snapshot

    good = ask("x", 1, 2)
    assert isinstance(good, BitsSnapshot) and (good.text, good.index) == ("1", (1, 2))
    meta = ask("m", 0, 0)
    assert isinstance(meta, BitsSnapshot) and meta.parts == () and "meta" in meta.note
    for name, index, words in (
        ("x", (2, 0), "out of range"),
        ("x", (1,), "name one element"),
        ("n", (), "not a tensor"),
        ("y", (0,), "no variable"),
    ):
        failed = ask(name, *index)
        assert isinstance(failed, ErrorSnapshot) and words in failed.error.message
