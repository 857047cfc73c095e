"""Reading a graph against a bare walk of `next_functions`, and against torchviz, torchview and
TorchLens, on the same models and batches.

`read` and torchviz start from a loss whose forward pass has run; the bare walk keeps nodes and
edges and nothing else. torchview and TorchLens run forward themselves, so they stand beside
`record`: the forward pass under our Recorder, then the graph with all facts of its nodes as the
window is told of it. Each tool runs in a process of its own, for two of them patch torch. `*_mb`
is by how much the peak of the process's resident memory grows, in a fresh fork of a process that
has warmed up on a small model.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import nn

from engine.autograd import read_graph
from tests.engine.autograd import shaped_models
from tests.engine.autograd.recorded_graphs import recorded

ROUNDS, LEAST_ROUNDS, ENOUGH_S = 9, 3, 8.0
"""So many rounds, or fewer once so many seconds have gone."""
TOOLS = ("torchviz", "torchview", "torchlens")
HOW_TO_INSTALL = "not installed: make bench, or pip install -e '.[bench]'"


class Chain(nn.Module):
    """1,000 times a product and a tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.start
        for _ in range(1_000):
            x = (x * 0.5).tanh()
        return x


Case = tuple[nn.Module, torch.Tensor]
Row = dict[str, float | int | str]


def cases() -> dict[str, Case]:
    torch.manual_seed(0)
    return {
        "MLP": (shaped_models.mlp(8)[0], torch.rand(8, 16)),
        "ResNet-50": (shaped_models.ResNet50(), torch.rand(2, 3, 64, 64)),
        "GPT-2, 12 layers": (shaped_models.GPT2(), torch.randint(64, (2, 16))),
        "chain of 1,000 layers": (Chain(), torch.rand(4)),
    }


# -- what is measured ------------------------------------------------------------------------------


def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).float().sum()


def walk(loss: torch.Tensor) -> tuple[list[Any], list[tuple[Any, Any]]]:
    nodes, edges, seen = [loss.grad_fn], [], {loss.grad_fn}
    for fn in nodes:
        for below, _ in fn.next_functions:  # type: ignore[union-attr]
            if below is None:
                continue
            edges.append((fn, below))
            if below not in seen:
                seen.add(below)
                nodes.append(below)
    return nodes, edges


def record(model: nn.Module, x: torch.Tensor) -> object:
    return recorded(model, lambda: forward(model, x))


def torchviz(loss: torch.Tensor) -> object:
    from torchviz import make_dot  # pyright: ignore[reportMissingImports]

    return make_dot(loss)


def torchview(model: nn.Module, x: torch.Tensor) -> object:
    from torchview import draw_graph  # pyright: ignore[reportMissingImports]

    return draw_graph(model, input_data=x, depth=100, device="cpu", mode="train")


def torchlens(model: nn.Module, x: torch.Tensor) -> object:
    import torchlens as tl  # pyright: ignore[reportMissingImports]

    return tl.trace(model, x)


class Measured(NamedTuple):
    """`act` is measured, on what `prepare` made of a model and its batch: a fresh graph each time,
    for one that was walked before is walked faster."""

    act: Callable[..., object]
    prepare: Callable[[nn.Module, torch.Tensor], tuple[Any, ...]]


def with_loss(model: nn.Module, x: torch.Tensor) -> tuple[Any, ...]:
    return (forward(model, x),)


def with_model(model: nn.Module, x: torch.Tensor) -> tuple[Any, ...]:
    return model, x


MEASURED: dict[str, dict[str, Measured]] = {
    "tensorlab": {
        "walk": Measured(walk, with_loss),
        "read": Measured(read_graph, with_loss),
        "forward": Measured(forward, with_model),
        "record": Measured(record, with_model),
    },
    "torchviz": {"torchviz": Measured(torchviz, with_loss)},
    "torchview": {"torchview": Measured(torchview, with_model)},
    "torchlens": {"torchlens": Measured(torchlens, with_model)},
}


# -- one tool, in a process of its own -------------------------------------------------------------


def measure(tool: str) -> dict[str, Row]:
    """Figures of one tool, by case: its calls take turns, so that all meet the same machine."""
    torch.set_num_threads(1)
    for each in MEASURED[tool].values():
        elapsed_ms(each, (shaped_models.mlp(1)[0], torch.rand(8, 16)))
    memory = {
        title: {name: peak_growth_mb(each, case) for name, each in MEASURED[tool].items()}
        for title, case in cases().items()
    }
    return {title: timed(tool, case, memory[title]) for title, case in cases().items()}


def timed(tool: str, case: Case, memory_mb: dict[str, float | None]) -> Row:
    took_ms: dict[str, list[float]] = {name: [] for name in MEASURED[tool]}
    started = perf_counter()
    try:
        for turn in range(ROUNDS + 1):  # the first warms up
            for name, each in MEASURED[tool].items():
                took_ms[name].append(elapsed_ms(each, case))
            if turn >= LEAST_ROUNDS and perf_counter() - started > ENOUGH_S:
                break
    except RecursionError:
        return {tool: "fails: RecursionError"}
    row: Row = {}
    for name, times in took_ms.items():
        row[f"{name}_ms"] = statistics.median(times[1:])
        grown = memory_mb[name]
        if grown is not None:
            row[f"{name}_mb"] = grown
    if tool == "tensorlab":
        row["nodes"] = len(read_graph(forward(*case)).nodes)
        pairs = zip(took_ms["read"], took_ms["walk"], strict=True)
        row["read_over_walk"] = statistics.median(a / b for a, b in pairs)
    return row


def elapsed_ms(each: Measured, case: Case) -> float:
    arguments = each.prepare(*case)
    started = perf_counter()
    kept = each.act(*arguments)
    took_ms = (perf_counter() - started) * 1e3
    del kept
    return took_ms


def peak_growth_mb(each: Measured, case: Case) -> float | None:
    """Of a single call, in a fork (TorchLens refuses to run in one: in this process); None where
    it fails, or where there is no /proc."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    if each.act is torchlens:
        return growth_mb(each, case)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, str(growth_mb(each, case)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return float(told) if told else None


def growth_mb(each: Measured, case: Case) -> float:
    arguments = each.prepare(*case)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before_kb = resident_kb("VmRSS")
    kept = each.act(*arguments)
    grown_kb = resident_kb("VmHWM") - before_kb
    del kept
    return max(0, grown_kb) / 1e3


def resident_kb(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


# -- all of them -----------------------------------------------------------------------------------


def measured_apart(tool: str) -> dict[str, Row]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.bench.bench_graph", "--tool", tool],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", choices=MEASURED, help="measure only this one, in this process")
    tool = parser.parse_args().tool
    if tool:
        print(json.dumps(measure(tool)))
        return
    there = [each for each in TOOLS if importlib.util.find_spec(each)]
    found = {each: measured_apart(each) for each in ("tensorlab", *there)}
    for title in cases():
        ours = found["tensorlab"][title]
        row: Row = {"bench": "graph", "graph": title, **ours}
        for each in TOOLS:
            theirs = found.get(each, {}).get(title, {each: HOW_TO_INSTALL})
            row |= theirs
            own = "read" if each == "torchviz" else "record"
            if f"{each}_ms" in theirs:
                row[f"{own}_over_{each}"] = float(ours[f"{own}_ms"]) / float(theirs[f"{each}_ms"])
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
