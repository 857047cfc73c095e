"""The kernel of a notebook, which is idle between its cells."""

from __future__ import annotations

import sys
from collections.abc import Callable


def follow_cells(begins: Callable[[], None], ends: Callable[[], None]) -> bool:
    """Call `begins` before each cell of IPython from now on, and `ends` after it; a cell runs now.
    False outside of IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return False
    shell.events.register("pre_run_cell", lambda *info: begins())
    shell.events.register("post_run_cell", lambda *info: ends())
    return True
