"""The words of a prediction name the sizes, dimensions and dtypes that torch's result has."""

from __future__ import annotations

import pytest
import torch

from engine.operations.explain import read
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
torch.polar(x, x)
    copy: new numbers need memory of their own.
    float32 gives complex64.
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
i.logsumexp(0)
    copy: 2 elements are reduced to each element of the result, along dim 0: a new tensor.
    whole numbers give the default dtype, torch.float32.
x.long().prod()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
    whole numbers and bool add up in int64, so that they do not overflow.
x.long().nansum()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
    whole numbers and bool add up in int64, so that they do not overflow.
c.sum(0)
    copy: 3 elements are reduced to each element of the result, along dim 0: a new tensor.
x.double().sum(0, keepdim=True)
    copy: 3 elements are reduced to each element of the result, along dim 0: a new tensor.
mask.all(0)
    copy: 3 elements are reduced to each element of the result, along dim 0: a new tensor.
    the answer is true or false: bool.
x.argmin(0)
    copy: 3 elements are reduced to each element of the result, along dim 0: a new tensor.
    an index is int64.
x.softmax(-1)
    copy: shares that add up to 1 along dim 1, which stays: new numbers, in C order.
x.softmax(0, dtype=torch.float64)
    copy: shares that add up to 1 along dim 0, which stays: new numbers, in C order.
    torch.float64 was asked for.
x.cummax(0)
    copy: the largest or smallest so far along dim 0, which stays: new numbers, in C order.
x.mode(0)
    copy: 3 elements are reduced to each element of the result, along dim 0: a new tensor.
    mode with the argument dim gives values and their indices.
x.median()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
z.sum()
    copy: 1 element is reduced to each element of the result, along all dimensions: a new tensor.
torch.stack([x, x])
    copy: the new dim 0 counts the tensors; all are copied into new memory.
    float32 stays float32.
torch.stack([x, x], -2)
    copy: the new dim 1 counts the tensors; all are copied into new memory.
    float32 stays float32.
torch.cat([x, x], -1)
    copy: all are written one after the other along dim -1 into new memory.
    float32 stays float32.
torch.cat([x, x.long()])
    copy: all are written one after the other along dim 0 into new memory.
    float32 with int64 gives float32: floating is the higher category.
torch.cat([x, mask], 1)
    copy: all are written one after the other along dim 1 into new memory.
    bool with float32 gives float32: floating is the higher category.
x.topk(1, -2)
    copy: the 1 first along dim 0: a new tensor.
y.outer(y)
    copy: each element of one times each element of the other: a new tensor.
    float32 stays float32.
torch.where(x > 3, 1.0, 2.0)
    copy: new numbers need memory of their own.
    bool becomes float32: floating is the higher category.
torch.where(mask, x.long(), x)
    copy: new numbers need memory of their own.
    float32 with int64 gives float32: floating is the higher category.
x + True
    copy: new numbers need memory of their own.
    float32 stays float32.
mask + True
    copy: new numbers need memory of their own.
    bool stays bool.
mask + 1.5
    copy: new numbers need memory of their own.
    bool becomes float32: floating is the higher category.
i + 1j
    copy: new numbers need memory of their own.
    int64 becomes complex64: complex is the higher category.
c.angle()
    copy: new numbers need memory of their own.
    a magnitude is a real number.
i / i
    copy: new numbers need memory of their own.
    the result is a fraction: whole numbers give the default dtype, torch.float32.
i * 2
    copy: new numbers need memory of their own.
    int64 stays int64.
i.byte() + i
    copy: new numbers need memory of their own.
    int64 with uint8 gives int64, the smallest dtype that holds both.
x.byte() + x.bool()
    copy: new numbers need memory of their own.
    bool with uint8 gives uint8: integer is the higher category.
torch.sigmoid(i)
    copy: new numbers need memory of their own.
    the result is a fraction: whole numbers give the default dtype, torch.float32.
i.sqrt()
    copy: new numbers need memory of their own.
    the result is a fraction: whole numbers give the default dtype, torch.float32.
x.bfloat16() + 1
    copy: new numbers need memory of their own.
    bfloat16 stays bfloat16.
x.half() + x
    copy: new numbers need memory of their own.
    float16 with float32 gives float32, the smallest dtype that holds both.
