"""Answers about the engine itself."""

from __future__ import annotations

from collections.abc import Iterator

from ..lab import Lab
from ..protocol import HelloCommand, ReadySnapshot
from ..system.devices import ready


def hello(lab: Lab, command: HelloCommand) -> Iterator[ReadySnapshot]:
    yield ready()
