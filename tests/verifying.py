"""One process that reads what several tests export: it knows no more than a fresh one, which takes
seconds of a processor to load torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.exporting.verifying import Verifier
from engine.handlers.exporting import export


class _Lent:
    """The process as each export gets it: it does not end with the export."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def __enter__(self) -> Verifier:
        return self._verifier

    def __exit__(self, *_: object) -> None:
        pass


@contextmanager
def one_verifier() -> Iterator[Verifier]:
    """In this context all exports of this process are read by one other process."""
    with Verifier() as verifier, pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "Verifier", lambda: _Lent(verifier))
        yield verifier
