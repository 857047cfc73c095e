"""A random stream of a run's own, which nothing else draws from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor


class RandomStream:
    """In `with stream:`, torch's global generators, and the `others`, have the states of this
    stream; otherwise the usual ones.

    The stream starts as after `torch.manual_seed(seed)`, and with the states that the others have
    now. So a plain loop after that call draws the same numbers (dropout, a loader's order).
    """

    def __init__(
        self, seed: int, device: torch.device, others: Sequence[torch.Generator] = ()
    ) -> None:
        self._generators = {"cpu": torch.default_generator}
        if device.type == "cuda":
            torch.cuda.init()  # makes the default generators
            self._generators["cuda"] = torch.cuda.default_generators[device.index or 0]
        elif device.type == "mps":
            self._generators["mps"] = torch.mps._get_default_mps_generator()
        self._active = False
        self._inactive = {  # the states that the generators do not have now
            name: torch.Generator(generator.device).manual_seed(seed).get_state()
            for name, generator in self._generators.items()
        }
        for number, generator in enumerate(others):
            self._generators[f"other {number}"] = generator
            self._inactive[f"other {number}"] = generator.get_state()

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

    def state(self) -> dict[str, Tensor]:
        """Return the stream's state by device type, and "other 0" and so on, as uint8 tensors on
        the CPU."""
        if not self._active:
            return dict(self._inactive)
        return {name: generator.get_state() for name, generator in self._generators.items()}

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
