"""Torch's real errors, each with the words and the fix that stand under it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from engine.protocol import CellSnapshot, RunCellCommand, Snapshot
from engine.server.session import Session
from engine.tensors.error_help import explain_error


def twice() -> None:
    w = torch.ones(3, requires_grad=True)
    y = (w * w).sum()
    y.backward()
    y.backward()


def overwritten() -> None:
    y = torch.ones(3, requires_grad=True).exp()
    y.add_(1)
    y.sum().backward()


def written_leaf() -> None:
    torch.ones(3, requires_grad=True).add_(1)


def written_view_of_a_leaf() -> None:
    w = torch.ones(3, requires_grad=True)
    w[0:1].add_(1)


def w() -> torch.Tensor:
    return torch.ones((), requires_grad=True)


def no_derivative() -> None:
    torch.special.zeta(w() * 2, torch.ones(())).backward()


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * 3


def differentiated_twice() -> None:
    x = w()
    (grad,) = torch.autograd.grad(Once.apply(x) ** 2, x, create_graph=True)
    grad.backward()


ERRORS = {
    "F.softmax(torch.arange(3), 0)": "no such operation for the dtype Long",
    "torch.arange(3).mean()": "which Long cannot hold",
    "torch.arange(3).std()": ".float()",
    "torch.arange(3).norm()": "which Long cannot hold",
    "x.prod(dim=(0, 1))": "prod reduces one dimension",
    "x.max(dim=(0, 1), keepdim=True)": "max reduces one dimension",
    "x.narrow(0, 5, 1)": "Choose a start from -3 to 3",
    "x.gather(1, torch.zeros(4, 1).long())": "index (4, 1) must not be larger than the tensor",
    "x.masked_select(torch.zeros(3, 4))": "A mask or condition is bool",
    "torch.einsum('ii->i', x)": "has it at dimensions of 4 and 3",
    "x @ x.T.to(torch.float8_e5m2)": "must have one dtype here",
    "x + x.to(torch.float8_e5m2)": "must have one dtype here",
    "nn.Linear(2, 1, device='meta').to('cpu')": "has a shape and no numbers",
    "torch.ones(1, device='meta').item()": "module.to_empty",
    "torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).sum()": "sum is not made for quantised",
    "x.T.view(-1)": "reshape copies",
    "x + torch.ones(3)": "dim 1 of the result one has 4 elements, the other 3",
    "x @ x": "(3, 4) @ (3, 4) has 4 and 3",
    "nn.Linear(3, 2)(x)": "(3, 4) @ (3, 2) has 4 and 3",
    "x @ torch.ones(3)": "differ: 4 and 3",
    "torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 3, 4))": "wants (2, 4, ...)",
    "torch.einsum('ij,jk', x, x)": "letter j stands for one size everywhere, and it is 4",
    "torch.cat([x, x.T])": "one is 4 where the other has 3",
    "torch.stack([x, x.T])": "(3, 4) and (4, 3) differ",
    "x.view(5, -1)": "(5, -1) must multiply to the number of elements, 12",
    "x.reshape(5, 2)": "(5, 2) must multiply to the number of elements, 12",
    "x.expand(3, 8)": "dim 1 has 4 and was asked to become 8",
    "torch.ones(4).add_(x)": "shape (3, 4), but in place it must fit into (4,)",
    "torch.arange(3).add_(0.5)": "Float, which a Long tensor cannot hold",
    "x @ x.T.double()": "float and double",
    "torch.dot(x[0], x[0].double())": "Float and Double",
    "x + torch.ones(4, device='meta')": ".to(other.device)",
    "written_leaf()": "made by you and requires grad",
    "written_view_of_a_leaf()": "a view of a leaf",
    "overwritten()": "overwritten after the forward pass",
    "torch.ones(3, requires_grad=True).numpy()": "x.detach().numpy()",
    "torch.ones(2, device='meta').numpy()": "x.cpu().numpy()",
    "x[5]": "Dim 0 has 3 elements, numbered 0 to 2",
    "x[[7]]": "7 is not one of them",
    "x[-9]": "numbered -3 to -1 from the end; -9 is not one of them. Choose one from -3 to 2.",
    "x.gather(1, torch.tensor([[-1]]))": "A negative index does not count from the end here",
    "x.gather(1, torch.tensor([[9]]))": "Dim 1 has 4 elements",
    "torch.ones(0)[0]": "no elements",
    "x.sum(3)": "choose from -2 to 1",
    "x[0, 0, 0]": "2 dimensions, and more indices",
    "x[torch.ones(2, dtype=torch.bool)]": "(2,) and (3, 4) differ at dim 0",
    "x[x]": ".long()",
    "F.embedding(torch.tensor([4]), x)": "has 3 rows, numbered 0 to 2, and the index holds"
    " 4: choose from these, or give the embedding 5 rows.",
    "nn.Embedding(9, 2)(torch.tensor([1, -1]))": "the index holds -1: choose from these: a neg",
    "torch.embedding(x, torch.tensor([4]))": "num_embeddings - 1",
    "F.cross_entropy(x, torch.ones(3))": "target.long()",
    "twice()": "retain_graph=True",
    "torch.ones(3, requires_grad=True).exp().backward()": "y.sum().backward()",
    "x.sum().backward()": "requires_grad=True",
    "torch.arange(3).requires_grad_()": ".float()",
    "torch.tensor([1], requires_grad=True)": ".float()",
    "x.item()": "sum() or mean()",
    "bool(x)": "(x > 0).any()",
    "torch.ones(1).expand(3).add_(1)": "clone()",
    "differentiated_twice()": "Leave out @once_differentiable",
    "no_derivative()": "no derivative of zeta here",
    "torch.autograd.grad(w() * 2, w())": "allow_unused=True",
    "torch.autograd.grad(w() * 2, torch.ones(()))": "Call requires_grad_()",
    "x.cfloat() < x.cfloat()": "have no order",
    "x & x": "Bits of Float",
    "(x > 0) @ (x > 0).T": "no bool matrices",
    "(x > 0).argmax()": "bool is not taken here",
    "x @ torch.ones(4).double()": "they have Double and Float",
    "x[0].mT": "mT swaps the last two dimensions: the tensor has 1",
    "x[None].H": "H is for matrices: the tensor has 3",
    "x[None].t()": "t() is for matrices: the tensor has 3",
    "x[:, 1:].view(torch.float64)": "the last size, 3, must be divisible by 2",
    "x[:, ::2].view(torch.int16)": "must be 1, and is 2",
    "x[0, 0].view(torch.float64)": "none that could grow or shrink",
    "x.cfloat().conj().view(torch.float32)": "resolve_conj()",
    "x.to(memory_format=torch.channels_last)": "channels_last is for 4 dimensions",
    "x @ x[0, 0]": "these have 2 and 0",
    "x.mm(x[0])": "mm for two matrices",
    "x[0].dot(x[0, :2])": "these have 4 and 2",
    "x @ 2": "* takes numbers",
    "x.sum((0, 0))": "occurs twice",
    "x[:0].max()": "There is nothing to reduce",
    "x[1.0]": "A float is not an index",
    "x.__setitem__([0, 1], x * 1)": "(3, 4) does not fit into the shape (2, 4)",
    "x.view(-1, -1)": "One size may be -1",
    "x.permute(0)": "2 of them, not 1",
    "x.select(0, 9)": "Dim 0 has no element 9",
    "torch.cat([x, x[0]])": "one has 2 dimensions, the other 1",
    "x[0, 0].unbind()": "no dimensions",
    "x.split([1, 1])": "[1, 1] do not add up to the 3",
    "x.unfold(0, 9, 1)": "Windows of 9 do not fit",
    "-(x > 0)": "~x is the opposite",
    "(x > 0) - (x > 0)": "cannot be subtracted",
    "x[::-1]": ".flip(dim)",
    "x.masked_fill(x, 0)": "mask or condition is bool",
    "x[0].fill_(x)": "fill_ takes one number",
    "x.gather(0, x)": "The index must be int64",
    "x.gather(0, torch.tensor([0]))": "as many dimensions as the tensor",
    "x.scatter(0, torch.zeros(1, 1).long(), x.double())": "nothing is converted",
    "x[[0, 1], [0, 1, 2]]": "the shapes [2], [3] do not broadcast",
    "x.prod((0, 1))": "prod takes no such arguments",
    "x.narrow(0, 2, 2)": "2 elements from 2 do not lie within the 3",
    "x.as_strided((20, 2), (1, 1))": "end at byte 84 of a storage of 48",
    "x[0, 1:].add_(x[0, :3])": "read after they were written",
    "x.long() ** -1": "Use floats",
    "torch.cat([x[0, 0], x[0, 0]])": "Use stack",
    "nn.BatchNorm1d(4)(x[:1])": "at least two values per channel",
    "F.cross_entropy(x, torch.tensor([0, 3, 4]))": "4 classes, numbered 0 to 3, and a label is 4",
    "F.cross_entropy(torch.ones(1, 3, 5), torch.full((1, 5), 7))": "numbered 0 to 2, and a label",
    "F.cross_entropy(torch.ones(3), torch.tensor(7))": "numbered 0 to 2, and a label is 7. Give",
    "F.nll_loss(x, torch.tensor([0, 3, -2]))": "numbered 0 to 3, and a label is -2",
    "F.one_hot(torch.tensor([0, 4]), 3)": "num_classes - 1",
    "F.cross_entropy(x, torch.zeros(3, 1).long())": "target.squeeze(1)",
    "F.cross_entropy(x, torch.zeros(4).long())": "The prediction holds 3 samples, the target 4",
    "F.binary_cross_entropy(x[:, :1] / 9, x[:, 0])": "target has shape (3,), the prediction (3, 1)",
    "F.binary_cross_entropy_with_logits(x, x[0])": "target has shape (4,), the prediction (3, 4)",
    "F.binary_cross_entropy(x / 12, torch.ones(3, 4).long())": "different dtypes, Float and Long",
    "F.binary_cross_entropy_with_logits(x, x.long())": "here it is int64. Write target.float().",
    "F.binary_cross_entropy_with_logits(x, x > 0)": "here it is bool. Write target.float().",
    "F.multi_margin_loss(x, torch.tensor([0, 1, 4]))": "a class that the prediction has no score",
    "F.multilabel_margin_loss(x, (x + 3).long())": "a class that the prediction has no score for",
    "F.binary_cross_entropy(x, x / 12)": "with_logits, which applies sigmoid itself",
    "nn.Conv2d(3, 2, 1)(torch.ones(1, 3, 2, 2).double())": "The input is double, the layer's",
    "nn.Conv2d(1, 2, 1)(torch.ones(1, 1, 2, 2).long())": "The input is long int, the layer's",
    "nn.Embedding(5, 2)(torch.tensor([1.0]))": "whole numbers, and these indices are Float",
    "F.cross_entropy(torch.ones(2, 3), torch.ones(2))": "Class labels are whole numbers",
    "nn.Linear(3, 2)(torch.arange(3))": "Both operands must have one dtype here",
    "nn.Linear(3, 2)(torch.ones(2, 3, device='meta'))": "on different devices",
    "nn.LSTM(4, 2)(x.double())": "x.to(layer.weight_ih_l0)",
    "nn.BatchNorm1d(4)(x.double())": "have different dtypes",
}


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
@pytest.mark.parametrize("line", ERRORS)
def test_torchs_error_is_told_in_plain_words(line: str) -> None:
    known = dict(globals(), x=torch.arange(12.0).view(3, 4), nn=nn, F=F)
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as raised:
        eval(line, known)
    told = explain_error(raised.value)
    assert ERRORS[line] in told
    assert str(raised.value) not in told


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        RuntimeError("something new"),
        KeyboardInterrupt(),
        KeyError("shape '[2]'"),
        KeyError(3),
        IndexError(None, "index 7 is out of bounds"),
    ],
)
def test_an_unknown_error_gets_no_guess(error: BaseException) -> None:
    assert explain_error(error) == ""


def test_the_console_tells_it_under_torchs_own_words() -> None:
    received: list[Snapshot] = []
    session = Session(received.append)
    session.handle(RunCellCommand(source="x = torch.ones(3, 4)\nx.T.view(-1)"))
    cell = received[-1]
    assert isinstance(cell, CellSnapshot) and cell.error is not None
    assert "view size is not compatible" in cell.error.message
    assert "reshape copies" in cell.error.hint and cell.error.line == 2


def test_an_assert_on_a_gpu_is_told_with_its_likely_cause() -> None:
    message = "CUDA error: device-side assert triggered\nCUDA kernel errors might be reported late"
    told = explain_error(torch.AcceleratorError(message))
    assert "most often a label that is not one of 0 to C - 1" in told
    assert "an earlier one's" in told and "labels.max()" in told
    other = explain_error(torch.AcceleratorError("CUDA error: an illegal memory access"))
    assert "cannot be used again" in other and "label that is not" not in other


def test_an_lstm_of_float16_on_the_cpu_is_told_what_works() -> None:
    """Some CPUs have it, so the words of those that do not are written here."""
    told = "could not create a primitive descriptor for the LSTM forward propagation primitive."
    assert "Use bfloat16 or float32 on the CPU" in explain_error(RuntimeError(told))


def test_an_index_that_the_table_has_is_no_mistake() -> None:
    class Odd(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is F.embedding:
                raise IndexError("mine")
            return super().__torch_function__(func, types, args, kwargs)

    with pytest.raises(IndexError) as raised:
        F.embedding(torch.tensor([0, 2]), torch.ones(3, 4).as_subclass(Odd))
    assert explain_error(raised.value) == ""
