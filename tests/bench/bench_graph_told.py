"""What the window is told of a graph, beside networkx building the same graph.

`read` is the graph in the engine, `kept` the bytes of the tensors that its nodes saved, `told` its
snapshots with all facts of its nodes, `sent` their bytes, `got` the snapshot that the window makes
of these. networkx walks the same graph: each node has its name and the shape of its output, each
edge its numbers. CPU time, in turns; ours in one go, as the engine does it.

`told` is everything that the window needs to draw the graph as it first shows it, and all that it
says of a node later, also where each node was made. `kept` stands by itself: torch is asked for
saved tensors one by one, and a pass reads them once, for the window, for what its steps free, and
for tensors that were overwritten. Of the ratios, `told` is without it, the other two are with it.

    python -m tests.bench.bench_graph_told
"""

from __future__ import annotations

import gc
import json
import statistics
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import networkx as nx
import torch

from engine.autograd import read_graph
from engine.autograd.graph.provenance import Provenance
from engine.autograd.graph.saved_for_backward import SavedForBackward
from engine.autograd.graph.snapshot import graph_snapshots
from engine.protocol import GraphSnapshot
from engine.protocol.autograd_snapshots import join_graph
from engine.protocol.codec import decode_snapshot, encode_snapshot
from tests.engine.autograd.recorded_graphs import record_forward
from tests.engine.autograd.shaped_models import chain, gpt2

ROUNDS = 21


def networkx_graph(loss: torch.Tensor) -> nx.MultiDiGraph:
    graph, root = nx.MultiDiGraph(), loss.grad_fn
    fns: list[Any] = [root]
    seen = {root}
    for fn in fns:
        graph.add_node(fn, name=fn.name(), shape=tuple(fn._input_metadata[0].shape))
        for input_nr, (below, output_nr) in enumerate(fn.next_functions):
            if below is not None:
                graph.add_edge(fn, below, input=input_nr, output=output_nr)
                if below not in seen:
                    seen.add(below)
                    fns.append(below)
    return graph


STAGES = ("networkx", "read", "kept", "told", "sent", "got")


def measure(title: str, make: Callable[[], tuple[torch.Tensor, Provenance]]) -> dict[str, Any]:
    took_s: dict[str, list[float]] = {name: [] for name in STAGES}

    def timed(name: str, act: Callable[..., Any], *arguments: Any) -> Any:
        started = process_time()
        done = act(*arguments)
        took_s[name].append(process_time() - started)
        return done

    nodes, sent_kb = 0, 0.0
    for _ in range(ROUNDS + 1):  # the first warms up
        loss, _ = make()
        gc.collect()
        peer = timed("networkx", networkx_graph, loss)
        loss, provenance = make()  # a graph that was walked before is walked faster
        gc.collect()
        graph = timed("read", read_graph, loss)
        kept = timed("kept", SavedForBackward, graph.nodes)
        tell = partial(graph_snapshots, graph, graph.nodes, provenance, kept=kept)
        parts = timed("told", tell)
        data = timed("sent", lambda parts: list(map(encode_snapshot, parts)), parts)
        whole = timed("got", lambda data: join_graph(list(map(_graph, data))), data)
        assert len(whole.nodes) == len(peer) and len(whole.edges) == peer.number_of_edges()
        nodes, sent_kb = len(peer), sum(map(len, data)) / 1e3
        del peer, graph, kept, tell, parts, data, whole  # their end is not measured
    theirs = took_s["networkx"][1:]

    def over(*names: str) -> float:
        ours = (sum(each) for each in zip(*(took_s[name][1:] for name in names), strict=True))
        return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))

    return {
        "bench": "graph_told",
        "graph": title,
        "nodes": nodes,
        "sent_kb": sent_kb,
        **{f"{name}_ms": statistics.median(took_s[name][1:]) * 1e3 for name in took_s},
        "told_over_networkx": over("told"),
        "told_and_kept_over_networkx": over("kept", "told"),
        "all_over_networkx": over("read", "kept", "told", "sent", "got"),
    }


def _graph(data: bytes) -> GraphSnapshot:
    snapshot = decode_snapshot(data)
    assert isinstance(snapshot, GraphSnapshot)
    return snapshot


def main() -> None:
    torch.set_num_threads(1)
    for title, make in {
        "GPT-2, 12 layers": lambda: record_forward(*gpt2(12)),
        "chain of 5,000 layers": lambda: (chain(5_000), Provenance()),
    }.items():
        print(json.dumps(measure(title, make)), flush=True)


if __name__ == "__main__":
    main()
