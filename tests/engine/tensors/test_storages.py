"""Which memory is whose: equal numbers where one byte or more is shared, and only there."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest
import torch

from engine.tensors import storages as storages_module
from engine.tensors.storages import Storages


def test_slices_side_by_side_in_one_array_share_no_byte():
    array = np.arange(12.0)
    halves = torch.from_numpy(array[:6]), torch.from_numpy(array[6:])
    first, second = Storages().numbers(halves)
    assert first != second
    second, first = Storages().numbers(halves[::-1])
    assert first != second


def test_slices_with_one_element_in_common_share_it():
    array = np.arange(12.0)
    parts = torch.from_numpy(array[:7]), torch.from_numpy(array[6:])
    assert len(set(Storages().numbers(parts))) == 1
    assert len(set(Storages().numbers(parts[::-1]))) == 1


def test_an_array_its_views_and_its_tensors_are_one_piece():
    array = np.arange(12.0)
    whole = torch.from_numpy(array)
    values = [array, array[::-1][2:5], whole, whole.view(3, 4)[1], torch.from_numpy(array[3:4])]
    assert Storages().numbers(values) == [1] * 5


def test_a_reversed_array_begins_at_its_lowest_address():
    buffer = bytearray(64)
    forth = np.frombuffer(buffer, np.uint8)
    back = np.ndarray((32,), np.uint8, buffer, offset=31, strides=(-1,))
    after = np.ndarray((32,), np.uint8, buffer, offset=32)
    storages = Storages()
    assert storages.numbers([back, after, torch.from_numpy(after)]) == [1, 2, 2]
    assert storages.number(forth) in (1, 2)  # it overlaps both


def test_what_has_no_memory_shares_none():
    storages = Storages()
    empty = [torch.empty(0), torch.empty(0), np.empty(0), torch.empty(3, device="meta")]
    assert storages.numbers(empty) == [1, 2, 3, 4]
    assert storages.number(torch.eye(2).to_sparse()) is None


def test_a_number_stays_and_is_given_again_after_the_memory_is_gone():
    storages = Storages()
    a, b = torch.zeros(3), torch.zeros(3)
    assert storages.numbers([a, b]) == [1, 2]
    view = a[1:]
    del a
    gc.collect()
    assert storages.numbers([b, view]) == [2, 1]
    del view
    gc.collect()
    c = torch.zeros(5)
    assert storages.numbers([c, b]) == [1, 2]


def test_many_pieces_are_each_looked_at_a_few_times(monkeypatch):
    looks = []
    address = storages_module._range
    monkeypatch.setattr(
        storages_module, "_range", lambda owner: (looks.append(owner), address(owner))[1]
    )
    storages = Storages()
    tensors = [torch.zeros(2) for _ in range(500)]
    assert storages.numbers(tensors) == list(range(1, 501))
    assert storages.numbers([*tensors, torch.zeros(3)])[-1] == 501
    assert len(looks) <= 3 * 501


@pytest.mark.parametrize("seed", range(20))
def test_numbers_are_those_of_a_search_through_all_pieces(seed):
    rng, buffer = random.Random(seed), np.zeros(400, np.uint8)
    storages, arrays, found = Storages(), [], []
    for _ in range(60):
        start = rng.randrange(380)
        array = np.frombuffer(memoryview(buffer.data)[start : start + rng.randint(1, 8)], np.uint8)
        overlapped = {
            number
            for other, number in zip(arrays, found, strict=True)
            if np.shares_memory(other, array)
        }
        number = storages.number(array)
        assert number in overlapped if overlapped else number not in found
        arrays.append(array)
        found.append(number)
