"""The words of a prediction name the sizes, dimensions and dtypes that torch's result has."""

from __future__ import annotations

import pytest
import torch

from engine.tensors.explain import read
from tests.engine.tensors.paragraphs import paragraphs


def variables() -> dict[str, object]:
    return {
        "torch": torch,
        "x": torch.arange(12.0).reshape(3, 4),
        "y": torch.ones(4),
        "z": torch.tensor(1.0),
        "c": torch.arange(6).reshape(3, 2).to(torch.complex64),
        "i": torch.tensor([[0, 2], [1, 1]]),
        "w": torch.ones(3, 4, requires_grad=True),
        "mask": torch.arange(12).reshape(3, 4) % 3 == 0,
        "images": torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }


TOLD = """
x.clone()
    copy: clone always copies, and keeps the strides of a dense tensor.
x.expand(2, 3, 4).clone()
    copy: clone always copies, and closes the gaps and overlaps, in the same order of dimensions.
x.clone(memory_format=torch.contiguous_format)
    copy: clone always copies.
x.to(torch.float32)
    same: it is float32 on cpu already: the tensor itself.
images.to(memory_format=torch.channels_last)
    same: it is float32 on cpu, as channels_last, already: the tensor itself.
x.long()
    copy: int64 numbers have other bytes than float32 ones: a copy.
images.to(memory_format=torch.contiguous_format)
    copy: contiguous_format lays the elements out in another order: a copy.
x.to(torch.float32, copy=True)
    copy: a copy was asked for: a copy.
x.to('meta')
    copy: meta has its own memory: a copy.
torch.stack([x, x], dim=-1)
    copy: the new dim 2 counts the tensors; all are copied into new memory.
    float32 stays float32.
torch.cat([x, x.double()], dim=1)
    copy: all are written one after the other along dim 1 into new memory.
    float32 with float64 gives float64, the smallest dtype that holds both.
torch.cat([x[:0], x[:0]])
    copy: there are no elements to join.
    float32 stays float32.
x + y
    copy: new numbers need memory of their own.
    (4,) is stretched to (3, 4).
    float32 stays float32.
x.T + 1
    copy: new numbers need memory of their own.
    float32 stays float32.
    the order of the operands' memory is kept: stride (1, 4).
x[:0].T + 1
    copy: new numbers need memory of their own.
    float32 stays float32.
x.long() + y
    copy: new numbers need memory of their own.
    (4,) is stretched to (3, 4).
    float32 with int64 gives float32: floating is the higher category.
x > 1
    copy: new numbers need memory of their own.
    the answers are true or false: bool.
x.long() / 2
    copy: new numbers need memory of their own.
    the result is a fraction: whole numbers give the default dtype, torch.float32.
x.long() + 1.5
    copy: new numbers need memory of their own.
    int64 becomes float32: floating is the higher category.
x.bool() + 1
    copy: new numbers need memory of their own.
    bool becomes int64: integer is the higher category.
x + 1j
    copy: new numbers need memory of their own.
    float32 becomes complex64: complex is the higher category.
c.abs()
    copy: new numbers need memory of their own.
    a magnitude is a real number.
x.long() + z
    copy: new numbers need memory of their own.
    () is stretched to (3, 4).
    float32 with int64 gives float32.
x.half() + x.bfloat16()
    copy: new numbers need memory of their own.
    bfloat16 with float16 gives float32, the smallest dtype that holds both.
torch.where(x > 3, x, x.double())
    copy: new numbers need memory of their own.
    float32 with float64 gives float64, the smallest dtype that holds both.
mask & mask
    copy: new numbers need memory of their own.
    bool stays bool.
x.sum()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
x.sum((0, -1))
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
x.sum(-1)
    copy: 4 elements are reduced to each element of the result, along dim 1: a new tensor.
z.sum(0)
    copy: 1 element is reduced to each element of the result, along all dimensions: a new tensor.
x.max(0)
    copy: 3 elements are reduced to each element of the result, along dim 0: a new tensor.
    max with the argument dim gives values and their indices.
x.max(y)
    copy: new numbers need memory of their own.
    (4,) is stretched to (3, 4).
    float32 stays float32.
x.argmax()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
    an index is int64.
    without the argument dim, the index counts through the whole tensor, in C order.
x.argmax(1)
    copy: 4 elements are reduced to each element of the result, along dim 1: a new tensor.
    an index is int64.
x.norm(1, dim=0)
    copy: 3 elements are reduced to each element of the result, along dim 0: a new tensor.
x.norm(2, 1)
    copy: 4 elements are reduced to each element of the result, along dim 1: a new tensor.
c.norm()
    copy: 6 elements are reduced to each element of the result, along all dimensions: a new tensor.
    of complex numbers it is a real number.
x.sum(dtype=torch.float64)
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
    torch.float64 was asked for.
x.count_nonzero()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
    a count is int64.
mask.any()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
    the answer is true or false: bool.
x.byte().any()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
    uint8 once was torch's bool: the answer is uint8.
mask.sum(0)
    copy: 3 elements are reduced to each element of the result, along dim 0: a new tensor.
    whole numbers and bool add up in int64, so that they do not overflow.
x.cumsum(-2)
    copy: all so far along dim 0, which stays: new numbers, in C order.
x.cumsum(0)
    copy: all so far along dim 0, which stays: new numbers, in C order.
x.long().cumsum(1)
    copy: all so far along dim 1, which stays: new numbers, in C order.
    whole numbers and bool add up in int64, so that they do not overflow.
z.cumsum(0)
    copy: all so far along dim 0, which stays: new numbers, in C order.
x.sort()
    copy: sorted along dim 1: new numbers, in x's own order in memory.
x.argsort(-2)
    copy: sorted along dim 0: new numbers, in x's own order in memory.
x.topk(2)
    copy: the 2 first along dim 1: a new tensor.
x.topk(2, dim=0)
    copy: the 2 first along dim 0: a new tensor.
x.index_select(-1, i[0])
    copy: whole slices along dim 1 are copied, one per index.
x @ x.T
    copy: every element is a new number, a sum of products: a new tensor.
    4 products are added up for each of 9 elements.
images @ images.mT
    copy: every element is a new number, a sum of products: a new tensor.
    5 products are added up for each of 96 elements.
    the dimensions in front are a batch of matrices, (2, 3), and broadcast.
y @ y
    copy: every element is a new number, a sum of products: a new tensor.
    4 products are added up for each of 1 elements.
torch.addmm(y[:3], x, x.T)
    copy: every element is a new number, a sum of products: a new tensor.
    4 products are added up for each of 9 elements.
torch.nn.functional.linear(images, images[0, 0])
    copy: every element is a new number, a sum of products: a new tensor.
    5 products are added up for each of 96 elements.
    linear is input @ weight.mT + bias.
w @ images.mT[:, :, :4]
    copy: every element is a new number, a sum of products: a new tensor.
    4 products are added up for each of 72 elements.
    the dimensions in front are a batch of matrices, (2, 3), and broadcast.
torch.einsum('ij->ji', x)
    view: nothing is added up: only the dimensions are named in another order.
    written out: ij->ji
torch.einsum('ij,j', x, y)
    copy: products are added up over the letters that the result leaves out: a new tensor.
    written out: ij,j->i
x.take_along_dim(i)
    copy: without the argument dim, both are read as flat lists.
x.take_along_dim(i[:1], 1)
    copy: gather, with both broadcast along all other dimensions.
    an index i reads i % 4: beyond an end it starts again at the other
x.view(2, 6)
    view: view() never copies: new strides read the same cells in the same order.
    Dims 0 to 1: 12 elements with stride 1.
    Each dimension of the new shape lies within dimensions that merge: strides (6, 1).
x.T.reshape(-1)
    copy: reshape() has to copy: no strides describe shape (12,) in this order.
    Dim 0: 4 elements with stride 1.
    Dim 1: 3 elements with stride 4.
    Dims 0 and 1 cannot merge: dim 0 has stride 1, merging needs 12.
    A dimension of the new shape (12,) spans dimensions that cannot merge.
images.reshape(2, 60)
    copy: reshape() has to copy: no strides describe shape (2, 60) in this order.
    Dim 0: 2 elements with stride 60.
    Dim 1: 3 elements with stride 1.
    Dims 0 and 1 cannot merge: dim 0 has stride 60, merging needs 3.
    Dims 2 to 3: 20 elements with stride 3.
    Dims 1 and 2 cannot merge: dim 1 has stride 1, merging needs 60.
    A dimension of the new shape (2, 60) spans dimensions that cannot merge.
x[:0].reshape(4, 0)
    view: reshape() returns a view, because strides describe the new shape.
    A tensor without elements reads no cell: any shape without elements fits.
x.flatten(1)
    same: a tensor of one dimension has nothing to merge: the tensor itself.
x.ravel()
    view: it is contiguous: all its cells are read as one dimension.
x.T.ravel()
    copy: ravel copies unless the tensor is contiguous.
x.view(torch.float32)
    view: the elements are torch.float32 already.
x.view(torch.int32)
    view: the same bytes, read as torch.int32.
x.view(torch.int16)
    view: the same bytes: each element is read as 2 of torch.int16.
    the last size, the other strides and the offset are multiplied by 2
x.view(torch.float64)
    view: the same bytes: 2 elements side by side are read as one of torch.float64.
    the last size, the other strides and the offset are divided by 2
x.squeeze()
    view: none of these dimensions has size 1, so none is removed: a view of the same shape.
x[:1].squeeze(0)
    view: a dimension of size 1 never uses its stride: it can be removed.
c.H
    view: only shape and strides are permuted; no element moves in memory. a mark on the tensor
        says that imaginary parts are read with the other sign: no number is written.
x.H
    view: only shape and strides are permuted; no element moves in memory. Real numbers are
        their own conjugates.
c.conj()
    view: a mark on the tensor says that imaginary parts are read with the other sign: no number
        is written.
x.conj()
    same: real numbers are their own conjugates: the tensor itself.
x.T
    view: only shape and strides are permuted; no element moves in memory.
y.T
    view: only shape and strides are permuted; no element moves in memory.
    torch warns here: The use of `x.T` on tensors of dimension other than 2 to reverse their
        shape is deprecated and it will throw an error in a future release. Consider `x.mT` to
        transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to
        reverse the dimensions of a tensor.
c.imag
    view: a complex number is two real ones side by side: every second one is read.
x.real
    same: the numbers are real already: the tensor itself.
x.unfold(0, 2, 1)
    view: windows are a second stride over the same cells: they overlap.
x.unfold(0, 1, 1)
    view: windows are a second stride over the same cells.
x.chunk(2)
    view: pieces of 2 (the size divided by 2, rounded up), all of them views.
x.chunk(3, dim=1)
    view: pieces of 2 (the size divided by 3, rounded up), all of them views.
x[1:, ::2]
    view: whole numbers, slices, None and ... only move strides and offset.
    1:: offset + 1·4, stride 4·1
    ::2: offset + 0·1, stride 1·2
x[1, None, ..., 2]
    view: whole numbers, slices, None and ... only move strides and offset.
    1: offset + 1·4
    None: a new dimension, dim 0, of size 1
    2: offset + 2·1
x[..., 2]
    view: whole numbers, slices, None and ... only move strides and offset.
    2: offset + 2·1
x[mask]
    copy: a mask or an index tensor may pick any cells in any order: no strides describe that.
    a mask of shape (3, 4): 4 of 12 are True
x[:, i]
    copy: a mask or an index tensor may pick any cells in any order: no strides describe that.
    an index tensor of shape (2, 2) in place of dim 1
x.contiguous()
    same: it is contiguous already: the tensor itself, nothing is copied.
x.T.contiguous()
    copy: dim 1 has stride 4 where C order has 1: 48 bytes are copied.
images.contiguous(memory_format=torch.channels_last)
    same: it lies as channels_last already: the tensor itself, nothing is copied.
images.mT.contiguous(memory_format=torch.channels_last)
    copy: dim 3 has stride 15 where channels_last has 3: 480 bytes are copied.
x[False] = 5
    in place: False picks nothing: nothing is written.
x[0] = 1
    in place: (4,) cells of it are overwritten.
    0: offset + 0·4
x[0, 0] = 1
    in place: one cells of it are overwritten.
    0: offset + 0·4
    0: offset + 0·1
x.t_()
    in place: only shape and strides are permuted; no element moves in memory.
x.zero_()
    in place: the cells are overwritten: every tensor with this storage sees it, and its version
        increases by one.
x.requires_grad_()
    in place: only requires_grad changes: operations on it are recorded from now on.
"""
"""A line, then indented its kind and why, then the rule step by step."""


