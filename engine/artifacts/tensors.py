"""The tensors of a file as a mapping, for the user's own code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor

from .opening import open_artifact


class TensorsOf(Mapping[str, Tensor]):
    """Each tensor is read when it is asked for; those without numbers are left out."""

    def __init__(self, path: Path) -> None:
        """Raises LabError for a file that cannot be read."""
        self._artifact = open_artifact(path)
        self._keys = {entry.key: None for entry in self._artifact.tensors if entry.place}

    def __getitem__(self, key: str) -> Tensor:
        if key not in self._keys:
            raise KeyError(key)
        return self._artifact.tensor(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"<{len(self):,} tensors of {self._artifact.path.name}>"
