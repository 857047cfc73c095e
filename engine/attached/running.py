"""Running a script as `python SCRIPT` does, but watched: `tensorlab run SCRIPT`.

`command` gives the program to start: a fresh Python, in which the names of this program's own
folders are free for the script's modules.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, TracebackType

from ..system.program import FOLDER, is_package

_START = """\
import sys
if not sys.flags.safe_path:
    del sys.path[0]  # the current folder: only the script's own has its modules
folder = sys.argv[1]
sys.path.append(folder)
import tensorlab
sys.path.remove(folder)
from tensorlab.engine.attached.running import run
run()
"""


def command(script: Path, arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """The command that runs the script. `options` are `--wait` and `--window`."""
    folder = FOLDER.parent if is_package() else FOLDER
    return [
        *(sys.executable, "-c", _START, str(folder), " ".join(options)),
        *(str(script), *arguments),
    ]


def run() -> None:
    """The started program: run the script that `sys.argv` names, and end as it does."""
    _, _, options, script, *arguments = sys.argv
    sys.argv = [script, *arguments]
    path = Path(script).resolve()
    if not sys.flags.safe_path:
        sys.path.insert(0, str(path.parent))
    main = ModuleType("__main__")
    vars(main).update(__file__=str(path), __builtins__=__builtins__)
    sys.modules["__main__"] = main
    try:
        code = compile(path.read_bytes(), str(path), "exec")
        _watch(script, options.split())
        exec(code, vars(main))
    except SystemExit as error:
        _tell_exit_code(_code_of(error))
        raise
    except BaseException as error:
        # As Python itself tells it, without the frames of ours around the script's.
        error.__traceback__ = _without_ours(error.__traceback__)
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt) and os.name != "nt":
            sys.stdout.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        raise SystemExit(1) from None
    else:
        _tell_exit_code(0)


def _code_of(error: SystemExit) -> int:
    """The exit code that Python makes of it."""
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _tell_exit_code(code: int) -> None:
    from .script_calls import tell_exit_code

    tell_exit_code(code)


def _watch(script: str, options: Sequence[str]) -> None:
    from .script_calls import watch

    watch(discover=True, spawn="--window" in options, wait="--wait" in options)


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback
