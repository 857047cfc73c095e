"""Running a script as `python SCRIPT` does, but watched: `tensorlab run SCRIPT`.

`command` gives the program to start: a fresh Python, in which the names of this program's own
folders are free for the script's modules.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, TracebackType

_FOLDER = Path(__file__).resolve().parents[2]
_START = """\
import sys
folder = sys.argv[1]
sys.path.append(folder)
import tensorlab
sys.path.remove(folder)
from tensorlab.engine.attached.running import run
run()
"""


def command(script: Path, arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """The command that runs the script. `options` are `--wait` and `--window`."""
    folder = _FOLDER.parent if _is_package() else _FOLDER
    return [
        *(sys.executable, "-c", _START, str(folder), " ".join(options)),
        *(str(script), *arguments),
    ]


def open_window(pid: int) -> None:
    """Start a window that attaches to this process, and outlives it. Raises OSError."""
    program = _FOLDER / ("__init__.py" if _is_package() else "tensorlab.py")
    subprocess.Popen(
        [sys.executable, str(program), "attach", str(pid)],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def has_display() -> bool:
    """Whether a window can be shown; a rank but the first opens none."""
    if os.environ.get("RANK", "0") != "0":
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _is_package() -> bool:
    """Installed, this folder is the package; in a checkout it holds tensorlab.py."""
    return (_FOLDER / "__init__.py").exists()


def run() -> None:
    """The started program: run the script that `sys.argv` names, and end as it does."""
    _, _, options, script, *arguments = sys.argv
    sys.argv = [script, *arguments]
    path = Path(script).resolve()
    sys.path[0] = str(path.parent)
    main = ModuleType("__main__")
    vars(main).update(__file__=str(path), __builtins__=__builtins__)
    sys.modules["__main__"] = main
    try:
        code = compile(path.read_bytes(), str(path), "exec")
        _watch(script, options.split())
        exec(code, vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        # As Python itself tells it, without the frames of ours around the script's.
        error.__traceback__ = _without_ours(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt) and os.name != "nt":
            sys.stdout.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        raise SystemExit(1) from None


def _watch(script: str, options: Sequence[str]) -> None:
    from .watching import watch

    watch(discover=True, spawn="--window" in options, wait="--wait" in options)


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback
