"""Text as ids of characters, with the next character as the target of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .samples import DataProblem, Samples
from .source import decoded, whole

_MAX_BYTES = 64 * 2**20
_MAX_CHARACTERS = 20_000


def read(path: Path, length: int, encoding: str) -> Samples:
    """Stretches of `length` characters, one after the other: x and y int64 (N, length), where y is
    x moved on by one. `classes` are the characters that the text has, in their order; what is left
    at the end is not used. Raises DataProblem."""
    text = decoded(whole(path, _MAX_BYTES), encoding, path.name)
    count = (len(text) - 1) // length
    if count < 1:
        raise DataProblem(
            f"{path.name} has {len(text):,} characters; one sample takes {length + 1:,}.",
            hint="Use a smaller length.",
        )
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    found, ids = np.unique(codes, return_inverse=True)
    if len(found) > _MAX_CHARACTERS:
        raise DataProblem(f"{path.name} has {len(found):,} different characters: too many classes.")
    ids = ids.astype(np.int64)
    x = ids[: count * length].reshape(count, length)
    y = ids[1 : count * length + 1].reshape(count, length)
    return Samples(x, y, tuple(map(chr, found.tolist())))
