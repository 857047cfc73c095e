"""What the program remembers between starts; on this computer, not in the project."""

from __future__ import annotations

import os
import re
from typing import Literal, cast
from urllib.parse import quote_from_bytes, unquote_to_bytes

from PySide6.QtCore import QByteArray, QSettings

ThemeChoice = Literal["system", "light", "dark"]
RECENT_FILES = 10
AGREED_FILES = 200


class Settings:
    """Positions of windows and docks by name, the theme, and recent files, newest first. A file of
    settings that holds other objects is put aside, as NAME.refused: the program writes none."""

    def __init__(self, store: QSettings | None = None) -> None:
        store = store or QSettings("tensorlab", "tensorlab")
        file, kind = store.fileName(), store.format()
        if _has_objects(file):  # before any value is read: PySide then unpickles all of them
            os.replace(file, f"{file}.refused")
            store = QSettings(file, kind)
        self._store = store

    @property
    def theme(self) -> ThemeChoice:
        choice = self._store.value("theme", "system")
        return cast(ThemeChoice, choice if choice in ("light", "dark") else "system")

    @theme.setter
    def theme(self, choice: ThemeChoice) -> None:
        self._store.setValue("theme", choice)

    @property
    def recent_files(self) -> tuple[str, ...]:
        return tuple(_path_of(path) for path in self._list("recent_files"))

    def add_recent_file(self, path: str) -> None:
        others = [known for known in self.recent_files if known != path]
        self._keep_recent([path, *others][:RECENT_FILES])

    def remove_recent_file(self, path: str) -> None:
        self._keep_recent([p for p in self.recent_files if p != path])

    def _keep_recent(self, paths: list[str]) -> None:
        self._store.setValue("recent_files", [_as_text(path) for path in paths])

    def has_agreed(self, path: str, digest: str) -> bool:
        """Whether the user has agreed to run the Python file with this content before."""
        return f"{digest} {_as_text(path)}" in self._list("agreed_files")

    def agree(self, path: str, digest: str) -> None:
        """Remember that the user has agreed to run the file with this content, the last 200
        times."""
        entry = f"{digest} {_as_text(path)}"
        others = [known for known in self._list("agreed_files") if known != entry]
        self._store.setValue("agreed_files", [entry, *others][:AGREED_FILES])

    @property
    def attach_address(self) -> str:
        """The address that was last typed to attach to; empty if there is none."""
        return str(self._store.value("attach/address", ""))

    @attach_address.setter
    def attach_address(self, address: str) -> None:
        self._store.setValue("attach/address", address)

    def take_engine_address(self) -> str:
        """The address of the engine that an earlier version called at each start; empty if there is
        none. It is forgotten."""
        address = str(self._store.value("engine/address", ""))
        for key in ("engine/address", "engine/python", "going_run", "attach/rank_hosts"):
            self._store.remove(key)
        return address

    @property
    def muted_advice(self) -> tuple[str, ...]:
        """The kinds of findings that are not shown."""
        return tuple(self._list("advice/muted"))

    @muted_advice.setter
    def muted_advice(self, kinds: tuple[str, ...]) -> None:
        self._store.setValue("advice/muted", list(kinds))

    @property
    def trace_code(self) -> str:
        """The Python that was traced last; empty if there is none."""
        return str(self._store.value("trace/code", ""))

    @trace_code.setter
    def trace_code(self, source: str) -> None:
        self._store.setValue("trace/code", source)

    def _list(self, key: str) -> list[str]:
        value = self._store.value(key, [])
        # An INI file returns a list of one entry as a plain string.
        return [value] if isinstance(value, str) else cast(list, value or [])

    @property
    def autograd_more(self) -> bool:
        """Whether the Autograd page shows all of its controls."""
        return str(self._store.value("autograd/more", "false")) == "true"

    @autograd_more.setter
    def autograd_more(self, on: bool) -> None:
        self._store.setValue("autograd/more", "true" if on else "false")

    @property
    def train_parameters(self) -> bool:
        """Whether Train shows the parameters beside its plots."""
        return str(self._store.value("train/parameters", "false")) == "true"

    @train_parameters.setter
    def train_parameters(self, on: bool) -> None:
        self._store.setValue("train/parameters", "true" if on else "false")

    @property
    def train_predictions(self) -> bool:
        """Whether Train shows predictions beside its plots."""
        return str(self._store.value("train/predictions", "false")) == "true"

    @train_predictions.setter
    def train_predictions(self, on: bool) -> None:
        self._store.setValue("train/predictions", "true" if on else "false")

    @property
    def train_runs(self) -> bool:
        """Whether Train lists the runs under its plots."""
        return str(self._store.value("train/runs", "false")) == "true"

    @train_runs.setter
    def train_runs(self, on: bool) -> None:
        self._store.setValue("train/runs", "true" if on else "false")

    def bytes(self, name: str) -> QByteArray:
        """A saved geometry or dock state; empty if there is none."""
        value = self._store.value(f"window/{name}")
        return value if isinstance(value, QByteArray) else QByteArray()

    def set_bytes(self, name: str, value: QByteArray) -> None:
        self._store.setValue(f"window/{name}", value)


_QUOTED = "quoted:"


def _as_text(path: str) -> str:
    """A path as valid text: one whose bytes are not UTF-8 is quoted as in a URL."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return _QUOTED + quote_from_bytes(os.fsencode(path))
    return path


def _path_of(text: str) -> str:
    quoted = text.startswith(_QUOTED)
    return os.fsdecode(unquote_to_bytes(text.removeprefix(_QUOTED))) if quoted else text


def _has_objects(file: str) -> bool:
    """Whether a file of Qt's INI format holds a `@Variant(...)`, however it is escaped: reading one
    may unpickle it."""
    if not os.path.isfile(file):  # a registry, or no settings yet
        return False
    with open(file, "rb") as opened:
        text = opened.read().decode("latin-1")
    text = re.sub(r"\\\r?\n|\"", "", text)
    text = re.sub(r"\\x([0-9A-Fa-f]+)", lambda found: chr(int(found[1], 16) & 0xFFFF), text)
    text = re.sub(r"\\([0-7]+)", lambda found: chr(int(found[1], 8) & 0xFFFF), text)
    return "@Variant" in text.replace("\\", "") or "PyObjectWrapper" in text
