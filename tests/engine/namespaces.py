"""Runs cells in a namespace, as a session does."""

from __future__ import annotations

from engine.console.namespace import Namespace
from engine.console.output import Output
from engine.system.control import Control


def run(namespace: Namespace, source: str) -> None:
    error, _ = namespace.run(source, "<cell>", Output(lambda told: None), Control())
    assert error is None, error
