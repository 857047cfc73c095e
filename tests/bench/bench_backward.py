"""Stepping backward node by node against one `loss.backward()` on the same graph.

The stepper keeps every gradient and runs torch's engine once per node, so it is slower by
design; what matters is the time per node, which a person waits for at each step.
"""

from __future__ import annotations

import json
import statistics
from time import perf_counter

import torch
from torch import nn

from engine.autograd.stepper import BackwardStepper

ROUNDS = 15


def make_loss(layers: int) -> torch.Tensor:
    torch.manual_seed(0)
    blocks = [part for _ in range(layers) for part in (nn.Linear(64, 64), nn.ReLU())]
    model = nn.Sequential(*blocks, nn.Linear(64, 10))
    x_BF, y_B = torch.rand(64, 64), torch.randint(10, (64,))
    return nn.functional.cross_entropy(model(x_BF), y_B)


def measure(layers: int) -> dict[str, float | int | str]:
    whole_ms: list[float] = []
    read_ms: list[float] = []
    step_ms: list[float] = []
    nodes = 0
    for _ in range(ROUNDS + 1):  # the first round warms up
        loss = make_loss(layers)
        started = perf_counter()
        loss.backward(retain_graph=True)
        whole_ms.append((perf_counter() - started) * 1e3)
        started = perf_counter()
        stepper = BackwardStepper(loss)
        read_ms.append((perf_counter() - started) * 1e3)
        nodes = len(stepper.plan)
        started = perf_counter()
        stepper.run()
        step_ms.append((perf_counter() - started) * 1e3)
    ratios = [step / whole for step, whole in zip(step_ms[1:], whole_ms[1:], strict=True)]
    return {
        "bench": "backward",
        "nodes": nodes,
        "backward_ms": statistics.median(whole_ms[1:]),
        "read_graph_ms": statistics.median(read_ms[1:]),
        "step_all_ms": statistics.median(step_ms[1:]),
        "step_one_us": statistics.median(step_ms[1:]) / nodes * 1e3,
        "stepped_over_backward": statistics.median(ratios),
    }


def main() -> None:
    torch.set_num_threads(1)
    for layers in (3, 30, 300):
        print(json.dumps(measure(layers)), flush=True)


if __name__ == "__main__":
    main()
