"""What torch's usual errors mean, in plain words, and what usually helps.

Torch's own message stays whole; this stands under it. Messages are matched by the words torch
2.x uses; one that is not known gets no help rather than a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Help = str | Callable[[re.Match[str]], str]


def explain_error(error: BaseException) -> str:
    """Plain words and the usual fix; empty when the error is not one that is known here."""
    message = error.args[0] if error.args and type(error.args[0]) is str else ""
    for types, pattern, told in _KNOWN:
        match = pattern.search(message) if isinstance(error, types) else None
        if match is not None:
            return told if isinstance(told, str) else told(match)
    return ""


def _not_broadcast(match: re.Match[str]) -> str:
    size_a, size_b, dim = match.groups()
    return (
        f"Shapes are aligned from the right: in dimension {dim} of the result one has {size_a}"
        f" elements, the other {size_b}, and neither is 1. Make them equal, or insert a dimension"
        " of 1 with unsqueeze (keepdim=True keeps one in a reduction)."
    )


def _inner_sizes(match: re.Match[str]) -> str:
    rows, inner, other_inner, columns = match.groups()
    return (
        f"A product of matrices needs equal inner sizes: ({rows}, {inner}) @ ({other_inner},"
        f" {columns}) has {inner} and {other_inner}. Transpose one of them (.mT), or check which"
        " dimension holds the features."
    )


def _vector_sizes(match: re.Match[str]) -> str:
    return (
        f"The inner sizes of this product differ: {match[1]} and {match[2]}. The matrix needs as"
        " many columns as the vector has elements; transpose it (.mT) or check the shapes."
    )


def _batch_sizes(match: re.Match[str]) -> str:
    return (
        f"bmm multiplies matrix by matrix along the first dimension, and wants ({match[1]},"
        f" {match[2]}, ...) from the second operand. Transpose it (.mT), or use matmul, which"
        " broadcasts batches."
    )


def _subscript(match: re.Match[str]) -> str:
    return (
        f"The letter {match[1]} stands for one size everywhere, and it is {match[3]} in one operand"
        f" and {match[2]} in another. Order the letters as the dimensions are, or transpose."
    )


def _cat_sizes(match: re.Match[str]) -> str:
    dim, size_a, size_b = match.groups()
    return (
        f"cat joins along dimension {dim}; all other sizes must be equal, and one is {size_a} where"
        f" the other has {size_b}. Choose another dim=, or bring the shapes in line."
    )


def _stack_shapes(match: re.Match[str]) -> str:
    return (
        f"stack makes a new dimension and needs equal shapes: ({match[1]}) and ({match[2]}) differ."
        " cat joins along a dimension that is there."
    )


def _reshape_size(match: re.Match[str]) -> str:
    shape, count = match.groups()
    return (
        f"The sizes in ({shape}) must multiply to the number of elements, {count}. Write -1 for"
        " one of them to have it worked out."
    )


def _stretched(match: re.Match[str]) -> str:
    wanted, there, dim = match.groups()
    return (
        f"Only a dimension of 1 element can be stretched: dimension {dim} has {there} and was asked"
        f" to become {wanted}. repeat() copies elements; unsqueeze makes a dimension of 1."
    )


def _in_place_shape(match: re.Match[str]) -> str:
    written, result = match.groups()
    return (
        f"The result has shape [{result}], but in place it must fit into [{written}]: the tensor"
        " written to is never stretched. Use the form that gives a new tensor."
    )


def _index_bounds(match: re.Match[str]) -> str:
    index, dim, size = match.groups()
    last = int(size) - 1
    return (
        f"Dimension {dim} has {size} elements, numbered 0 to {last} (or -{size} to -1 from the"
        f" end); {index} is none of them."
        if last >= 0
        else f"Dimension {dim} has no elements: there is nothing to index."
    )


def _dim_range(match: re.Match[str]) -> str:
    least, most, dim = match.groups()
    return (
        f"There is no dimension {dim}: choose from {least} to {most}. x.ndim tells how many there"
        " are; unsqueeze adds one."
    )


def _mask_shape(match: re.Match[str]) -> str:
    return (
        f"A mask needs the shape of what it covers: [{match[1]}] and [{match[3]}] differ at"
        f" dimension {match[2]}."
    )


def _dtypes(match: re.Match[str]) -> str:
    return (
        f"Both operands must have one dtype here, and they have {match[1]} and {match[2]}. Convert"
        " one with .to(other.dtype) or .float()."
    )


def _no_kernel(match: re.Match[str]) -> str:
    return (
        f"torch has no such operation for the dtype {match[1]}. Convert first: .float() computes in"
        " float32, and .to(dtype) leads back."
    )


def _result_type(match: re.Match[str]) -> str:
    return (
        f"The result is {match[1]}, which a {match[2]} tensor cannot hold, so it cannot be written"
        " in place. Use the form that gives a new tensor, or convert first with .float()."
    )


_Row = tuple[tuple[type[BaseException], ...], re.Pattern[str], Help]


def _row(pattern: str, told: Help, *types: type[BaseException]) -> _Row:
    return (types or (RuntimeError,), re.compile(pattern, re.IGNORECASE), told)


_KNOWN: tuple[_Row, ...] = (
    _row(
        r"view size is not compatible with input tensor's size and stride",
        "view never copies, and no strides read these cells in this order as the new shape (the"
        " tensor is not contiguous, often after a transpose). reshape copies where it must;"
        " .contiguous().view(...) does the same.",
    ),
    _row(r"shape '\[(.*)\]' is invalid for input of size (\d+)", _reshape_size),
    _row(
        r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton"
        r" dimension (\d+)",
        _not_broadcast,
    ),
    _row(
        r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _inner_sizes
    ),
    _row(r"size mismatch, got input \(\d+\), mat \(\d+x(\d+)\), vec \((\d+)\)", _vector_sizes),
    _row(r"batch2 tensor to be: \[(\d+), (\d+)\]", _batch_sizes),
    _row(
        r"Sizes of tensors must match except in dimension (\d+)\. Expected(?: size)? (\d+)(?: in"
        r" dimension \d+)? but got size (\d+)",
        _cat_sizes,
    ),
    _row(
        r"stack expects each tensor to be equal size, but got \[(.*?)\] at entry 0 and \[(.*?)\]",
        _stack_shapes,
    ),
    _row(
        r"The expanded size of the tensor \((-?\d+)\) must match the existing size \((\d+)\) at"
        r" non-singleton dimension (\d+)",
        _stretched,
    ),
    _row(r"output with shape \[(.*)\] doesn't match the broadcast shape \[(.*)\]", _in_place_shape),
    _row(r"result type (\w+) can't be cast to the desired output type (\w+)", _result_type),
    _row(r"expected m1 and m2 to have the same dtype, but got: (.+) != (.+)", _dtypes),
    _row(r"expected scalar type (\w+) but found (\w+)", _dtypes),
    _row(r"both vectors to have same dtype, but found (\w+) and (\w+)", _dtypes),
    _row(r"\" not implemented for '(\w+)'", _no_kernel),
    _row(
        r"must be either a floating point or complex dtype\. Got: (\w+)",
        lambda m: f"This gives fractions, which {m[1]} cannot hold. Convert first with .float().",
    ),
    _row(
        r"Could not run 'aten::(\w+)\S*' with arguments from the 'Quantized",
        lambda m: (
            f"{m[1]} is not made for quantised tensors. x.dequantize() gives the numbers as floats,"
            " x.int_repr() the stored integers."
        ),
    ),
    _row(
        r"all tensors to be on the same device|is not on the expected device",
        "The operands lie on different devices. Move one with .to(other.device); a model moves"
        " with model.to(device).",
    ),
    _row(
        r"^a leaf Variable that requires grad is being used in an in-place",
        "This tensor was made by you and requires grad: autograd needs its value as it was. Write"
        " within torch.no_grad(), as optimizers do, or compute a new tensor: x = x + 1.",
    ),
    _row(
        r"view of a leaf Variable that requires grad is being used in an in-place",
        "This is a view of a leaf that requires grad: autograd needs that as it was. Write within"
        " torch.no_grad(), or clone() the leaf first.",
    ),
    _row(
        r"one of the variables needed for gradient computation has been modified by an inplace",
        "A value that backward needs was overwritten after the forward pass. Use the form without"
        " the underscore, or clone() before writing.",
    ),
    _row(
        r"Can't call numpy\(\) on Tensor that requires grad",
        "NumPy knows no graph. x.detach().numpy() leaves it (and still shares memory).",
    ),
    _row(
        r"can't convert \S+ device type tensor to numpy",
        "NumPy reads the CPU's memory only: x.cpu().numpy() copies it there.",
        TypeError,
    ),
    _row(
        r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)",
        _index_bounds,
        IndexError,
        RuntimeError,
    ),
    _row(
        r"Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got"
        r" (-?\d+)\)",
        _dim_range,
        IndexError,
    ),
    _row(
        r"too many indices for tensor of dimension (\d+)",
        lambda m: (
            f"The tensor has {m[1]} dimensions, and more indices were given. Leave some out, or add"
            " a dimension with None."
        ),
        IndexError,
    ),
    _row(
        r"shape of the mask \[(.*)\] at index (\d+) does not match the shape of the indexed tensor"
        r" \[(.*)\]",
        _mask_shape,
        IndexError,
    ),
    _row(
        r"tensors used as indices must be",
        "Index tensors hold whole numbers or truth values: use .long() or a comparison.",
        IndexError,
    ),
    _row(
        r"index out of range in self",
        "An index looks up a row that the table (an embedding's weight) does not have. Indices run"
        " from 0 to num_embeddings - 1.",
        IndexError,
    ),
    _row(
        r"einsum\(\): subscript (\w) has size (\d+) for operand \d+ which does not broadcast with"
        r" previously seen size (\d+)",
        _subscript,
    ),
    _row(
        r"expected target dtype to be Long",
        "Class labels are whole numbers, one for each sample: target.long(). Targets of the shape"
        " of the prediction may be probabilities in floats.",
    ),
    _row(
        r"Torch not compiled with CUDA enabled",
        "This installation of torch knows no CUDA. Use device='cpu'; torch.cuda.is_available()"
        " tells beforehand.",
        AssertionError,
    ),
    _row(
        r"backward through the graph a second time",
        "backward frees what it saved as it goes. Compute the result again before the second"
        " backward, or pass retain_graph=True to the first.",
    ),
    _row(
        r"trying to differentiate twice a function that was marked with @once_differentiable",
        "The backward of this function is not recorded, so its result cannot be differentiated"
        " again. Leave out @once_differentiable, and compute in backward with torch's operations.",
    ),
    _row(
        r"the derivative for '(.+)' is not implemented",
        lambda m: (
            f"torch knows no derivative of {m[1]} here. Build it of operations that have one, or"
            " write a torch.autograd.Function with a backward of your own."
        ),
    ),
    _row(
        r"differentiated Tensors? (?:at index \d+ )?appears to not have been used in the graph",
        "The output was computed without this input, so there is no way back to it. Pass"
        " allow_unused=True to get None for it, or look where the way was cut: detach(), item().",
    ),
    _row(
        r"One of the differentiated Tensors does not require grad",
        "Gradients are asked for a tensor that autograd does not follow. Call requires_grad_() on"
        " it before the computation.",
    ),
    _row(
        r"grad can be implicitly created only for scalar outputs",
        "backward starts from one number. Reduce first, as in y.sum().backward() or .mean(), or"
        " pass y.backward(gradient) with a gradient of y's shape.",
    ),
    _row(
        r"does not require grad and does not have a grad_fn",
        "Nothing that led here requires grad, so there is no graph to go back through. Make the"
        " inputs with requires_grad=True, outside torch.no_grad() and without detach().",
    ),
    _row(
        r"only Tensors of floating point(?: and complex)? dtype can require gradients",
        "Gradients are fractions: use a floating dtype, as in torch.tensor([1.0, 2.0]) or"
        " .float().",
    ),
    _row(
        r"a Tensor with (\d+) elements cannot be converted to Scalar",
        "item() is for one element. Index one, reduce with sum() or mean(), or use tolist().",
    ),
    _row(
        r"Boolean value of Tensor with more than one value is ambiguous",
        "`if` needs one truth value. Say what is meant: (x > 0).any() or (x > 0).all().",
    ),
    _row(
        r"more than one element of the written-to tensor refers to a single memory location",
        "Several elements are one cell (after expand): they cannot be written one by one. clone()"
        " gives each element a cell of its own.",
    ),
)
