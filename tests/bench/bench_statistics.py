"""Statistics of a float32 tensor of 10^8 elements, beside torch's own passes over it.

`summary` is what `summarise` gives a view, `statistics` the same with a histogram. Beside them:
torch's min, max, mean and std of the whole tensor in float32, and plain passes over the same pieces
in float64, with what `summarise` counts and with what `Statistics` counts. CPU time on one thread,
in turns.

    python -m tests.bench.bench_statistics
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import process_time

import psutil
import torch
from torch import Tensor

from engine.tensors.summary import PIECE, summarise
from engine.tensors.values.statistics import FINE_BINS, Statistics

ELEMENTS = 10**8
ROUNDS = 5


def statistics(t: Tensor) -> None:
    counted = Statistics(t)
    while counted.advance():
        pass
    assert counted.done == counted.total


def torchs_four(t: Tensor) -> None:
    t.min(), t.max(), t.mean(), t.std()


def plain(t: Tensor) -> None:
    for piece in t.split(PIECE):
        x = piece.double()
        torch.aminmax(x), torch.count_nonzero(x), torch.var_mean(x)


def plain_with_histogram(t: Tensor) -> None:
    for piece in t.split(PIECE):
        x = piece.double()
        torch.aminmax(x), torch.count_nonzero(x), torch.var_mean(x)
        torch.histc(x, FINE_BINS, 0, 1)


def least_s(passes: dict[str, Callable[[Tensor], object]], t: Tensor) -> dict[str, float]:
    took_s: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(ROUNDS):
        for name, run in passes.items():
            started = process_time()
            run(t)
            took_s[name].append(process_time() - started)
    return {name: min(each) for name, each in took_s.items()}


def main() -> None:
    if psutil.virtual_memory().available < 8 * ELEMENTS:
        print(json.dumps({"bench": "statistics", "skipped": "no memory"}))
        return
    torch.set_num_threads(1)
    torch.manual_seed(0)
    took_s = least_s(
        {
            "summary": summarise,
            "statistics": statistics,
            "torchs_four": torchs_four,
            "plain": plain,
            "plain_with_histogram": plain_with_histogram,
        },
        torch.rand(ELEMENTS),
    )
    row = {
        "bench": "statistics",
        "tensor": "float32 of 10^8",
        **{f"{name}_s": each for name, each in took_s.items()},
        "summary_over_statistics": took_s["summary"] / took_s["statistics"],
        "summary_over_torchs_four": took_s["summary"] / took_s["torchs_four"],
        "summary_over_plain": took_s["summary"] / took_s["plain"],
        "statistics_over_plain": took_s["statistics"] / took_s["plain_with_histogram"],
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
