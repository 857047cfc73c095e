"""Checks the value of a parameter, typed or already parsed."""

from __future__ import annotations

import math
import re

from .document import ParamValue
from .kinds import Param
from .limits import MAX_INT

_FAR = 1_000_000
_NONE = ("", "none")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def parse_value(param: Param, value: object) -> ParamValue:
    """Return `value`, a text or a value already, as this parameter takes it.

    `"3, 5"` and `"(3, 5)"` are tuples, an empty text and `"None"` are None. Raises ValueError
    with a message that names the parameter and an example when it does not fit.
    """
    if isinstance(value, str):
        value = value.strip()
        if value.lower() in _NONE and "none" not in param.choices:
            value = None
    if value is None:
        if param.optional:
            return None
        raise ValueError(f"{param.name} cannot be empty: give {_wanted(param)}.")
    parsed = _parse(param, value)
    _check_bounds(param, parsed)
    return parsed


def _parse(param: Param, value: object) -> ParamValue:
    if isinstance(value, str) and value in param.choices:
        return value
    match param.type:
        case "bool":
            return _bool(param, value)
        case "int":
            return _int(param, value)
        case "float":
            return _float(param, value)
        case "ints" | "shape":
            entries = _entries(param, value)
            numbers = tuple(_int(param, entry) for entry in entries)
            if param.type == "ints" and _is_single(value):
                return numbers[0]
            if param.type == "shape" and numbers.count(-1) > 1:
                raise ValueError(f"{param.name} can contain -1 once: torch infers one size.")
            return numbers
        case "floats":
            return tuple(_float(param, entry) for entry in _entries(param, value))
        case "str" if isinstance(value, str) and not param.choices:
            return value
    raise _wrong(param, value)


def _bool(param: Param, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUE + _FALSE:
        return value.lower() in _TRUE
    raise _wrong(param, value)


def _int(param: Param, value: object) -> int:
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > MAX_INT:
            raise ValueError(f"{param.name} must be a number of at most 64 bits.")
        return value
    raise _wrong(param, value)


def _float(param: Param, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong(param, value)
    try:
        number = float(value)
    except ValueError:
        raise _wrong(param, value) from None
    except OverflowError:  # an integer beyond the largest float
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{param.name} must be a finite number, not {number}.")
    return number


def _entries(param: Param, value: object) -> list[object]:
    if isinstance(value, tuple | list):
        entries: list[object] = list(value)
    elif isinstance(value, str):
        parts = re.split(r"\s*[x×]\s*(?=\d)|[,\s]+", value.strip("()[] "))
        entries = [part for part in parts if part]
    else:
        entries = [value]
    if not entries:
        raise _wrong(param, value)
    return entries


def _is_single(value: object) -> bool:
    """Whether a value is one number (`3`), not a tuple (`(3,)`)."""
    if isinstance(value, str):
        return re.fullmatch(r"[+-]?\d+", value) is not None
    return not isinstance(value, tuple | list)


def _check_bounds(param: Param, value: ParamValue) -> None:
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, bool | str) or number is None:
            continue
        if number == -1 and param.type == "shape":
            continue
        low, high = param.minimum, param.maximum
        if (low is not None and number < low) or (high is not None and number > high):
            raise ValueError(f"{param.name} must be {_range(param, number)}, not {number:g}.")


def _range(param: Param, number: float) -> str:
    """The bounds in words; of those that nobody reaches by chance only the one at fault."""
    low, high = param.minimum, param.maximum
    if low is not None and high is not None and high >= _FAR:
        low, high = (low, None) if number < low else (None, high)
    if low is not None and high is not None:
        return f"between {low:,.12g} and {high:,.12g}"
    return f"at least {low:,.12g}" if low is not None else f"at most {high:,.12g}"


def _wanted(param: Param) -> str:
    words = {
        "int": "a whole number, such as 64",
        "float": "a number, such as 0.5",
        "bool": "True or False",
        "str": "a word",
        "ints": "a whole number or several, such as 3 or (3, 5)",
        "floats": "numbers, such as (0.9, 0.999)",
        "shape": "sizes, such as (1, 8, 8)",
    }
    wanted = words.get(param.type, "")
    choices = "one of " + ", ".join(param.choices) if param.choices else ""
    return " or ".join(filter(None, (wanted, choices))) + (", or None" if param.optional else "")


def _wrong(param: Param, value: object) -> ValueError:
    return ValueError(f"{param.name} takes {_wanted(param)}, not {value!r}.")
