"""The bits of one element: sign, exponent and mantissa, or two's complement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ...protocol import BitField, BitsPart
from ..texts import exact


@dataclass(frozen=True)
class FloatFormat:
    """The bits of a floating dtype. `special` says which patterns are not ordinary numbers: those
    of IEEE 754 (all exponent bits set: infinity, NaN), only all bits set (`fn`: NaN), or only the
    pattern of minus zero (`fnuz`: NaN)."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    special: Literal["ieee", "fn", "fnuz"] = "ieee"
    signed: bool = True


# The bfloat16 and float8 formats: P. Micikevicius et al., "FP8 formats for deep learning", 2022;
# fnuz: B. Noune et al., "8-bit numerical formats for deep neural networks", 2022; float8_e8m0fnu:
# Open Compute Project, "Microscaling formats (MX) specification", 2023.
FORMATS: dict[torch.dtype, FloatFormat] = {
    torch.float64: FloatFormat(11, 52, 1023),
    torch.float32: FloatFormat(8, 23, 127),
    torch.float16: FloatFormat(5, 10, 15),
    torch.bfloat16: FloatFormat(8, 7, 127),
    torch.float8_e4m3fn: FloatFormat(4, 3, 7, "fn"),
    torch.float8_e5m2: FloatFormat(5, 2, 15),
    torch.float8_e4m3fnuz: FloatFormat(4, 3, 8, "fnuz"),
    torch.float8_e5m2fnuz: FloatFormat(5, 2, 16, "fnuz"),
    torch.float8_e8m0fnu: FloatFormat(8, 0, 127, "fn", signed=False),
}


def bits_of(element: Tensor) -> tuple[BitsPart, ...]:
    """The parts of a plain CPU tensor of one element: one part, or real and imaginary."""
    element = element.detach().reshape(1)
    if element.is_complex():
        real, imaginary = torch.view_as_real(element.resolve_conj()).unbind(-1)
        return (_part(real, "real"), _part(imaginary, "imaginary"))
    return (_part(element, ""),)


def _part(element: Tensor, name: str) -> BitsPart:
    raw = bytes(element.clone(memory_format=torch.contiguous_format).view(torch.uint8).tolist())
    bits = f"{int.from_bytes(raw, 'little'):0{8 * len(raw)}b}"
    if element.dtype == torch.bool:
        return _boolean(bits, name)
    if element.dtype in FORMATS:
        return _floating(bits, FORMATS[element.dtype], name)
    return _integer(bits, element.dtype.is_signed, name)


def _boolean(bits: str, name: str) -> BitsPart:
    value = str(int(bits, 2) != 0)
    field = BitField(name="value", kind="integer", bits=bits, meaning="0 is False, 1 is True")
    return BitsPart(name=name, fields=(field,), formula=value, exact=value)


def _integer(bits: str, signed: bool, name: str) -> BitsPart:
    if not signed:
        value = str(int(bits, 2))
        field = BitField(name="value", kind="integer", bits=bits, meaning=f"binary for {value}")
        return BitsPart(name=name, fields=(field,), formula=f"= {value}", exact=value)
    low = int(bits[1:], 2)
    weight = -(1 << (len(bits) - 1))
    value = str(low + (weight if bits[0] == "1" else 0))
    fields = (
        BitField(
            name="sign",
            kind="sign",
            bits=bits[0],
            meaning=f"{bits[0]} × {weight} (two's complement)",
        ),
        BitField(name="value", kind="integer", bits=bits[1:], meaning=f"binary for {low}"),
    )
    return BitsPart(
        name=name, fields=fields, formula=f"{bits[0]} × {weight} + {low} = {value}", exact=value
    )


def _floating(bits: str, form: FloatFormat, name: str) -> BitsPart:
    sign_bits = 1 if form.signed else 0
    exponent_bits = bits[sign_bits : sign_bits + form.exponent_bits]
    mantissa_bits = bits[sign_bits + form.exponent_bits :]
    negative = form.signed and bits[0] == "1"
    stored, fraction = int(exponent_bits, 2), int(mantissa_bits or "0", 2)
    minus = "-" if negative else ""
    ordinary = True
    if _is_nan(bits, form, stored, fraction):
        ordinary, formula, value = False, "not a number", "nan"
    elif form.special == "ieee" and stored == (1 << form.exponent_bits) - 1:
        ordinary, formula, value = False, f"{minus}infinity", f"{minus}inf"
    else:
        # Without a mantissa (float8_e8m0fnu) there is no zero and nothing below the first power.
        subnormal = stored == 0 and form.mantissa_bits > 0
        power = (1 if subnormal else stored) - form.bias
        significand = fraction / (1 << form.mantissa_bits) + (0 if subnormal else 1)
        number = math.ldexp(-significand if negative else significand, power)
        value = exact(number)
        formula = f"{minus}{exact(significand)} × 2^{power}"
        if subnormal:
            formula += " (subnormal: no leading 1)" if fraction else " (zero)"
    fields = [
        BitField(
            name="exponent",
            kind="exponent",
            bits=exponent_bits,
            meaning=_exponent_meaning(stored, form, ordinary),
        )
    ]
    if form.signed:
        meaning = "negative" if negative else "positive"
        fields.insert(0, BitField(name="sign", kind="sign", bits=bits[0], meaning=meaning))
    if mantissa_bits:
        denominator = 1 << form.mantissa_bits
        fields.append(
            BitField(
                name="mantissa",
                kind="mantissa",
                bits=mantissa_bits,
                meaning=f"{fraction} / {denominator} = {fraction / denominator:.6g}",
            )
        )
    return BitsPart(name=name, fields=tuple(fields), formula=formula, exact=value)


def _is_nan(bits: str, form: FloatFormat, stored: int, fraction: int) -> bool:
    if form.special == "fnuz":
        return int(bits, 2) == 1 << (len(bits) - 1)
    full = stored == (1 << form.exponent_bits) - 1
    if form.special == "fn":
        return full and fraction == (1 << form.mantissa_bits) - 1
    return full and fraction != 0


def _exponent_meaning(stored: int, form: FloatFormat, ordinary: bool) -> str:
    if not ordinary:
        return f"{stored}: reserved for infinity and NaN"
    if stored == 0 and form.mantissa_bits:
        return f"0: the smallest, 1 - bias {form.bias} = {1 - form.bias}"
    return f"{stored} - bias {form.bias} = {stored - form.bias}"
