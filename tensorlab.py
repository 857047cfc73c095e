"""Tensor Lab: a desktop laboratory for PyTorch. `tensorlab.main()` is the program.

In the wheel this file is `tensorlab/__init__.py`, beside `app`, `widgets`, `engine` and `assets`;
in a checkout it stands at the root, beside the same folders. Scripts may `import tensorlab.engine`
in both: inside `engine` imports are relative, so only `main` puts general names such as `app` on
`sys.path`. `watch`, `log`, `hold` and `backward` let a window attach to a script; `histogram` and
`image` say how a tensor is logged, and `logged` has the newest.

Importing this module must stay cheap: every worker that multiprocessing spawns imports it again.
It imports only what Python has loaded by itself: `python -m tensorlab` imports it while the current
folder is still first on `sys.path`.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from engine.attached.script_calls import backward, histogram, hold, image, log, logged, watch

__all__ = ["backward", "histogram", "hold", "image", "log", "logged", "main", "watch"]

_FOLDER = os.path.dirname(os.path.abspath(__file__))
__path__ = [_FOLDER]


def __getattr__(name: str) -> object:
    """What scripts call imports torch when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.engine.attached.script_calls"), name)
    globals()[name] = found
    return found


def main() -> int:
    """Run the command line `sys.argv[1:]` and return its exit code."""
    if sys.path[:1] != [_FOLDER]:
        sys.path.insert(0, _FOLDER)
    from app.cli import main as run

    return run()


def serve(connection: "Connection", log: "Path") -> None:
    """Run an engine in a process that was spawned for it, as `tensorlab.engine`: the names `engine`
    and `app` are left to the user's own modules."""
    from importlib import import_module

    import_module(f"{__name__}.engine.server.serve").serve(connection, log)


if __name__ == "__main__":
    sys.exit(main())