@pytest.mark.parametrize(("line", "told"), paragraphs(TOLD).items(), ids=paragraphs(TOLD))
def test_an_outcome_is_told_with_its_numbers(line: str, told: list[str]) -> None:
    outcome = read(line, variables())[-1].outcome
    assert outcome is not None
    assert [f"{outcome.kind}: {outcome.why}", *outcome.reasoning] == told


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("x @ x", "Transpose the second: its .mT would fit."),
        ("x @ x[:2]", "Transpose the second: its .mT would fit."),
        ("torch.nn.functional.linear(x, x.T)", "Transpose the second: its .mT would fit."),
        ("x.mv(y[:3])", "Transpose the first: its .mT would fit."),
        ("images @ x", "Make these two sizes equal."),
        ("x.mm(y)", "matmul (@) takes any number of dimensions."),
        ("x[[0, -5]]", "Choose from -3 to 2."),
        ("x[:0][[0]]", "This dimension is empty."),
        ("x[0].gather(0, i[0] + 3)", "Choose from 0 to 3."),
        ("x.gather(0, -i)", "Choose from 0 to 2. Negative indices do not count from the end here."),
    ],
)
def test_a_refusal_says_what_would_fit(line: str, hint: str) -> None:
    refusal = read(line, variables())[-1].refusal
    assert refusal is not None and refusal.hint == hint


