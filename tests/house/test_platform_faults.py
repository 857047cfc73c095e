"""Faults of the libraries we build on, that a change of version could bring back."""

from __future__ import annotations

import sys

from PySide6.QtCore import QTimer


def test_calls_that_return_nothing_keep_the_references_of_none(qapp):
    """PySide6 6.12.0 takes one reference from None at each such call on CPython 3.10 and 3.11, and
    the process dies after some thousand of them. On 3.12 and later None is immortal."""
    timer = QTimer()
    before = sys.getrefcount(None)
    for _ in range(500):
        timer.setInterval(5)
    assert sys.getrefcount(None) - before > -100