x.half() + z
    copy: new numbers need memory of their own.
    () is stretched to (3, 4).
    float16 with float32 gives float16.
x.long() + z.double()
    copy: new numbers need memory of their own.
    () is stretched to (3, 4).
    float64 with int64 gives float64.
z + x.double()
    copy: new numbers need memory of their own.
    () is stretched to (3, 4).
    float32 with float64 gives float64.
images + 1
    copy: new numbers need memory of their own.
    float32 stays float32.
    the order of the operands' memory is kept: stride (60, 1, 15, 3).
images[0] + images
    copy: new numbers need memory of their own.
    (3, 4, 5) is stretched to (2, 3, 4, 5).
    float32 stays float32.
    the order of the operands' memory is kept: stride (60, 1, 15, 3).
x.repeat(2, 1)
    copy: repeat writes every repetition out (expand would not copy).
x.masked_fill(mask, 0)
    copy: a copy in C order, then filled where the mask is True.
x.masked_select(mask)
    copy: the elements under True, one after the other.
x.gather(0, i)
    copy: element by element, the index says which to fetch: its shape is the result's.
x.take(i)
    copy: x is read as a flat list, in C order.
x.scatter(0, i, 1.0)
    copy: a copy in C order, then written where the index says.
torch.nn.functional.embedding(i[0], x)
    copy: each index is replaced by a copy of its row of the weight: a new tensor.
x.T.clone()
    copy: clone always copies, and keeps the strides of a dense tensor.
x.unsqueeze(0)
    view: a dimension of size 1 needs no cell: its stride is never used.
x.expand(2, 3, 4)
    view: a stretched dimension has stride 0: all its elements read the same cell, nothing is
        copied.
x[:1].squeeze()
    view: a dimension of size 1 never uses its stride: it can be removed.
x[:1].squeeze(1)
    view: none of these dimensions has size 1, so none is removed: a view of the same shape.
x.narrow(0, 1, 2)
    view: the same cells from a later start on.
x.select(0, 1)
    view: one index is fixed: its dimension disappears, the offset changes.
x.unbind()
    view: each part fixes one index: all are views.
x.split(2)
    view: each piece reads its own cells of the same storage: all are views.
x.split([1, 2])
    view: each piece reads its own cells of the same storage: all are views.
x.diagonal()
    view: one step leads along all the dimensions at once: their strides add up.
x.as_strided((2, 2), (1, 1))
    view: the cells are read with exactly these sizes and strides, whatever the tensor's own shape.
x.detach()
    view: the same storage, without a graph: writing to one is seen in the other.
x.data
    view: the same storage, without a graph: writing to one is seen in the other.
x.real
    same: the numbers are real already: the tensor itself.
c.real
    view: a complex number is two real ones side by side: every second one is read.
x.mH
    view: only shape and strides are permuted; no element moves in memory. Real numbers are
        their own conjugates.
c.mH
    view: only shape and strides are permuted; no element moves in memory. a mark on the tensor
        says that imaginary parts are read with the other sign: no number is written.
c.conj().resolve_conj()
    copy: new numbers need memory of their own.
    complex64 stays complex64.
x.movedim(0, 1)
    view: only shape and strides are permuted; no element moves in memory.
y.unfold(0, 2, 2)
    view: windows are a second stride over the same cells.
y.unfold(0, 2, 3)
    view: windows are a second stride over the same cells.
x.chunk(3)
    view: pieces of 1 (the size divided by 3, rounded up), all of them views.
x.chunk(5)
    view: pieces of 1 (the size divided by 5, rounded up), all of them views.
x[:0].chunk(2)
    view: pieces of 0 (the size divided by 2, rounded up), all of them views.
images.flatten(2)
    view: flatten() returns a view, because strides describe the new shape.
    Dim 0: 2 elements with stride 60.
    Dim 1: 3 elements with stride 1.
    Dims 0 and 1 cannot merge: dim 0 has stride 60, merging needs 3.
    Dims 2 to 3: 20 elements with stride 3.
    Dims 1 and 2 cannot merge: dim 1 has stride 1, merging needs 60.
    Each dimension of the new shape lies within dimensions that merge: strides (60, 1, 3).