def test_a_refused_view_names_the_breaks_in_memory() -> None:
    (_, step) = read("x.T.view(2, -1)", variables())
    assert step.refusal is not None
    assert str(step.refusal) == (
        "view() cannot copy, and no strides describe shape (2, 6) in this order."
    )
    assert step.refusal.reasoning == (
        "Dim 0: 4 elements with stride 1.",
        "Dim 1: 3 elements with stride 4.",
        "Dims 0 and 1 cannot merge: dim 0 has stride 1, merging needs 12.",
        "A dimension of the new shape (2, 6) spans dimensions that cannot merge.",
    )


def test_a_view_of_a_large_tensor_is_refused_in_the_same_words() -> None:
    said = str(read("large.T.view(-1)", {"large": torch.zeros(1 << 10, 1 << 10)})[-1].refusal)
    assert said == ("view() cannot copy, and no strides describe shape (1048576,) in this order.")


def test_a_refused_product_names_the_sizes_that_meet() -> None:
    said = str(read("x @ x", variables())[-1].refusal)
    assert said == (
        "(3, 4) and (3, 4) do not fit: the first has 4 elements along its last dimension, the"
        " second 3 along its second to last, and a product pairs them."
    )
    assert "second 3 along its only one, and" in str(read("x @ y[:3]", variables())[-1].refusal)
    batches = str(read("images @ images", variables())[-1].refusal)
    assert "has 5 elements along its last dimension, the second 4 along its second to" in batches
