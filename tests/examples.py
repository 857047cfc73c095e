"""How many random examples a test makes. `TENSORLAB_EXAMPLES=5000` in the environment makes fifty
times as many, as `make fuzz` does; the usual number is for a suite that is quick."""

from __future__ import annotations

import os

_PERCENT = int(os.environ.get("TENSORLAB_EXAMPLES", "100"))


def examples(usual: int) -> int:
    """The number for `settings(max_examples=...)`."""
    return usual * _PERCENT // 100


def seconds(usual: int) -> int:
    """The limit for one test that makes them."""
    return max(180, usual * _PERCENT // 100)