images.flatten(1)
    copy: flatten() has to copy: no strides describe shape (2, 60) in this order.
    Dim 0: 2 elements with stride 60.
    Dim 1: 3 elements with stride 1.
    Dims 0 and 1 cannot merge: dim 0 has stride 60, merging needs 3.
    Dims 2 to 3: 20 elements with stride 3.
    Dims 1 and 2 cannot merge: dim 1 has stride 1, merging needs 60.
    A dimension of the new shape (2, 60) spans dimensions that cannot merge.
x.reshape(12)
    view: reshape() returns a view, because strides describe the new shape.
    Dims 0 to 1: 12 elements with stride 1.
    Each dimension of the new shape lies within dimensions that merge: strides (1,).
x.view(12)
    view: view() never copies: new strides read the same cells in the same order.
    Dims 0 to 1: 12 elements with stride 1.
    Each dimension of the new shape lies within dimensions that merge: strides (1,).
x.T.view(4, 3)
    view: view() never copies: new strides read the same cells in the same order.
    Dim 0: 4 elements with stride 1.
    Dim 1: 3 elements with stride 4.
    Dims 0 and 1 cannot merge: dim 0 has stride 1, merging needs 12.
    Each dimension of the new shape lies within dimensions that merge: strides (1, 4).
x[:, ::2].reshape(-1)
    view: reshape() returns a view, because strides describe the new shape.
    Dims 0 to 1: 6 elements with stride 2.
    Each dimension of the new shape lies within dimensions that merge: strides (2,).
x[:, ::2].view(3, 2, 1)
    view: view() never copies: new strides read the same cells in the same order.
    Dims 0 to 1: 6 elements with stride 2.
    Each dimension of the new shape lies within dimensions that merge: strides (4, 2, 2).
z.view(1)
    view: view() never copies: new strides read the same cells in the same order.
    Each dimension of the new shape lies within dimensions that merge: strides (1,).
z.reshape(1, 1)
    view: reshape() returns a view, because strides describe the new shape.
    Each dimension of the new shape lies within dimensions that merge: strides (1, 1).
z.flatten()
    view: flatten() returns a view, because strides describe the new shape.
    Each dimension of the new shape lies within dimensions that merge: strides (1,).
x.unflatten(1, (2, 2))
    view: unflatten() never copies: new strides read the same cells in the same order.
    Dims 0 to 1: 12 elements with stride 1.
    Each dimension of the new shape lies within dimensions that merge: strides (4, 2, 1).
x.view(torch.uint8)
    view: the same bytes: each element is read as 4 of torch.uint8.
    the last size, the other strides and the offset are multiplied by 4
x.double().view(torch.float16)
    view: the same bytes: each element is read as 4 of torch.float16.
    the last size, the other strides and the offset are multiplied by 4
c.view(torch.float32)
    view: the same bytes: each element is read as 2 of torch.float32.
    the last size, the other strides and the offset are multiplied by 2
x[i]
    copy: a mask or an index tensor may pick any cells in any order: no strides describe that.
    an index tensor of shape (2, 2) in place of dim 0
x[i, i]
    copy: a mask or an index tensor may pick any cells in any order: no strides describe that.
    an index tensor of shape (2, 2) in place of dim 0
    an index tensor of shape (2, 2) in place of dim 1
x[None]
    view: whole numbers, slices, None and ... only move strides and offset.
    None: a new dimension, dim 0, of size 1
x[True]
    copy: a mask or an index tensor may pick any cells in any order: no strides describe that.
    True: a mask without dimensions; its one place is kept: everything is picked
x[False]
    copy: a mask or an index tensor may pick any cells in any order: no strides describe that.
    False: a mask without dimensions; its one place is not kept: nothing is picked
x[..., None]
    view: whole numbers, slices, None and ... only move strides and offset.
    None: a new dimension, dim 2, of size 1
x[1]
    view: whole numbers, slices, None and ... only move strides and offset.
    1: offset + 1·4
x[-1]
    view: whole numbers, slices, None and ... only move strides and offset.
    -1: offset + 2·4
x[-2:, 1:3]
    view: whole numbers, slices, None and ... only move strides and offset.
    -2:: offset + 1·4, stride 4·1
    1:3: offset + 1·1, stride 1·1
x[:, -1]
    view: whole numbers, slices, None and ... only move strides and offset.
    -1: offset + 3·1
