"""Products: rows times columns, added up, into a new tensor. Products promote no dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from .layout import Ints, Layout
from .pointwise_rules import broadcast_shape, elementwise
from .promotion import result_dtype
from .reduction_rules import check_known
from .registry import NotCovered, Outcome, Refusal, copy, rule
from .view_rules import reshape

_WHY = "every element is a sum of products, a number that lay nowhere before: a new tensor."


def _operands(*operands: Any) -> None:
    if not all(isinstance(x, Layout) for x in operands):
        raise Refusal("Products are of tensors; * takes numbers.", raises=TypeError)
    check_known(*operands)


def _ask_dims(name: str, wanted: Sequence[int], *operands: Layout) -> None:
    if [x.ndim for x in operands] != list(wanted):
        shapes = " and ".join(str(x.shape) for x in operands)
        dims = " and ".join(f"{n}-D" for n in wanted)
        raise Refusal(
            f"{name} takes {dims} tensors, not the shapes {shapes}.",
            "matmul (@) takes any number of dimensions.",
            raises=IndexError if name == "mv" and not operands[0].ndim else RuntimeError,
        )


def _meet(a: Layout, b: Layout) -> int:
    """The size that is summed over: the last of `a`, the last but one of `b`."""
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        where = "last but one" if b.ndim > 1 else "only"
        hint = "Bring one of them to the other's size."
        if b.ndim > 1 and a.shape[-1] == b.shape[-1]:
            hint = "The second one's mT would fit."
        elif a.ndim > 1 and a.shape[-2] == inner:
            hint = "The first one's mT would fit."
        raise Refusal(
            f"{a.shape} and {b.shape} do not fit: the first has {a.shape[-1]} elements along its"
            f" last dimension, the second {inner} along its {where} one, and these meet in pairs.",
            hint,
            raises=RuntimeError,
        )
    return inner


def _one_dtype(*operands: Layout) -> None:
    if len({x.dtype for x in operands}) > 1:
        names = " and ".join(str(x.dtype) for x in operands)
        raise Refusal(
            f"The operands hold {names}: products promote no dtypes.",
            "Convert one of them: .to(other.dtype).",
            raises=RuntimeError,
        )


def _product(a: Layout, b: Layout, shape: Ints, inner: int) -> Outcome:
    result = a.fresh(shape)
    if a.dtype == torch.bool and result.numel and inner:
        raise _no_bool()
    told = f"{inner} products are added up for each of {result.numel} elements."
    return replace(copy(result, _WHY, [told]), work=max(result.numel * inner, 1))


def _no_bool() -> Refusal:
    return Refusal(
        "torch multiplies no bool matrices.", "Convert both: .int().", raises=RuntimeError
    )


@rule("mm")
def mm(input: Layout, mat2: Layout) -> Outcome:
    _operands(input, mat2)
    _ask_dims("mm", (2, 2), input, mat2)
    inner = _meet(input, mat2)
    _one_dtype(input, mat2)
    return _product(input, mat2, (input.shape[0], mat2.shape[1]), inner)


@rule("mv")
def mv(input: Layout, vec: Layout) -> Outcome:
    _operands(input, vec)
    _ask_dims("mv", (2, 1), input, vec)
    inner = _meet(input, vec)
    _one_dtype(input, vec)
    return _product(input, vec, input.shape[:1], inner)


@rule("dot", "vdot")
def dot(input: Layout, tensor: Layout) -> Outcome:
    _operands(input, tensor)
    _ask_dims("dot", (1, 1), input, tensor)
    _one_dtype(input, tensor)
    inner = _meet(input, tensor)
    if input.dtype == torch.bool:
        raise _no_bool()
    return _product(input, tensor, (), inner)


@rule("bmm")
def bmm(input: Layout, mat2: Layout) -> Outcome:
    _operands(input, mat2)
    _ask_dims("bmm", (3, 3), input, mat2)
    if input.shape[0] != mat2.shape[0]:
        raise Refusal(
            f"The batches have {input.shape[0]} and {mat2.shape[0]} matrices: bmm stretches none.",
            "matmul (@) stretches a batch of one.",
            raises=RuntimeError,
        )
    inner = _meet(input, mat2)
    shape = (*input.shape[:2], mat2.shape[2])
    _check_batches(input, mat2, shape, inner)
    return _product(input, mat2, shape, inner)


def _check_batches(a: Layout, b: Layout, shape: Ints, inner: int) -> None:
    if a.dtype != b.dtype and (inner == 0 or 0 in shape):
        raise NotCovered("products of different dtypes without elements")
    _one_dtype(a, b)


@rule("matmul")
def matmul(input: Layout, other: Layout) -> Outcome:
    _operands(input, other)
    a, b = input, other
    if not a.ndim or not b.ndim:
        raise Refusal(
            f"@ takes no tensors without dimensions: {a.shape} and {b.shape}.",
            "* multiplies by a number.",
            raises=RuntimeError,
        )
    if b.ndim == 1:
        small = dot if a.ndim == 1 else mv if a.ndim == 2 else None
    else:
        small = mm if a.ndim == b.ndim == 2 else None
    if small is not None:
        return small(a, b)
    inner = _meet(a, b)
    batch = broadcast_shape([a.shape[:-2], b.shape[:-2]])
    shape = (*batch, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ()))
    if max(a.ndim, b.ndim) > 2:
        _check_batches(a, b, shape, inner)
    _one_dtype(a, b)
    done = _product(a, b, shape, inner)
    told = [*done.reasoning]
    if batch:
        told.append(f"the dimensions in front are a batch of matrices, {batch}, and broadcast.")
    stride = _folded_stride(a, b, done.result)
    if stride is not None:
        told.append("because the first requires grad, torch multiplies the transposed matrices.")
        return replace(done, results=(done.result.fresh(stride=stride),), reasoning=tuple(told))
    return replace(done, reasoning=tuple(told))


def _folded_stride(a: Layout, b: Layout, result: Layout) -> Ints | None:
    """Strides of the result where torch computes `(b.mT @ a.mT).mT.contiguous()`: to save memory
    in backward (`should_fold` in LinearAlgebra.cpp), when one matrix that requires grad meets a
    batch. None where they are the usual ones."""
    single = a.ndim == 2 or (a.ndim == b.ndim == 3 and a.shape[0] == 1 and b.shape[0] != 1)
    if b.ndim < 3 or not single or not a.grad:
        return None
    turned = result.fresh((*result.shape[:-2], result.shape[-1], result.shape[-2]))
    stride = (*turned.stride[:-2], turned.stride[-1], turned.stride[-2])
    if stride == result.stride or not result.fresh(stride=stride).is_contiguous:
        return None  # brought into C order
    if a.grad == "derived":
        raise NotCovered("a batch multiplied by a matrix that the same line computes with a graph")
    return stride


@rule("addmm")
def addmm(input: Layout, mat1: Layout, mat2: Layout, *, beta: Any = 1, alpha: Any = 1) -> Outcome:
    _operands(input, mat1, mat2)
    done = mm(mat1, mat2)
    if mat1.dtype == torch.bool and done.result.numel:
        raise NotCovered("addmm of bool")
    _one_dtype(input, mat1)
    _ask_fits(input, done.result.shape)
    return done


@rule("outer", "ger")
def outer(input: Layout, vec2: Layout) -> Outcome:
    _operands(input, vec2)
    _ask_dims("outer", (1, 1), input, vec2)
    dtype, told = result_dtype([input, vec2])
    column = reshape(input, input.numel, 1).result
    done = elementwise([column, vec2], dtype, told, converted=True)
    return replace(done, why="each element of the one times each of the other: a new tensor.")


@rule("linear")
def linear(input: Layout, weight: Layout, bias: Layout | None = None) -> Outcome:
    _operands(input, weight, *(() if bias is None else (bias,)))
    if not input.ndim or weight.ndim != 2:
        raise NotCovered("linear with a weight that is no matrix")
    turned = weight.view(weight.shape[::-1], weight.stride[::-1])
    inner = _meet(input, turned)
    shape = (*input.shape[:-1], weight.shape[0])
    _check_batches(input, weight, shape, inner)
    if bias is not None:
        if bias.dtype != input.dtype and input.ndim != 2:
            raise NotCovered("linear with a bias of another dtype")
        if input.dtype == torch.bool and not inner:
            raise NotCovered("linear of bool")
        _one_dtype(input, bias)
        _ask_fits(bias, shape)
    done = _product(input, turned, shape, inner)
    return replace(done, reasoning=(*done.reasoning, "linear is input @ weight.mT + bias."))


def _ask_fits(x: Layout, shape: Ints) -> None:
    if broadcast_shape([x.shape, shape]) != shape:
        raise Refusal(f"{x.shape} cannot be stretched to {shape}.", raises=RuntimeError)
