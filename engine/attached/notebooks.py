"""The kernel of a notebook, which is idle between its cells."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

_NAMING = ("__vsc_ipynb_file__", "__session__")
"""Variables in which VS Code and Jupyter tell a kernel the path of its notebook."""


def follow_cells(begins: Callable[[], None], ends: Callable[[], None]) -> None:
    """Call `begins` before each cell of IPython from now on, and `ends` after it; a cell runs now.
    Outside of IPython there is none."""
    shell = _shell()
    if shell is not None:
        shell.events.register("pre_run_cell", lambda *info: begins())
        shell.events.register("post_run_cell", lambda *info: ends())


def notebook_name() -> str:
    """The name of this kernel's notebook, or "notebook" if nobody has told it; "" if this is no
    kernel: IPython at a prompt has none."""
    shell = _shell()
    if shell is None or getattr(shell, "kernel", None) is None:
        return ""
    told = (shell.user_ns.get(name) for name in _NAMING)
    return next((PurePath(p).name for p in told if type(p) is str and p), "notebook")


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None
