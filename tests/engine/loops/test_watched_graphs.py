"""Parts of graphs of torch.fx and torch.export: watched where the graph calls them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from engine.loops.watching import Watching
from engine.project.subject import ConsoleSubject
from engine.system.errors import LabError

NET = ConsoleSubject("net")


class Halved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts, self.head = nn.Sequential(nn.Linear(4, 6), nn.ReLU()), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.parts(x))


def test_what_a_graph_never_calls_is_refused_and_what_it_calls_is_watched() -> None:
    watching, exported = Watching(), torch.export.export(Halved(), (torch.ones(2, 4),)).module()
    for graph, path in ((exported, "parts.0"), (torch.fx.symbolic_trace(Halved()), "parts")):
        with pytest.raises(LabError) as raised:
            watching.watch(NET, graph, ("", path))
        assert str(raised.value) == (
            f"The graph has the operations of `{path}` and never calls it, so it cannot be watched."
        )
        assert raised.value.hint == "Watch the whole subject." and not watching.paths
        watching.watch(NET, graph, ("",))
        graph(torch.ones(2, 4)).sum().backward()
        assert watching.take()
        watching.watch(NET, graph, ())
    traced = torch.fx.symbolic_trace(Halved())
    watching.watch(NET, traced, ("parts.0", "head"))
    traced(torch.ones(2, 4)).sum().backward()
    assert {name.partition(":")[0] for name in watching.take()} == {"parts.0", "head"}


def test_what_a_called_part_of_a_graph_calls_is_watched() -> None:
    class Leaf(torch.fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return True

    net, watching = Halved(), Watching()
    graph = torch.fx.GraphModule(net, Leaf().trace(net))
    watching.watch(NET, graph, ("parts", "parts.0"))
    graph(torch.ones(2, 4)).sum().backward()
    assert {name.partition(":")[0] for name in watching.take()} == {"parts", "parts.0"}
