"""Which source files are the user's own: neither Python's nor a package's nor ours."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_OURS = tuple(str(_ROOT / folder) for folder in ("engine", "app", "widgets"))
_GENERATED = ("<frozen", "<string", "<eval_with_key", "<__", "<attrs", "<torch_package")
"""Names of code that some library wrote: imports, dataclasses, graphs of torch.fx."""


def is_user_file(name: str) -> bool:
    """True for a cell (`"<cell 3>"`), a notebook's cell, and a file of the user's."""
    if name.startswith("<"):
        return not name.startswith(_GENERATED)
    return not name.startswith(_NOT_USERS)


_NOT_USERS = tuple(
    folder.rstrip("/\\") + ("\\" if "\\" in folder else "/")
    for folder in {
        *_OURS,
        *(sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")),
        *(path for path in sys.path if path.endswith(("site-packages", "dist-packages"))),
    }
)
