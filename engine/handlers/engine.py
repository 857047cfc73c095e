"""Answers about the engine itself."""

from __future__ import annotations

from collections.abc import Iterator

from ..devices import ready
from ..lab import Lab
from ..protocol import HelloCommand, ReadySnapshot


def hello(lab: Lab, command: HelloCommand) -> Iterator[ReadySnapshot]:
    yield ready()