x[::2]
    view: whole numbers, slices, None and ... only move strides and offset.
    ::2: offset + 0·4, stride 4·2
x[0, ::3]
    view: whole numbers, slices, None and ... only move strides and offset.
    0: offset + 0·4
    ::3: offset + 0·1, stride 1·3
images[..., 1:3]
    view: whole numbers, slices, None and ... only move strides and offset.
    1:3: offset + 1·3, stride 3·1
images[0, None, :, 2:]
    view: whole numbers, slices, None and ... only move strides and offset.
    0: offset + 0·60
    None: a new dimension, dim 0, of size 1
    2:: offset + 2·15, stride 15·1
x[mask[:, 0]]
    copy: a mask or an index tensor may pick any cells in any order: no strides describe that.
    a mask of shape (3,): 1 of 3 are True
x[:, mask[0]]
    copy: a mask or an index tensor may pick any cells in any order: no strides describe that.
    a mask of shape (4,): 2 of 4 are True
x[torch.tensor(1)]
    view: whole numbers, slices, None and ... only move strides and offset.
    1: offset + 1·4
x[[0, 2]]
    copy: a mask or an index tensor may pick any cells in any order: no strides describe that.
    an index tensor of shape (2,) in place of dim 0
x[[0, 2], 1]
    copy: a mask or an index tensor may pick any cells in any order: no strides describe that.
    an index tensor of shape (2,) in place of dim 0
    1: offset + 1·1
x.expand(2, 3, 4).contiguous()
    copy: dim 0 has stride 0 where C order has 12: 96 bytes are copied.
images.contiguous()
    copy: dim 3 has stride 3 where C order has 1: 480 bytes are copied.
images.mT.contiguous()
    copy: dim 3 has stride 15 where C order has 1: 480 bytes are copied.
x[:, :2].contiguous()
    copy: dim 0 has stride 4 where C order has 2: 24 bytes are copied.
x.T.T.contiguous()
    same: it is contiguous already: the tensor itself, nothing is copied.
x.unsqueeze_(0)
    in place: a dimension of size 1 needs no cell: its stride is never used.
x.transpose_(0, 1)
    in place: only shape and strides are permuted; no element moves in memory.
y.zero_()
    in place: the cells are overwritten: every tensor with this storage sees it, and its
        version increases by one.
x.add_(1)
    in place: the cells are overwritten: every tensor with this storage sees it, and its
        version increases by one.
x[0] += 1
    in place: (4,) cells of it are overwritten.
    0: offset + 0·4
x[mask] = 0
    in place: (4,) cells of it are overwritten.
    a mask of shape (3, 4): 4 of 12 are True
x[1:, ::2] = 5
    in place: (2, 2) cells of it are overwritten.
    1:: offset + 1·4, stride 4·1
    ::2: offset + 0·1, stride 1·2
x[i] = 1
    in place: (2, 2, 4) cells of it are overwritten.
    an index tensor of shape (2, 2) in place of dim 0
x[None, 0] = 1
    in place: (1, 4) cells of it are overwritten.
    None: a new dimension, dim 0, of size 1
    0: offset + 0·4
x[..., 0] = y[:3]
    in place: (3,) cells of it are overwritten.
    0: offset + 0·1
torch.addmv(y[:3], x, y)
    copy: every element is a new number, a sum of products: a new tensor.
    4 products are added up for each of 3 elements.
torch.baddbmm(torch.zeros(2, 3, 5), images[0, :2, :3].mT[:, :3, :3], images[0, :2, :3])
    copy: every element is a new number, a sum of products: a new tensor.
    3 products are added up for each of 30 elements.
torch.bmm(images[0], images[0].mT)
    copy: every element is a new number, a sum of products: a new tensor.
    5 products are added up for each of 48 elements.
x.mv(y)
    copy: every element is a new number, a sum of products: a new tensor.
    4 products are added up for each of 3 elements.
torch.vdot(y, y)
    copy: every element is a new number, a sum of products: a new tensor.
    4 products are added up for each of 1 elements.
torch.nn.functional.linear(x, x, y[:3])
    copy: every element is a new number, a sum of products: a new tensor.
    4 products are added up for each of 9 elements.
    linear is input @ weight.mT + bias.
