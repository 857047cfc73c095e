"""Overwritten saved tensors are found before backward refuses them, and no others."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from engine.autograd import read_graph
from engine.autograd.graph.stale import MAX_LISTED, stale_saves, stale_tensors
from engine.protocol import RunCellCommand, SourceLine, WrittenBy
from engine.server.session import Session


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a


class Doubled(torch.autograd.Function):
    """Saves its own result."""

    @staticmethod
    def forward(ctx, a):
        out = a * 2
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] / ctx.saved_tensors[0] * 2


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def found(loss):
    return [
        (s.node.name, s.saved.name, s.saved_version, s.version)
        for s in stale_saves(read_graph(loss).nodes)
    ]


def refused(loss) -> bool:
    try:
        loss.backward(retain_graph=True)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return True
    return False


def test_a_sound_graph_has_none(x):
    h = x * 2
    h.add_(1)  # before anything saved it
    loss = (h * h).sum()
    assert found(loss) == [] and not refused(loss)


def test_a_saved_input_that_was_written_twice(x):
    h = x * 2
    loss = (h * x).sum()
    h.add_(1)
    h.mul_(3)
    assert found(loss) == [("MulBackward0", "self", 0, 2)]
    assert refused(loss)


def test_a_saved_result(x):
    y = x.exp()
    loss = (y * 1).sum()
    y.add_(1)
    assert found(loss) == [("ExpBackward0", "result", 0, 1)]
    assert refused(loss)


def test_a_write_through_a_view(x):
    y = x.sigmoid()
    view = y[1:]
    loss = (y + 1).sum()
    with torch.no_grad():
        view.zero_()
    assert found(loss) == [("SigmoidBackward0", "result", 0, 1)]
    assert refused(loss)


def test_a_written_parameter_after_a_step(x):
    weight = torch.nn.Parameter(torch.ones(3))
    loss = ((x * weight).exp()).sum()
    with torch.no_grad():
        weight -= 0.1  # the optimizer stepped between forward and backward
    assert found(loss) == [("MulBackward0", "other", 0, 1)]
    assert refused(loss)


def test_one_of_several_tensors_in_a_list(x):
    a, b = x * 2, x * 3
    loss = torch.linalg.multi_dot([a.view(1, 3), b.view(3, 1), a.view(1, 3)]).sum()
    assert found(loss) == []
    b.add_(1)
    assert {(name, saved, now) for name, saved, _, now in found(loss)} and refused(loss)


def test_custom_functions(x):
    h = x * 2
    loss = Product.apply(h, x).sum()
    h.add_(1)
    assert found(loss) == [("ProductBackward", "tensors[0]", 0, 1)]
    assert refused(loss)
    y = Doubled.apply(x)
    loss = (y * 1).sum()
    assert found(loss) == []
    with torch.no_grad():
        y.detach().add_(1)
    assert refused(loss)
    assert found(loss) == [("DoubledBackward", "tensors[0]", 0, 1)]


def test_who_wrote_is_told_with_the_line():
    answers = []
    session = Session(answers.append)
    code = "x = torch.ones(3, requires_grad=True)\ny = x.exp()\nz = y * 2\ny.add_(1)\n"
    session.handle(RunCellCommand(source=code))
    namespace = session.lab.console.namespace
    z = namespace.variables["z"]
    (told,) = stale_tensors(read_graph(z).nodes, namespace.writes.last_write)
    assert (told.saved, told.saved_version, told.version, told.op) == ("result", 0, 1, "add_")
    assert told.source == SourceLine("<cell 1>", 4, "y.add_(1)")
    assert "is at version 1; expected version 0" in told.error


def test_of_a_writer_only_what_was_seen_is_told(x):
    y = x.exp()
    node = read_graph(y).nodes
    y.detach().add_(1)
    seen = {
        None: ("", None),
        WrittenBy("", "<cell 2>", 3, "np.add(a, 1, out=a)"): (
            "", SourceLine("<cell 2>", 3, "np.add(a, 1, out=a)"),
        ),
        WrittenBy("add_", "<cell 2>"): ("add_", None),
    }  # fmt: skip
    for writer, told in seen.items():
        asked = []
        (stale,) = stale_tensors(node, lambda t, w=writer, asked=asked: asked.append(t) or w)
        assert (stale.op, stale.source) == told and stale.node == node[0].id
        assert [t.data_ptr() for t in asked] == [y.data_ptr()]


def test_of_many_stale_tensors_the_first_are_told(x):
    h = x * 1
    products = [h * x for _ in range(MAX_LISTED + 3)]
    nodes = read_graph(products).nodes
    h.add_(1)
    told = stale_tensors(nodes, lambda t: None)
    assert len(told) == MAX_LISTED and len(list(stale_saves(nodes))) == MAX_LISTED + 3
    assert [stale.node for stale in told] == list(range(MAX_LISTED))


def test_a_tensor_of_inference_mode_is_never_stale(x):
    with torch.inference_mode():
        weight = torch.ones(3)
    loss = torch.ones(3).mul(x)
    assert found((loss * 2).sum()) == []
    frozen = torch.nn.functional.linear(x.detach(), torch.ones(2, 3, requires_grad=True))
    assert found(frozen) == [] and weight.is_inference()


def test_reading_disturbs_nothing(x):
    calls = []
    loss = checkpoint(lambda t: calls.append(1) or t.exp(), x, use_reentrant=False).sum()
    h = x * 2
    loss = loss + (h * x).sum()
    before = len(calls)
    assert found(loss) == [] and len(calls) == before
    loss.backward()
    assert torch.equal(x.grad, x.exp() + 4 * x)
    assert found(loss) == []  # freed: nothing left to be stale
