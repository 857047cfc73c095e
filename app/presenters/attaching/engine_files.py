"""The files of the engine's machine, where that is another one: choosing them, and copying them to
and from this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.other_files import Done, Stop, Wanted
from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.protocol import (
    BeginTransfersCommand,
    ErrorReport,
    FolderSnapshot,
    ListFolderCommand,
    PartSnapshot,
    ReadPartCommand,
    TransfersSnapshot,
    WritePartCommand,
)
from engine.protocol.transfers.messages import PART_BYTES, is_file_name

if TYPE_CHECKING:
    from app.window.folder_dialog import FolderDialog


class EngineFiles(QObject):
    """As OtherFiles. `began()`: the engine has made `folder`; it has told its newest run before
    that."""

    began = Signal()

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._questions = Questions(bench)
        self._seen = ""  # the folder that was shown last
        self.folder = ""
        bench.link.became_ready.connect(self._begin)
        bench.link.ended.connect(self._end)
        bench.link.state_changed.connect(self._show_offered)
        self._show_offered()

    @property
    def machine(self) -> str:
        place = self._bench.link.elsewhere
        return place.machine if place is not None and place.is_other_machine else ""

    def _show_offered(self) -> None:
        action = self._bench.actions["file.open_there"]
        action.setVisible(bool(self.machine))
        action.setEnabled(bool(self.machine))

    # -- choosing --------------------------------------------------------------------------------

    def ask(self, title: str, wanted: Wanted, name: str = "") -> str:
        from app.window.folder_dialog import FolderDialog  # the window shows before it is needed

        dialog = FolderDialog(self._bench.window, title, self.machine, wanted, name)
        dialog.view.folder_wanted.connect(lambda path: self._list(dialog, path))
        self._list(dialog, self._seen)
        path = self._bench.dialogs.path_there(dialog)
        self._questions.drop()
        if wanted == "save" and dialog.view.has(path):
            question = f"{path} is on {self.machine} already. Replace it?"
            path = path if self._bench.confirm(question, "Replace") else ""
        dialog.deleteLater()
        return path

    def _list(self, dialog: FolderDialog, path: str) -> None:
        def show(folder: FolderSnapshot) -> None:
            self._seen = folder.path
            entries = [(each.name, each.is_folder, each.size_bytes) for each in folder.entries]
            dialog.view.show_folder(folder.path, folder.parent, entries, folder.left)

        def fail(error: ErrorReport) -> None:
            dialog.view.tell(in_words(error))

        if not self._questions.ask(ListFolderCommand(path=path), show, fail):
            dialog.view.tell(self._bench.link.unsent)

    # -- copying ---------------------------------------------------------------------------------

    def fetch(self, there: str, here: Path, done: Done) -> Stop:
        copy = _Fetch(self._bench, self, here, done)
        copy.ask(there, here)
        return copy.stop

    def bring(self, here: Path, there: str, done: Done) -> None:
        _Bring(self._bench, self, here, there, done).go_on()

    def clear(self) -> None:
        """Let the engine remove the copies that it has, once none is under way."""
        if not self.findChildren(_Copy):
            self._begin()

    def _begin(self) -> None:
        if self._bench.link.elsewhere is not None:
            before, self.folder = self.folder, ""
            command = BeginTransfersCommand(before=before)
            self._questions.ask(command, self._on_begun, self._on_not_begun)

    def _on_begun(self, answer: TransfersSnapshot) -> None:
        self.folder = answer.path
        self.began.emit()

    def _on_not_begun(self, error: ErrorReport) -> None:
        self._bench.say(f"No files can be copied from or to the engine: {in_words(error)}")

    def _end(self) -> None:
        self.folder = ""


class _Copy(QObject):
    """The copying of one file or folder, part after part."""

    def __init__(self, bench: Workbench, parent: QObject, done: Done) -> None:
        super().__init__(parent)
        self._bench, self._done = bench, done
        self._is_over = False
        self._questions = Questions(bench)
        bench.link.ended.connect(self._on_ended)

    def _send(self, command: ReadPartCommand | WritePartCommand, then: Callable) -> None:
        if not self._questions.ask(command, then, lambda error: self._end(in_words(error))):
            self._end(self._bench.link.unsent)

    def _on_ended(self) -> None:
        self._end("The connection was lost.")

    def stop(self) -> None:
        if not self._is_over:
            self._end("It was stopped.")

    def _end(self, failure: str) -> None:
        self._is_over = True
        self._questions.drop()
        self._bench.link.ended.disconnect(self._on_ended)
        self.setParent(None)
        self.deleteLater()
        self._done(failure)


class _Fetch(_Copy):
    """A file is whole, or not there: its parts go to a file beside it."""

    def __init__(self, bench: Workbench, parent: QObject, here: Path, done: Done) -> None:
        super().__init__(bench, parent, done)
        self._left: list[tuple[str, Path]] = []
        self._here = here

    def ask(self, there: str, here: Path, offset: int = 0) -> None:
        self._here = here
        self._send(ReadPartCommand(path=there, offset=offset), self._on_part)

    def _on_part(self, part: PartSnapshot) -> None:
        here = self._here
        beside = here.with_name(f"{here.name}.part")
        try:
            if part.is_folder:
                if not all(map(is_file_name, part.names)):
                    self._end(f"{here}: the engine told names that lead out of its folder.")
                    return
                here.mkdir(exist_ok=True)
                self._left += [
                    (str(PurePosixPath(part.path) / name), here / name) for name in part.names
                ]
                self._next()
                return
            with beside.open("ab" if part.offset else "wb") as file:
                file.write(part.data)
            reached = part.offset + len(part.data)
            if reached < part.size_bytes and part.data:
                self.ask(part.path, here, reached)
                return
            beside.replace(here)
        except OSError as error:
            self._end(f"{here}: {error.strerror or error}.")
            return
        self._next()

    def _next(self) -> None:
        if self._left:
            self.ask(*self._left.pop())
        else:
            self._end("")


class _Bring(_Copy):
    def __init__(
        self, bench: Workbench, parent: QObject, here: Path, there: str, done: Done
    ) -> None:
        super().__init__(bench, parent, done)
        self._here, self._there = here, there

    def go_on(self, written: PartSnapshot | None = None) -> None:
        offset = written.size_bytes if written is not None else 0
        try:
            with self._here.open("rb") as file:
                file.seek(offset)
                data = file.read(PART_BYTES)
        except OSError as error:
            self._end(f"{self._here}: {error.strerror or error}.")
            return
        if data or written is None:
            self._send(WritePartCommand(path=self._there, offset=offset, data=data), self.go_on)
        else:
            self._end("")
