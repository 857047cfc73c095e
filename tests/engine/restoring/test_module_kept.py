"""A step on trial leaves the module as it was, and its graph can be used afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.restoring.module_kept import module_kept


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(3, 2)
        self.again = nn.Module()
        self.register_buffer("seen", torch.zeros(()))
        self.again.register_buffer("seen", self.seen)
        self.register_buffer("grows", torch.zeros(0))
        self.register_buffer("none", None)

    def forward(self, x):
        self.seen += 1
        self.grows = torch.cat([self.grows, x[:, 0]])
        assert self.again.seen is self.seen
        return self.head(self.norm(x))


def test_buffers_and_modes_are_as_before_and_backward_finds_what_forward_saved() -> None:
    torch.manual_seed(0)
    module, x = Counting(), torch.randn(5, 3)
    module.norm.eval()
    module.eval()
    before = {name: (buffer, buffer.clone()) for name, buffer in module.named_buffers()}
    with module_kept(module):
        assert module.training and module.norm.training
        loss = module(x).square().sum()
        assert module.seen == 1 and len(module.grows) == 5
    after = dict(module.named_buffers())
    assert after.keys() == before.keys()
    for name, (buffer, value) in before.items():
        assert after[name] is buffer and torch.equal(buffer, value)
    assert not module.training and not module.norm.training
    loss.backward()
    ours = module.head.weight.grad
    assert ours is not None
    module.zero_grad()
    module.train()(x).square().sum().backward()
    again = module.head.weight.grad
    assert again is not None and torch.equal(ours, again)


def test_a_module_of_training_mode_keeps_parts_in_eval_mode() -> None:
    module = Counting()
    module.norm.eval()
    with module_kept(module):
        assert module.training and not module.norm.training
    assert module.training and not module.norm.training


def test_an_error_leaves_the_module_as_it_was() -> None:
    module = Counting()
    mean = module.norm.running_mean
    with pytest.raises(RuntimeError), module_kept(module):
        module(torch.randn(5, 4))
    assert module.norm.running_mean is mean and module.seen == 0 and module.training


def test_a_lazy_module_is_kept() -> None:
    module = nn.LazyBatchNorm1d()
    with module_kept(module):
        module(torch.randn(5, 4))
    assert module.running_mean.shape == (4,)
