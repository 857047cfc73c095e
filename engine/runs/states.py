"""`states/` in the folder of a run: states to which it can go back, also after it was resumed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ..project.atomic import private_folder

FOLDER = "states"


def path_of(folder: Path, step: int) -> Path:
    return folder / FOLDER / f"step-{step:08}.pt"


def steps_in(folder: Path) -> list[int]:
    """The steps of the states in the folder of a run, in their order."""
    names = (path.stem.removeprefix("step-") for path in (folder / FOLDER).glob("step-*.pt"))
    return sorted(int(name) for name in names if name.isdecimal())


def link(source: Path, target: Path, step: int) -> None:
    """Give a run the states of another, up to a step; both have one file where the disk can.
    Raises OSError."""
    for each in steps_in(source):
        if each <= step:
            private_folder(target / FOLDER)
            try:
                os.link(path_of(source, each), path_of(target, each))
            except FileExistsError:
                continue
            except OSError:
                shutil.copy2(path_of(source, each), path_of(target, each))
