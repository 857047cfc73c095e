"""The files that are open, and the tensor that was read last: its statistics are read in several
commands."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from ..system.errors import LabError
from .contents.artifact import Artifact, signature
from .opening import open_artifact

MAX_OPEN = 4


@dataclass
class ArtifactState:
    """The newest indices. One that was written again since is read again."""

    _open: OrderedDict[str, tuple[Artifact, tuple[tuple[int, int], ...]]] = field(
        default_factory=OrderedDict
    )
    _last: tuple[str, str, Tensor] | None = None

    def open(self, path: str) -> Artifact:
        """The index of a file, as it is now. Raises LabError."""
        known = self._open.pop(path, None)
        if known is None or _signature(known[0]) != known[1]:
            self._last = None
            artifact = open_artifact(Path(path))
            known = artifact, _signature(artifact)
        self._open[path] = known
        while len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)
        return known[0]

    def tensor(self, path: str, key: str) -> Tensor:
        """A tensor of a file, the same one as long as no other is asked for. Raises LabError."""
        artifact = self.open(path)
        if self._last is None or self._last[:2] != (path, key):
            self._last = None
            self._last = path, key, artifact.tensor(key)
        return self._last[2]


def _signature(artifact: Artifact) -> tuple[tuple[int, int], ...]:
    try:
        return signature(artifact.files)
    except OSError as error:
        raise LabError(
            f"{artifact.path.name} cannot be read any more: {error.strerror}.",
            hint="Was it moved or deleted?",
        ) from error