torch.nn.functional.linear(y, x)
    copy: every element is a new number, a sum of products: a new tensor.
    4 products are added up for each of 3 elements.
    linear is input @ weight.mT + bias.
images @ images[0, 0].T
    copy: every element is a new number, a sum of products: a new tensor.
    5 products are added up for each of 96 elements.
    the dimensions in front are a batch of matrices, (2, 3), and broadcast.
torch.einsum('ij,ij->', x, x)
    copy: products are added up over the letters that the result leaves out: a new tensor.
    written out: ij,ij->
torch.einsum('ii->i', i)
    view: nothing is added up: only the dimensions are named in another order.
    written out: ii->i
x.std(1)
    copy: 4 elements are reduced to each element of the result, along dim 1: a new tensor.
x.var()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
x.norm()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
x.norm(dim=(0, 1))
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
x.norm(2, (0,))
    copy: 3 elements are reduced to each element of the result, along dim 0: a new tensor.
x.amax((0,))
    copy: 3 elements are reduced to each element of the result, along dim 0: a new tensor.
x.amax(())
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
x.any(1)
    copy: 4 elements are reduced to each element of the result, along dim 1: a new tensor.
    the answer is true or false: bool.
x.prod(1)
    copy: 4 elements are reduced to each element of the result, along dim 1: a new tensor.
x.max()
    copy: 12 elements are reduced to each element of the result, along all dimensions: a new tensor.
x.min(1)
    copy: 4 elements are reduced to each element of the result, along dim 1: a new tensor.
    min with the argument dim gives values and their indices.
x.max(x)
    copy: new numbers need memory of their own.
    float32 stays float32.
x.max(1, True)
    copy: 4 elements are reduced to each element of the result, along dim 1: a new tensor.
    max with the argument dim gives values and their indices.
torch.einsum(x, [0, 1], [1, 0])
    view: nothing is added up: only the dimensions are named in another order.
torch.einsum(' ', z)
    view: nothing is added up: only the dimensions are named in another order.
torch.einsum('ij,jk', x, x.T)
    copy: products are added up over the letters that the result leaves out: a new tensor.
    written out: ij,jk->ik
torch.einsum('...i->...', x)
    copy: products are added up over the letters that the result leaves out: a new tensor.
    written out: Ai->A
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


