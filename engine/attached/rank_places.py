"""Where the other ranks of this run listen. They tell each other through the store by which
torch.distributed has brought them together: none of them needs to be reached for it."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable

import msgspec
import torch.distributed

from ..connecting.greeting import About
from ..protocol import RankPlace, RankPlacesSnapshot

LOOK_S = 1.0
"""How often ranks that have not told their place yet are looked for, while a window wants them."""
MAX_BYTES = 4096
"""Of what a rank tells."""


class RankPlaces:
    """`told(places)` gets those that are known each time there are more; on a thread of this
    object's, as all that asks the store: the user's thread never waits for it."""

    def __init__(self, about: About, told: Callable[[RankPlacesSnapshot], object]) -> None:
        self._about, self._told = about, told
        self._wanted, self._over = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Tell this rank's place, if the ranks have met and it is not told yet."""
        if self._thread is None and self._about.world_size > 1 and _have_met():
            self._thread = threading.Thread(target=self._run, name="tensorlab-ranks", daemon=True)
            self._thread.start()

    def want(self) -> None:
        """Find those of the others from now on."""
        self._wanted.set()

    def close(self, timeout_s: float) -> None:
        """Ask the store no more; wait for the question under way, for `timeout_s` at most."""
        self._over.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            # A store answers one thread after the other, and some questions take half an hour.
            store = torch.distributed.distributed_c10d._get_default_store()
            store = store.clone()  # pyright: ignore[reportAttributeAccessIssue]
            store.set(_key(self._about.rank), msgspec.json.encode(self._own()).decode())
            self._wanted.wait()
            self._find(store)
        except Exception as error:  # the run is over, or its store is of another kind
            if not self._over.is_set():
                logging.getLogger(__name__).info("Ranks cannot be found: %s", error)

    def _own(self) -> RankPlace:
        return RankPlace(self._about.rank, socket.gethostname(), self._about.pid, sys.executable)

    def _find(self, store: torch.distributed.Store) -> None:
        found: dict[int, RankPlace] = {}
        while not self._over.is_set() and len(found) < self._about.world_size:
            missing = [rank for rank in range(self._about.world_size) if rank not in found]
            there = [rank for rank in missing if store.check([_key(rank)])]
            told = {rank: _place(store.get(_key(rank))) for rank in there}
            new = {r: place for r, place in told.items() if place is not None and place.rank == r}
            if new:
                found |= new
                self._told(RankPlacesSnapshot(tuple(found[rank] for rank in sorted(found))))
            self._over.wait(LOOK_S)


def _have_met() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _key(rank: int) -> str:
    return f"tensorlab/rank {rank}"


def _place(told: bytes) -> RankPlace | None:
    try:
        return msgspec.json.decode(told[:MAX_BYTES], type=RankPlace)
    except (ValueError, RecursionError):
        return None
