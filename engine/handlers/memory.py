"""Answers about storages and aliases. They neither run the user's code nor write to a tensor."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..lab import Lab
from ..operations.memory import storage
from ..operations.memory.aliases import read_aliases as _read_aliases
from ..operations.memory.locating import locate as _locate
from ..protocol import (
    AliasesCommand,
    AliasesSnapshot,
    LocateCommand,
    LocationSnapshot,
    ReadStorageCommand,
    StorageSnapshot,
)


def read_storage(lab: Lab, command: ReadStorageCommand) -> Iterator[StorageSnapshot]:
    namespace = lab.console.namespace
    t = namespace.tensor(command.expression)
    yield msgspec.structs.replace(
        storage.read_window(command.expression, t, command.first, command.count),
        storage=namespace.storages.number(t),
        written_by=namespace.writes.last_write(t),
    )


def locate(lab: Lab, command: LocateCommand) -> Iterator[LocationSnapshot]:
    namespace = lab.console.namespace
    t = namespace.tensor(command.expression)
    yield _locate(command.expression, t, namespace.reached(), command.index, command.cell)


def read_aliases(lab: Lab, command: AliasesCommand) -> Iterator[AliasesSnapshot]:
    yield _read_aliases(lab.console.namespace)
