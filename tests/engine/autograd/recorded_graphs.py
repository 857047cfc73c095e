"""The graph of a forward pass as the window gets it, with the module path of each node."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from engine.autograd import read_graph
from engine.autograd.graph.provenance import Provenance
from engine.autograd.graph.snapshot import graph_snapshots
from engine.protocol import GraphSnapshot
from engine.protocol.autograd_snapshots import join_graph
from engine.recording.light.light_recorder import LightRecorder


def recorded(model: nn.Module, run: Callable[[], Tensor], name: str = "net") -> GraphSnapshot:
    """Run forward under a Recorder; the model is called `name`, as a console variable would be."""
    loss, provenance = record_forward(model, run, name)
    graph = read_graph(loss, names={f"{name}.{path}": p for path, p in model.named_parameters()})
    return join_graph(graph_snapshots(graph, graph.nodes, provenance))


def record_forward(
    model: nn.Module, run: Callable[[], Tensor], name: str = "net"
) -> tuple[Tensor, Provenance]:
    """The loss of `run`, and where its graph's nodes were made."""
    paths = {m: f"{name}.{path}" if path else name for path, m in model.named_modules()}
    with LightRecorder(modules=paths) as recorder:
        loss = run()
    labels = {id(p): f"{name}.{path}" for path, p in model.named_parameters()}
    return loss, Provenance(
        [recorder.recording],
        name_of=lambda tensor: labels.get(id(tensor), ""),
        owner_of=lambda tensor: labels.get(id(tensor), "").rpartition(".")[0],
    )


def snapshot(root: Tensor) -> GraphSnapshot:
    """The graph of a tensor that nothing was recorded for."""
    graph = read_graph(root)
    return join_graph(graph_snapshots(graph, graph.nodes, Provenance()))
