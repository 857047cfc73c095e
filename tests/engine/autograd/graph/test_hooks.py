"""The hooks on a node are told, and asking for them leaves none behind."""

from __future__ import annotations

import torch

from engine.autograd import read_graph
from engine.autograd.graph.hooks import hooks_on, registered


def test_asking_for_hooks_registers_none() -> None:
    x = torch.ones(2, requires_grad=True)
    node = (x * 2).grad_fn
    assert node is not None
    assert registered(node.register_hook) == [] == registered(node.register_hook)

    def before(_):
        return None

    def after(*_):
        return None

    node.register_prehook(before)
    handle = node.register_hook(after)
    for _ in range(2):
        assert registered(node.register_prehook) == [before]
        assert registered(node.register_hook) == [after]
    handle.remove()
    assert registered(node.register_hook) == []


def test_hooks_are_counted_by_kind() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    graph = read_graph([y.sum()])
    assert y.grad_fn is not None
    node = graph.node_of(y.grad_fn)
    assert node is not None and hooks_on(node, [y]) == ""
    y.register_hook(lambda g: None)
    y.register_hook(lambda g: None)
    y.retain_grad()
    assert hooks_on(node, [y]) == "2 tensor hooks, retain_grad"
    x.register_post_accumulate_grad_hook(lambda p: None)
    leaf = next(n for n in graph.nodes if n.is_leaf)
    assert hooks_on(leaf, [x]) == "1 post-accumulate hook"
