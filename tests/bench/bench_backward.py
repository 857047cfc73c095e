"""Stepping backward node by node, and held in the real engine, against one `loss.backward()`.

A step runs torch's engine for one node, so it is slower by design; what matters is the time per
node, which a person waits for. `run` takes many nodes in one engine run and keeps every gradient
of each; the real engine is held by hooks and keeps only the last.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from time import perf_counter

import torch
from torch import nn

from engine.autograd import BackwardStepper, BreakMode

ROUNDS = 11


def make_loss(layers: int) -> torch.Tensor:
    torch.manual_seed(0)
    blocks = [part for _ in range(layers) for part in (nn.Linear(64, 64), nn.ReLU())]
    model = nn.Sequential(*blocks, nn.Linear(64, 10))
    x_BF, y_B = torch.rand(64, 64), torch.randint(10, (64,))
    return nn.functional.cross_entropy(model(x_BF), y_B)


def clocked_ms(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return (perf_counter() - started) * 1e3


def step_all(stepped: BackwardStepper | BreakMode) -> None:
    while stepped.step() is not None:
        pass


def measure(layers: int) -> dict[str, float | int | str]:
    times: dict[str, list[float]] = {}
    nodes = 0
    for _ in range(ROUNDS + 1):  # the first round warms up
        loss = make_loss(layers)
        with BackwardStepper(loss) as stepper:
            nodes = len(stepper.plan)
            works: dict[str, Callable[[], object]] = {
                "backward_ms": lambda loss=loss: loss.backward(retain_graph=True),
                "read_graph_ms": lambda loss=loss: BackwardStepper(loss),
                "step_all_ms": lambda stepper=stepper: step_all(stepper),
            }
            for name, work in works.items():
                times.setdefault(name, []).append(clocked_ms(work))
            stepper.reset()
            times.setdefault("run_ms", []).append(clocked_ms(stepper.run))
        with BreakMode(loss, retain_graph=True) as engine:
            times.setdefault("real_engine_ms", []).append(clocked_ms(engine.run))
    medians = {name: statistics.median(found[1:]) for name, found in times.items()}
    whole = times["backward_ms"][1:]
    ratios = {
        f"{name.removesuffix('_ms')}_over_backward": statistics.median(
            [one / all_ for one, all_ in zip(times[name][1:], whole, strict=True)]
        )
        for name in ("step_all_ms", "run_ms", "real_engine_ms")
    }
    step_one_us = medians["step_all_ms"] / nodes * 1e3
    return {"bench": "backward", "nodes": nodes, **medians, "step_one_us": step_one_us, **ratios}


def main() -> None:
    torch.set_num_threads(1)
    for layers in (3, 30, 300):
        print(json.dumps(measure(layers)), flush=True)


if __name__ == "__main__":
    main()
