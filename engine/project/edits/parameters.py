"""The values in an edit: each is checked, or refused in words for the person at the screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from .. import catalogue
from ..document import ParamValue

Each = TypeVar("Each")


class EditError(ValueError):
    """The edit makes no sense; the message says why and what to try."""


def parse(known: Iterable[catalogue.Param], name: str, value: ParamValue) -> ParamValue:
    param = next((param for param in known if param.name == name), None)
    if param is None:
        raise EditError(f"There is no parameter “{name}”.")
    try:
        return catalogue.parse_value(param, value)
    except ValueError as error:
        raise EditError(str(error)) from error


def parsed_params(
    known: tuple[catalogue.Param, ...], params: Mapping[str, ParamValue]
) -> dict[str, ParamValue]:
    return {name: parse(known, name, value) for name, value in params.items()}


def checked_params(
    known: tuple[catalogue.Param, ...], params: Mapping[str, ParamValue]
) -> dict[str, ParamValue]:
    defaults = {param.name: param.default for param in known}
    parsed = parsed_params(known, params)
    return {name: value for name, value in parsed.items() if not same(value, defaults[name])}


def same(value: ParamValue, default: ParamValue) -> bool:
    """Equal in type too: a default of 1 is not True, and 1.0 is not 1."""
    return type(value) is type(default) and value == default


def one_of(what: str, key: str, known: Mapping[str, Each]) -> Each:
    if key in known:
        return known[key]
    *head, last = known
    raise EditError(f"There is no {what} “{key}”. Choose {', '.join(head)} or {last}.")


def kind_of(key: str) -> catalogue.BlockKind:
    try:
        return catalogue.kind(key)
    except KeyError:
        raise EditError(f"There is no kind of block “{key}”.") from None
