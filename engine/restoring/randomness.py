"""A random stream of a run's own, which nothing else draws from."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ..system.private_torch import default_mps_generator

NUMPY, PYTHON = "numpy", "python"


class Generator(Protocol):
    """As torch.Generator."""

    def get_state(self) -> Tensor: ...

    def set_state(self, state: Tensor, /) -> Any: ...


class RandomStream:
    """In `with stream:`, torch's global generators, and the `others`, have the states of this
    stream; otherwise the usual ones. With `of_code`, so have those of NumPy and Python: code of the
    user's may draw from them.

    The stream starts as after `torch.manual_seed(seed)`, and with the states that all others have
    now. So a plain loop after that call draws the same numbers (dropout, a loader's order).
    """

    def __init__(
        self,
        seed: int,
        device: torch.device,
        others: Sequence[torch.Generator] = (),
        of_code: bool = False,
    ) -> None:
        of_torch = {"cpu": torch.default_generator}
        if device.type == "cuda":
            torch.cuda.init()  # makes the default generators
            of_torch["cuda"] = torch.cuda.default_generators[device.index or 0]
        elif device.type == "mps":
            of_torch["mps"] = default_mps_generator()
        self._generators: dict[str, Generator] = {**of_torch}
        self._active = False
        self._inactive = {  # the states that the generators do not have now
            name: torch.Generator(generator.device).manual_seed(seed).get_state()
            for name, generator in of_torch.items()
        }
        unseeded: dict[str, Generator] = {f"other {n}": other for n, other in enumerate(others)}
        if of_code and isinstance(np.random.get_state(), tuple):  # else NumPy has another kind
            unseeded |= {NUMPY: _OfNumpy(), PYTHON: _OfPython()}
        for name, generator in unseeded.items():
            self._generators[name] = generator
            self._inactive[name] = generator.get_state()

    def __enter__(self) -> None:
        self._swap()

    def __exit__(self, *exception: object) -> None:
        self._swap()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """A context within `with stream:` in which the generators have their usual states."""
        if not self._active:
            yield
            return
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def state(self, of_code: bool = True) -> dict[str, Tensor]:
        """Return the stream's state by device type, "other 0" and so on, and NUMPY and PYTHON, as
        uint8 tensors on the CPU; without these two, which take 0.2 ms, unless `of_code`."""
        names = [name for name in self._generators if of_code or name not in (NUMPY, PYTHON)]
        if not self._active:
            return {name: self._inactive[name] for name in names}
        return {name: self._generators[name].get_state() for name in names}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state. A generator that is not in it keeps its own."""
        for name in state.keys() & self._generators.keys():
            if self._active:
                self._generators[name].set_state(state[name])
            else:
                self._inactive[name] = state[name]

    def _swap(self) -> None:
        for name, generator in self._generators.items():
            state = generator.get_state()
            generator.set_state(self._inactive[name])
            self._inactive[name] = state
        self._active = not self._active


class _OfNumpy:
    """NumPy's global generator: 624 words, the place among them, and a normal number in store."""

    def get_state(self) -> Tensor:
        _, words, *rest = np.random.get_state()
        return _bytes(np.array(words, np.uint32), rest)

    def set_state(self, state: Tensor) -> None:
        words, (place, has_normal, normal) = _parts(state)
        np.random.set_state(("MT19937", words, int(place), int(has_normal), normal))


class _OfPython:
    """Python's global generator: 624 words and the place among them, and a normal number in
    store."""

    def get_state(self) -> Tensor:
        _, (*words, place), normal = random.getstate()
        return _bytes(np.array(words, np.uint32), (place, normal is not None, normal or 0.0))

    def set_state(self, state: Tensor) -> None:
        words, (place, has_normal, normal) = _parts(state)
        in_store = float(normal) if has_normal else None
        random.setstate((3, (*words.tolist(), int(place)), in_store))


WORDS = 624


def _bytes(words: np.ndarray, numbers: Sequence[Any]) -> Tensor:
    whole = words.tobytes() + np.array(numbers, np.float64).tobytes()
    return torch.frombuffer(bytearray(whole), dtype=torch.uint8)


def _parts(state: Tensor) -> tuple[np.ndarray, np.ndarray]:
    whole = state.numpy().tobytes()
    words = np.frombuffer(whole[: 4 * WORDS], np.uint32)
    return words, np.frombuffer(whole[4 * WORDS :], np.float64)


def is_state(name: str, state: Tensor) -> bool:
    """Whether a uint8 tensor (N,) can be a state of NumPy's or Python's generator."""
    if name not in (NUMPY, PYTHON) or state.numel() != 4 * WORDS + 24:
        return False
    words, (place, has_normal, normal) = _parts(state.contiguous())
    is_whole = bool(words.any()) and 0 <= place <= WORDS and place == int(place)
    return is_whole and has_normal in (0, 1) and bool(np.isfinite(normal))
