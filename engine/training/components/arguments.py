"""Arguments of a component, checked by its schema in the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...project import catalogue
from ...project.document import ParamValue
from ...system.errors import LabError


def checked(
    kind: str, schema: Iterable[catalogue.Param], params: Mapping[str, ParamValue]
) -> dict[str, ParamValue]:
    """Return `params`, each parsed by its schema. Raises LabError that names the bad parameter."""
    known = {param.name: param for param in schema}
    arguments: dict[str, ParamValue] = {}
    for name, value in params.items():
        if name not in known:
            raise LabError(f"{kind} has no parameter {name!r}.", hint=f"It has {', '.join(known)}.")
        try:
            arguments[name] = catalogue.parse_value(known[name], value)
        except ValueError as error:
            raise LabError(f"{kind}, {name}: {error}") from error
    return arguments
