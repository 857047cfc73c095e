"""Errors of ours in the user's process: each is told once, and none reaches the user's code."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_told: set[str] = set()


@contextmanager
def shielded(what: str) -> Iterator[None]:
    """An error of ours is told once, and never raised into the user's code."""
    try:
        yield
    except Exception as error:
        tell_once(what, error)


def tell_once(what: str, error: Exception) -> None:
    words = f"tensorlab.{what}: {error}"
    if words not in _told:
        _told.add(words)
        logging.getLogger("tensorlab").warning(words)
