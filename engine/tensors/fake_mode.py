"""torch's fake mode: tensors have layouts and no numbers, and operations compute nothing."""

from __future__ import annotations

import logging
from functools import cache

from ..system.private_torch import FakeTensorMode

# Its logger prints a traceback for each operation that fails.
logging.getLogger(FakeTensorMode.__module__).setLevel(logging.CRITICAL)


@cache
def fake_mode() -> FakeTensorMode:
    """The one mode of all fake modules and tensors. It is made when first needed, as torch then
    imports for a second or two."""
    return FakeTensorMode()
