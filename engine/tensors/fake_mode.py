"""The mode in which tensors have layouts and no numbers: what an operation gives, uncomputed."""

from __future__ import annotations

import logging
from functools import cache

from torch._subclasses.fake_tensor import FakeTensorMode

# It prints a traceback for each operation that is refused.
logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)


@cache
def fake_mode() -> FakeTensorMode:
    """The one mode that all fake modules and tensors live in. Made when first needed: torch then
    imports what takes a second or two."""
    return FakeTensorMode()
