"""What recording costs: code under a Recorder against the same code alone, in one run.

`light` is what every cell of the console runs under, `values` what a forward pass and a trace do.
On tensors this small nearly all is the cost of a call; on large ones the ratio goes to 1.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from contextlib import nullcontext
from time import perf_counter

import torch
from torch import Tensor

from engine.recording.light.light_recorder import LightRecorder
from engine.recording.recorder import Recorder
from tests.engine.autograd import shaped_models

ROUNDS = 11


def thousand_ops() -> Tensor:
    x = torch.ones(8, 8, requires_grad=True)
    y = x
    for _ in range(500):
        y = y * 1.01 + x
    return y.sum()


def large_products() -> Tensor:
    x = torch.ones(600, 600, requires_grad=True)
    y = x
    for _ in range(10):
        y = (y @ x).tanh()
    return y.sum()


def measure(name: str, code: Callable[[], Tensor]) -> dict[str, float | int | str]:
    """The three take turns, so that whatever else is busy meets all of them."""
    around = {"plain": nullcontext, "light": LightRecorder, "values": Recorder}
    took_ms: dict[str, list[float]] = {key: [] for key in around}
    calls = 0
    for _ in range(ROUNDS + 1):  # the first round warms up
        for key, make in around.items():
            started = perf_counter()
            with make() as recorder:
                code()
            took_ms[key].append((perf_counter() - started) * 1e3)
            if recorder is not None:
                calls = len(recorder.recording.calls)
    typical = {key: statistics.median(times[1:]) for key, times in took_ms.items()}
    return {
        "bench": "recording",
        "code": name,
        "calls": calls,
        **{f"{key}_ms": value for key, value in typical.items()},
        "light_over_plain": typical["light"] / typical["plain"],
        "values_over_plain": typical["values"] / typical["plain"],
    }


def main() -> None:
    _, gpt2 = shaped_models.gpt2(12)
    cases = {"1,000 ops": thousand_ops, "GPT-2 shaped": gpt2, "large products": large_products}
    for name, code in cases.items():
        print(json.dumps(measure(name, code)), flush=True)


if __name__ == "__main__":
    main()
