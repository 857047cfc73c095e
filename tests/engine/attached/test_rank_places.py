"""Where ranks listen, as they tell each other through the store in which they have met."""

from __future__ import annotations

import os
import queue
import socket
import sys
from collections.abc import Iterator

import msgspec
import pytest
import torch.distributed as dist

from engine.attached import rank_places
from engine.attached.rank_places import RankPlaces
from engine.connecting.greeting import About
from engine.protocol import RankPlace, RankPlacesSnapshot
from tests.engine.processes import WAIT_S

TOLD = queue.SimpleQueue[RankPlacesSnapshot]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> dist.Store:
    made = dist.HashStore()
    monkeypatch.setattr(rank_places, "LOOK_S", 0.01)
    monkeypatch.setattr(rank_places, "_have_met", lambda: True)
    monkeypatch.setattr(dist.distributed_c10d, "_get_default_store", lambda: made)
    return made


@pytest.fixture
def told() -> TOLD:
    return queue.SimpleQueue()


@pytest.fixture
def places(store: dist.Store, told: TOLD) -> Iterator[RankPlaces]:
    about = About(name="train.py", pid=os.getpid(), rank=0, world_size=3, group="run")
    made = RankPlaces(about, told.put)
    yield made
    made.close(WAIT_S)


def test_places_are_told_as_they_come_to_be_known(
    store: dist.Store, places: RankPlaces, told: TOLD
) -> None:
    """What is no place of that rank is passed over until it is one."""
    own = RankPlace(0, socket.gethostname(), os.getpid(), sys.executable)
    second, third = (RankPlace(rank, "two", 40 + rank, "/bin/python") for rank in (1, 2))
    store.set("tensorlab/rank 1", "{")
    store.set("tensorlab/rank 2", msgspec.json.encode(second).decode())
    places.begin()
    places.begin()
    places.want()
    assert told.get(timeout=WAIT_S).places == (own,)
    store.set("tensorlab/rank 2", msgspec.json.encode(third).decode())
    assert told.get(timeout=WAIT_S).places == (own, third)
    store.set("tensorlab/rank 1", msgspec.json.encode(second).decode())
    assert told.get(timeout=WAIT_S).places == (own, second, third)


def test_without_a_window_only_the_own_place_is_told(
    store: dist.Store, places: RankPlaces, told: TOLD
) -> None:
    places.begin()
    store.wait(["tensorlab/rank 0"])
    store.set("tensorlab/rank 1", "{}")
    places.close(WAIT_S)
    assert told.empty()


@pytest.mark.parametrize("world_size", [1, 2])
def test_nothing_is_begun_before_ranks_have_met(
    world_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = RankPlaces(About(name="a", pid=1, world_size=world_size), lambda told: None)
    monkeypatch.setattr(rank_places, "_have_met", lambda: world_size == 1)
    places.begin()
    assert places._thread is None
    places.close(WAIT_S)


def test_a_store_that_fails_ends_the_search_and_nothing_else(
    store: dist.Store, places: RankPlaces, told: TOLD, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> dist.Store:
        raise dist.DistNetworkError("the server has gone")

    monkeypatch.setattr(dist.distributed_c10d, "_get_default_store", fail)
    places.begin()
    places.want()
    assert places._thread is not None
    places._thread.join(WAIT_S)
    assert not places._thread.is_alive() and told.empty()
