"""The modules that cells of the console import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from .folder_modules import FolderModules


class ConsoleModules:
    """Cells find what lies in their folder, then the modules of the files that ran, the newest
    first. A library comes before all of them, unless the cell is a file.

    `of_files` gives the modules of the files that ran, the oldest first.
    """

    def __init__(self, of_files: Callable[[], Sequence[FolderModules]] = tuple) -> None:
        self._of_files = of_files
        self._of_folders: dict[str, FolderModules] = {}

    def at(self, folder: str, is_file: bool = False) -> FolderModules | None:
        """The modules of cells in this folder; "": where the program was started, whose files are
        not imported. None: there are none."""
        files = self._of_files()
        if not folder and not files:
            return None
        found = self._of_folders.get(folder)
        if found is None:
            roots = (Path(folder).absolute(),) if folder else ()
            found = FolderModules(*roots, takes_library_names=False)
            self._of_folders[folder] = found
        found.takes_library_names |= is_file
        found.borrow(reversed(files))
        return found
