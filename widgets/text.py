"""Numbers, sizes and times as text, written the same way in the whole program."""

from __future__ import annotations

import math
from collections.abc import Iterable

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def format_number(value: float | None, digits: int = 4) -> str:
    """A number with `digits` significant digits; a dash for None.

    Integers are written in full, with thousands separators. Floats have no trailing zeros; below
    1e-4 and from 10**max(digits, 6) on they are in scientific notation (`1.5e-07`, `2.35e+07`).
    """
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0.0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = math.floor(math.log10(abs(rounded)))
    if exponent < -4 or exponent >= max(digits, 6):
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}e{power}"
    text = f"{value:,.{max(0, digits - 1 - exponent)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_percent(fraction: float | None) -> str:
    """A fraction of 0 to 1 as percent with one decimal (`97.5 %`); a dash for None and NaN."""
    if fraction is None or math.isnan(fraction):
        return "–"
    return f"{fraction * 100:.1f} %"


def format_bytes(size_bytes: float | None) -> str:
    """A size in binary units, three significant digits (`768 B`, `1.5 KiB`, `23.4 MiB`)."""
    if size_bytes is None:
        return "–"
    size = float(size_bytes)
    unit = 0
    while unit < len(_UNITS) - 1 and (size >= 1024 or (unit and round(size) >= 1024)):
        size /= 1024
        unit += 1
    if unit == 0:
        return f"{size:.0f} B"
    decimals = 2 if round(size, 2) < 10 else 1 if round(size, 1) < 100 else 0
    text = f"{size:.{decimals}f}".rstrip("0").rstrip(".") if decimals else f"{size:.0f}"
    return f"{text} {_UNITS[unit]}"


def format_shape(shape: Iterable[object]) -> str:
    """A shape as messages write it, too: `(B, 3, 8, 8)`, `(5,)`, `()`."""
    from engine.protocol import shape_text  # the window shows before messages are needed

    return shape_text(shape)


def format_duration(seconds: float | None) -> str:
    """A time span in its largest units (`3.2 ms`, `0.8 s`, `42 s`, `3 min 5 s`, `1 h 2 min`); a
    dash for None, NaN and infinity."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds == 0:
        return "0 s"
    if seconds < 0.1:
        return f"{format_number(seconds * 1000.0, 2)} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"