REFUSED = """
x.take(i + 11)
    index 13, the index's element (0, 1), is out of range: dim 0 has 12 elements.
    Choose from -12 to 11.
x.take(-i - 11)
    index -13, the index's element (0, 1), is out of range: dim 0 has 12 elements.
    Choose from -12 to 11.
x.take_along_dim(i + 11)
    index 13, the index's element (0, 1), is out of range: dim 0 has 12 elements.
    Choose from 0 to 11.
x.take_along_dim(-i)
    index -2, the index's element (0, 1), is out of range: dim 0 has 12 elements.
    Choose from 0 to 11. Negative indices do not count from the end here.
x.index_select(0, i[0] + 2)
    index 4, the index's element 1, is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
x.index_select(1, i[0] + 2)
    index 4, the index's element 1, is out of range: dim 1 has 4 elements.
    Choose from 0 to 3.
x.index_select(-1, i[0] + 3)
    index 5, the index's element 1, is out of range: dim 1 has 4 elements.
    Choose from 0 to 3.
x.index_add(0, i[0] + 2, x[:2])
    index 4, the index's element 1, is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
x.index_copy(0, i[0] + 2, x[:2])
    index 4, the index's element 1, is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
x.index_fill(0, i[0] + 2, 0)
    index 4, the index's element 1, is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
x.index_fill_(0, i[0] + 2, 0)
    index 4, the index's element 1, is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
x.scatter(0, i + 2, 1.0)
    index 4, the index's element (0, 1), is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
x.scatter_(0, i + 2, 1.0)
    index 4, the index's element (0, 1), is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
x.scatter_add(0, i + 2, x)
    index 4, the index's element (0, 1), is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
x.gather(1, i + 3)
    index 5, the index's element (0, 1), is out of range: dim 1 has 4 elements.
    Choose from 0 to 3.
x.gather(-2, i + 2)
    index 4, the index's element (0, 1), is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
z.gather(0, torch.tensor([1]))
    index 1, the index's element 0, is out of range: dim 0 has 1 elements.
    Choose from 0 to 0.
torch.nn.functional.embedding(i + 2, x)
    index 4, the index's element (0, 1), is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
torch.nn.functional.embedding(-i, x)
    index -2, the index's element (0, 1), is out of range: dim 0 has 3 elements.
    Choose from 0 to 2. Negative indices do not count from the end here.
x[i + 2]
    index 4, the index's element (0, 1), is out of range: dim 0 has 3 elements.
    Choose from -3 to 2.
x[:, i + 3]
    index 5, the index's element (0, 1), is out of range: dim 1 has 4 elements.
    Choose from -4 to 3.
x[i, i + 3]
    index 5, the index's element (0, 1), is out of range: dim 1 has 4 elements.
    Choose from -4 to 3.
x[:0][i]
    index 0, the index's element (0, 0), is out of range: dim 0 has 0 elements.
    This dimension is empty.
x[..., i + 3]
    index 5, the index's element (0, 1), is out of range: dim 1 has 4 elements.
    Choose from -4 to 3.
x[torch.tensor(3)]
    Dim 0 has 3 elements, numbered 0 to 2; 3 is not one of them.
    Choose one from 0 to 2.
x[3]
    Dim 0 has 3 elements, numbered 0 to 2; 3 is not one of them.
    Choose one from 0 to 2.
x.index_select(0, torch.tensor(3))
    index 3 is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
x.index_select(dim=0, index=torch.tensor([3]))
    index 3, the index's element 0, is out of range: dim 0 has 3 elements.
    Choose from 0 to 2.
torch.gather(x, 1, i + 3)
    index 5, the index's element (0, 1), is out of range: dim 1 has 4 elements.
    Choose from 0 to 3.
torch.gather(x, dim=1, index=i + 3)
    index 5, the index's element (0, 1), is out of range: dim 1 has 4 elements.
    Choose from 0 to 3.
torch.take(x, i + 11)
    index 13, the index's element (0, 1), is out of range: dim 0 has 12 elements.
    Choose from -12 to 11.
y[[4]]
    index 4, the index's element 0, is out of range: dim 0 has 4 elements.
    Choose from -4 to 3.
x[[0, 1], [0, 4]]
    index 4, the index's element 1, is out of range: dim 1 has 4 elements.
    Choose from -4 to 3.
x[-4:9, [4]]
    index 4, the index's element 0, is out of range: dim 1 has 4 elements.
    Choose from -4 to 3.
x[mask[:, :3]]
    A mask has the shape of what it covers: (3, 3) and (3, 4) differ at dim 1.
    A mask has one truth value for each element it covers.
x[mask[:2]]
    A mask has the shape of what it covers: (2, 4) and (3, 4) differ at dim 0.
    A mask has one truth value for each element it covers.
x[:, mask]
    The tensor has 2 dimensions, and more indices were given: at most 2 indices fit.
    Leave some out, or add a dimension with None.
z @ x
    @ takes no tensors without dimensions: these have 0 and 2.
    * multiplies by a number.
x @ z
    @ takes no tensors without dimensions: these have 2 and 0.
    * multiplies by a number.
z @ z
    @ takes no tensors without dimensions: these have 0 and 0.
    * multiplies by a number.
x.mm(y)
    Each of these products is for tensors of its own number of dimensions: mm for two matrices,
        mv for a matrix and a vector, dot for two vectors, bmm for two batches.
    matmul (@) takes any number of dimensions.
y.mm(x)
    Each of these products is for tensors of its own number of dimensions: mm for two matrices,
        mv for a matrix and a vector, dot for two vectors, bmm for two batches.
    matmul (@) takes any number of dimensions.
x.bmm(x)
    Each of these products is for tensors of its own number of dimensions: mm for two matrices,
        mv for a matrix and a vector, dot for two vectors, bmm for two batches.
    matmul (@) takes any number of dimensions.
images[0].bmm(x)
    Each of these products is for tensors of its own number of dimensions: mm for two matrices,
        mv for a matrix and a vector, dot for two vectors, bmm for two batches.
    matmul (@) takes any number of dimensions.
images[0].bmm(images[0])
    (3, 4, 5) and (3, 4, 5) do not fit: the first has 5 elements along its last dimension, the
        second 4 along its second to last, and a product pairs them.
    Transpose the second: its .mT would fit.
images[0].bmm(images[0, :2].mT)
    bmm multiplies matrix by matrix along the first dimension, and wants (3, 5, ...) from the
        second operand.
    Transpose it (.mT), or use matmul, which broadcasts batches.
x.mv(x)
    Each of these products is for tensors of its own number of dimensions: mm for two matrices,
        mv for a matrix and a vector, dot for two vectors, bmm for two batches.
    matmul (@) takes any number of dimensions.
y.mv(y)
    Each of these products is for tensors of its own number of dimensions: mm for two matrices,
        mv for a matrix and a vector, dot for two vectors, bmm for two batches.
    matmul (@) takes any number of dimensions.
x.mv(y[:3])
    (3, 4) and (3,) do not fit: the first has 4 elements along its last dimension, the second 3
        along its only one, and a product pairs them.
    Transpose the first: its .mT would fit.
x.T.mv(y)
    (4, 3) and (4,) do not fit: the first has 3 elements along its last dimension, the second 4
        along its only one, and a product pairs them.
    Transpose the first: its .mT would fit.
y[:3] @ y
    (3,) and (4,) do not fit: the first has 3 elements along its last dimension, the second 4
        along its only one, and a product pairs them.
    Make these two sizes equal.
y @ x
    (4,) and (3, 4) do not fit: the first has 4 elements along its last dimension, the second 3
        along its second to last, and a product pairs them.
    Transpose the second: its .mT would fit.
torch.nn.functional.linear(x, x[:, :3])
    (3, 4) and (3, 3) do not fit: the first has 4 elements along its last dimension, the second
        3 along its second to last, and a product pairs them.
    Transpose the first: its .mT would fit.
torch.nn.functional.linear(y, y[:3])
    (4,) and (3,) do not fit: the first has 4 elements along its last dimension, the second 3
        along its only one, and a product pairs them.
    Make these two sizes equal.
torch.nn.functional.linear(y[:3], x)
    (3,) and (4, 3) do not fit: the first has 3 elements along its last dimension, the second 4
        along its second to last, and a product pairs them.
    Transpose the second: its .mT would fit.
torch.nn.functional.linear(x.T, x)
    (4, 3) and (4, 3) do not fit: the first has 3 elements along its last dimension, the second
        4 along its second to last, and a product pairs them.
    Transpose the second: its .mT would fit.
images @ x
    (2, 3, 4, 5) and (3, 4) do not fit: the first has 5 elements along its last dimension, the
        second 3 along its second to last, and a product pairs them.
    Make these two sizes equal.
x[:2] @ x
    (2, 4) and (3, 4) do not fit: the first has 4 elements along its last dimension, the second
        3 along its second to last, and a product pairs them.
    Transpose the second: its .mT would fit.
x.T @ x.T
    (4, 3) and (4, 3) do not fit: the first has 3 elements along its last dimension, the second
        4 along its second to last, and a product pairs them.
    Transpose the second: its .mT would fit.
x @ 2
    Products are of tensors.
    * takes numbers.
2 @ x
    Products are of tensors.
    * takes numbers.
x.mm(2)
    mm takes no such arguments.
    Check their number, order and kinds.
y.dot(x)
    Each of these products is for tensors of its own number of dimensions: mm for two matrices,
        mv for a matrix and a vector, dot for two vectors, bmm for two batches.
    matmul (@) takes any number of dimensions.
y.dot(y[:3])
    dot multiplies two vectors of one size; these have 4 and 3.
    Bring both to one size.
torch.addmm(x, x, x)
    A product of matrices needs equal inner sizes: (3, 4) @ (3, 4) has 4 and 3.
    Transpose one of them (.mT), or check which dimension holds the features.
"""
"""A line, then indented what is wrong, and what to try."""


@pytest.mark.parametrize(("line", "told"), paragraphs(REFUSED).items(), ids=paragraphs(REFUSED))
def test_what_is_refused_is_told_with_what_would_fit(line: str, told: list[str]) -> None:
    with pytest.raises((IndexError, RuntimeError, TypeError)):
        eval(line, variables())
    refusal = read(line, variables())[-1].refusal
    assert refusal is not None and [str(refusal), refusal.hint] == told


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
