"""A run's own stream of random numbers, whatever else draws some between two of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class RandomStream:
    """`with stream:` torch's global generators are this stream's; outside, everyone else's.

    The stream starts as after `torch.manual_seed(seed)`, so a plain loop after that call draws
    the same numbers (dropout).
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._generators = {"cpu": torch.default_generator}
        if device.type == "cuda":
            torch.cuda.init()  # makes the default generators
            self._generators["cuda"] = torch.cuda.default_generators[device.index or 0]
        elif device.type == "mps":
            self._generators["mps"] = torch.mps._get_default_mps_generator()
        self._active = False
        self._away = {  # the states that are not in the generators at present
            name: torch.Generator(generator.device).manual_seed(seed).get_state()
            for name, generator in self._generators.items()
        }

    def __enter__(self) -> None:
        self._swap()

    def __exit__(self, *exception: object) -> None:
        self._swap()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Everyone else's generators for a while, in the midst of `with stream:`."""
        if not self._active:
            yield
            return
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def state(self) -> dict[str, Tensor]:
        """Return the stream's state by device type: uint8 tensors on the CPU."""
        if not self._active:
            return dict(self._away)
        return {name: generator.get_state() for name, generator in self._generators.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state, outside of `with stream:`; a device type that the saved one
        does not have keeps its own."""
        self._away.update({name: value for name, value in state.items() if name in self._away})

    def _swap(self) -> None:
        for name, generator in self._generators.items():
            state = generator.get_state()
            generator.set_state(self._away[name])
            self._away[name] = state
        self._active = not self._active
