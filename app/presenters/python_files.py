"""Python files of the user's: opened, run when the user agrees, and watched."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from app.presenters.questions import Questions, in_words
from app.weights import shown_name
from app.window.banners import Choice, Tone
from app.workbench import Workbench
from engine.project import limits
from engine.project.atomic import digest_of
from engine.protocol import (
    ErrorReport,
    FileSnapshot,
    OutputSnapshot,
    OutputTailSnapshot,
    RunFileCommand,
    Snapshot,
)

FILTER = "Python (*.py);;All files (*)"
BANNER = "python"
"""The key of the banner about the file that is opened or run."""
_SETTLED_MS = 200
"""An editor may replace a file in several steps."""


class _Run(Struct):
    """A file that runs now; `opening` as in the signal `ran`."""

    questions: Questions
    opening: bool
    has_printed: bool = False

    def end(self) -> None:
        self.questions.drop()


class PythonFiles(QObject):
    """A file runs if the user says so, or has said so before of the same content.

    `ran(FileSnapshot, opening)`: a file has run; `opening` if the user opens it, to choose a
    subject. `changed()`: `has_run`, `is_running` or `has_changed` says something else of a file.
    `prints(name)`: a file has begun to print; `printed(snapshot)`: its output.
    `cells_wanted(path)`: show the file in the console.
    """

    ran = Signal(object, bool)
    changed = Signal()
    prints = Signal(str)
    printed = Signal(object)
    cells_wanted = Signal(str)

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        # of each file that has run in this engine, and of what it imports: path to digest
        self._digests: dict[str, dict[str, str]] = {}
        self._changed: set[str] = set()
        self._running: dict[str, _Run] = {}
        self._watcher = QFileSystemWatcher(self)
        self._settle = QTimer(self, singleShot=True, interval=_SETTLED_MS)
        self._settle.timeout.connect(self.compare)
        self._watcher.fileChanged.connect(lambda _path: self._settle.start())
        self._watcher.directoryChanged.connect(lambda _path: self._settle.start())
        bench.link.ended.connect(self._forget)

    def has_run(self, path: str) -> bool:
        return path in self._digests

    def is_running(self, path: str) -> bool:
        return path in self._running

    def has_changed(self, path: str) -> bool:
        """Whether the file, or one that it imports, differs from what has run."""
        return path in self._changed

    def open(self, path: str = "") -> None:
        """Run a file to choose a subject in it; ask first, unless the user has agreed to its
        content before. Without a path, ask for a file."""
        path = path or self._ask_path()
        if not path:
            return
        path = str(Path(path).absolute())
        if not _is_utf8(path):
            self._tell("error", f"{_name(path)} was not opened: rename it, in valid UTF-8.")
        elif not (digest := _digests((path,)).get(path)):
            self._tell("error", f"{_name(path)} was not opened: it cannot be read.")
        elif self._bench.settings.has_agreed(path, digest):
            self.run(path, opening=True)
        else:
            run = (
                "Run the file",
                "Run it in the engine. It is asked once for this content of the file.",
                partial(self.run, path, True),
            )
            text = (
                "It runs as import would run it, with all that you may do on this computer. Nothing"
                " runs until you say so."
            )
            title = f"Opening {_name(path)} runs it in the engine"
            self._tell("accent", title, text, (run, self._console_choice(path)))

    def _ask_path(self) -> str:
        bench = self._bench
        folder = str(Path(bench.files.path).parent) if bench.files.path else str(Path.home())
        return bench.dialogs.open_path(bench.window, "Open a Python file", folder, FILTER)

    def run(self, path: str, opening: bool = False) -> None:
        """Run a file, as the user has asked to, also if it has run before."""
        self._bench.window.banners.dismiss(BANNER)
        self._bench.window.banners.dismiss(_change_key(path))
        run = _Run(Questions(self._bench), opening)
        if digest := _digests((path,)).get(path):
            self._bench.settings.agree(path, digest)  # to what the file holds now
        taken, failed = partial(self._take, path), partial(self._fail, path)
        if not run.questions.ask(RunFileCommand(path=path), taken, failed):
            run.end()
            self._tell(
                "warning",
                f"{_name(path)} did not run. {self._bench.link.unsent}",
                choices=(self._again_choice(path, opening),),
            )
            return
        self._end(path)
        self._running[path] = run
        self._watch(path)
        self._bench.say(f"Running {_name(path)} …")
        self.changed.emit()

    def compare(self) -> None:
        """Compare the files on disk with what has run, and offer to run those that differ."""
        files = dict.fromkeys(file for digests in self._digests.values() for file in digests)
        self._watch(*files)
        now = _digests(files)
        for path, digests in self._digests.items():
            known = [file for file in digests if file in now]
            differs = next((file for file in known if now[file] != digests[file]), "")
            # A file that cannot be read may be one that an editor is replacing.
            if bool(differs) == (path in self._changed) or (
                not differs and len(known) < len(digests)
            ):
                continue
            if differs:
                self._changed.add(path)
                name = _name(differs)
                is_own = differs == path
                self._bench.window.banners.show_banner(
                    _change_key(path),
                    "accent",
                    f"{name} has changed since it ran"
                    if is_own
                    else f"{name} has changed since {_name(path)} imported it",
                    choices=(self._again_choice(path, False, f"Run {_name(path)} again"),),
                )
            else:
                self._changed.discard(path)
                self._bench.window.banners.dismiss(_change_key(path))
            self.changed.emit()

    # -- answers ---------------------------------------------------------------------------------

    def _take(self, path: str, snapshot: Snapshot) -> None:
        if isinstance(snapshot, OutputSnapshot | OutputTailSnapshot):
            run = self._running[path]
            if not run.has_printed:
                run.has_printed = True
                self.prints.emit(_name(path))
            self.printed.emit(snapshot)
        elif isinstance(snapshot, FileSnapshot):
            opening = self._end(path)
            self._digests[path] = {path: snapshot.digest, **snapshot.imports}
            self._changed.discard(path)
            self._bench.say(f"{_name(path)} has run.")
            self.ran.emit(snapshot, opening)
            self.changed.emit()
            self.compare()  # it may have changed while it ran

    def _fail(self, path: str, error: ErrorReport) -> None:
        opening = self._end(path)
        name = _name(path)
        self._bench.say(f"{name} stopped.")
        if error.type == "KeyboardInterrupt":
            what = f"{name} was stopped while it ran"
        elif error.type == "LabError":
            what = f"{name} did not run. {in_words(error)}"
        else:
            line = f" at line {error.line}" if error.line else ""
            what = f"{name} stopped{line}. {error.type}: {error.message}"
        self._tell(
            "error",
            what,
            error.hint if error.type != "LabError" else "",
            (self._again_choice(path, opening), self._console_choice(path)),
            error.traceback.rstrip(),
        )
        self.changed.emit()

    def _end(self, path: str) -> bool:
        """Whether the run of the file, which is over, was to open it."""
        run = self._running.pop(path, None)
        if run is not None:
            run.end()
        return run is not None and run.opening

    def _forget(self) -> None:
        """The engine has ended, and with it what the files have made."""
        for path in self._digests:
            self._bench.window.banners.dismiss(_change_key(path))
        for path in tuple(self._running):
            self._end(path)
        self._digests.clear()
        self._changed.clear()
        self.changed.emit()

    # -- small parts -----------------------------------------------------------------------------

    def _watch(self, *paths: str) -> None:
        """Watch files and their folders: an editor that replaces a file ends the watch on it."""
        watched = {*self._watcher.files(), *self._watcher.directories()}
        new = {each for path in paths for each in (path, str(Path(path).parent))} - watched
        if new:
            self._watcher.addPaths(sorted(new))

    def _tell(
        self,
        tone: Tone,
        title: str,
        text: str = "",
        choices: tuple[Choice, ...] = (),
        traceback: str = "",
    ) -> None:
        self._bench.window.banners.show_banner(
            BANNER, tone, title, text, choices, code=traceback, code_title="Where it stopped"
        )

    def _again_choice(self, path: str, opening: bool, text: str = "Run again") -> Choice:
        return text, "Run the whole file again in the engine.", partial(self.run, path, opening)

    def _console_choice(self, path: str) -> Choice:
        tip = "Show it in the console, cell by cell. Nothing runs until you say so."
        return "Open in the console", tip, partial(self.cells_wanted.emit, path)


def _digests(paths: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of each file that can be read, by its path."""
    found = {path: digest_of(path, limits.MAX_FILE_BYTES) for path in paths}
    return {path: digest for path, digest in found.items() if digest}


def _name(path: str) -> str:
    return shown_name(Path(path))


def _change_key(path: str) -> str:
    return f"changed_{path}"


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
