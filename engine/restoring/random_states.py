"""The states of the random generators, and Python lines that restore them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

States = dict[str, tuple[Any, ...]]
"""By generator (torch, cuda, numpy, random): a tuple that is equal only for equal states."""


def random_states() -> States:
    """The states of the global generators of torch, NumPy and Python."""
    found: States = {"torch": (torch.get_rng_state().numpy().tobytes(), torch.initial_seed())}
    if torch.cuda.is_initialized():
        found["cuda"] = tuple(s.numpy().tobytes() for s in torch.cuda.get_rng_state_all())
    numpys = np.random.get_state()
    if isinstance(numpys, tuple):
        name, keys, *rest = numpys
        found["numpy"] = (str(name), np.asarray(keys).tobytes(), *rest)
    found["random"] = random.getstate()
    return found


def drawn_from(before: States, after: States) -> States:
    """The states before of the generators that code has drawn from. One of torch's that code has
    seeded is not among them: the code repeats itself."""
    return {
        name: state
        for name, state in before.items()
        if after.get(name) != state and not (name == "torch" and after[name][1] != state[1])
    }


@contextmanager
def torch_states_kept() -> Iterator[None]:
    """After this context torch's global generators stand where they stood, on the CPU and on all
    GPUs if they are in use."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=devices):
        yield


@contextmanager
def states_kept() -> Iterator[None]:
    """As `torch_states_kept`, for those of NumPy and Python too."""
    numpys, pythons = np.random.get_state(), random.getstate()
    with torch_states_kept():
        try:
            yield
        finally:
            np.random.set_state(numpys)
            random.setstate(pythons)


def restoring_line(generator: str, state: tuple[Any, ...], data: dict[str, Any], name: str) -> str:
    """A line of Python that restores the state of a generator. If no seed gives that state, it is
    added to `data`, which the line reads as the variable `name`."""
    if generator == "torch" and _is_fresh(*state):
        return f"torch.manual_seed({state[1]})"
    key = f"{generator} {len(data) + 1}"
    kept = f'{name}["{key}"]'
    match generator:
        case "torch":
            data[key] = _bytes(state[0])
            return f"torch.set_rng_state({kept})"
        case "cuda":
            data[key] = torch.stack(list(map(_bytes, state)))
            return f"torch.cuda.set_rng_state_all(list({kept}))"
        case "numpy":
            kind, keys, *rest = state
            data[key] = torch.from_numpy(np.frombuffer(keys, np.uint32).astype(np.int64))
            return f'np.random.set_state(("{kind}", {kept}.numpy(), {str(rest)[1:-1]}))'
        case _:
            version, keys, after = state
            data[key] = torch.tensor(keys)
            return f"random.setstate(({version}, tuple({kept}.tolist()), {after}))"


def _is_fresh(state: bytes, seed: int) -> bool:
    """Whether nothing has been drawn since torch.manual_seed(seed)."""
    return torch.Generator().manual_seed(seed).get_state().numpy().tobytes() == state


def _bytes(state: bytes) -> Tensor:
    return torch.frombuffer(bytearray(state), dtype=torch.uint8)
