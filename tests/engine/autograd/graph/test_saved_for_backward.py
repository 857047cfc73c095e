"""What nodes keep alive, read once, is what each node says by itself."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from engine.autograd import read_graph
from engine.autograd.graph.provenance import Provenance
from engine.autograd.graph.saved_for_backward import SavedForBackward
from engine.autograd.graph.snapshot import graph_snapshots


def shared(x: torch.Tensor) -> torch.Tensor:
    """Keeps storages several times over: of one node twice, of two nodes, and of a view."""
    return ((x * x).sin() + x[:2].exp().sum() * x.cos()).sum()


def packed(x: torch.Tensor) -> torch.Tensor:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), torch.tensor):
        h = x.exp()
    return checkpoint(torch.sin, h, use_reentrant=False).sum()


def stacked(x: torch.Tensor) -> torch.Tensor:
    return (
        torch.linalg.multi_dot([torch.outer(x, x)] * 3).sum()
        + torch.index_put(x, (torch.tensor([0]),), x[:1]).sum()
    )


def sparse(x: torch.Tensor) -> torch.Tensor:
    return torch.sparse.mm(torch.eye(4).to_sparse(), x[:, None].expand(4, 2)).sum()


@pytest.mark.parametrize("make", [shared, packed, stacked, sparse])
@pytest.mark.parametrize("freed", [False, True])
def test_it_is_what_each_node_keeps(make, freed: bool) -> None:
    loss = make(torch.rand(4, requires_grad=True))
    if freed:
        loss.backward()
    graph = read_graph(loss)
    kept = SavedForBackward(graph.nodes)
    for node, storages in zip(graph.nodes, kept.storages, strict=True):
        own = {s.storage_id: s.storage_bytes for s in node.saved if s.data is not None}
        assert {storage: kept.size_bytes[storage] for storage in storages} == own
        assert len(storages) == len(own)
    assert kept.saved_bytes == graph.saved_bytes
    (told,) = graph_snapshots(graph, graph.nodes, Provenance(), kept=kept)
    assert [n.saved_bytes for n in told.nodes] == [n.saved_bytes for n in graph.nodes]


def test_nodes_that_saved_what_was_written_to_are_named() -> None:
    x, buffer = torch.rand(4, requires_grad=True), torch.zeros(4)
    y = (x * buffer).exp() * x.detach()
    buffer.add_(1)
    y.detach()[0] = 2  # y itself is saved by nothing
    graph = read_graph(y)
    assert [node.op for node in SavedForBackward(graph.nodes).written] == ["mul"]
