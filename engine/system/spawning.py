"""How this program starts its own processes: without the caller's `__main__`, the library first."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .current_modules import no_modules

_ROOT = Path(__file__).parents[2]


@contextmanager
def safe_spawn() -> Iterator[None]:
    """Start a `multiprocessing` process by "spawn" inside this block.

    The process imports neither the caller's `__main__`, which may be a user's script without a
    guard, nor a module of the current folder that has the name of one in the library: that folder
    may be a stranger's, with a `pickle.py` in it. Not for two threads at once.
    """
    with no_modules():
        main, path, safe = sys.modules["__main__"], sys.path[:], os.environ.get("PYTHONSAFEPATH")
        sys.modules["__main__"] = types.ModuleType("__main__")
        os.environ["PYTHONSAFEPATH"] = "1"  # for the interpreter, before it has this list:
        if not sys.flags.safe_path:
            sys.path.append(sys.path.pop(0))  # the script's folder, or the current one
        try:
            yield
        finally:
            sys.modules["__main__"], sys.path[:] = main, path
            if safe is None:
                del os.environ["PYTHONSAFEPATH"]
            else:
                os.environ["PYTHONSAFEPATH"] = safe


def program_environment() -> dict[str, str]:
    """The environment of a program of the library that runs by `python -m`: it imports the library
    first, and no module of the current folder that has the name of one in it."""
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
