"""The words for operations whose result has new memory, and for the dtype of the result."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import torch

from ...system.errors import LabError
from ..memory.footprint import contiguous_strides
from ..shapes.products import letters_of
from .layout import Layout
from .steps import Outcome, Step, Term
from .view_words import Why, Words, format_name

NEW = "new numbers need memory of their own."


def _clone(step: Step, done: Outcome) -> str:
    if step.given(1, "memory_format", default=torch.preserve_format) != torch.preserve_format:
        return "clone always copies."
    if step.operands[0].layout.is_dense:
        return "clone always copies, and keeps the strides of a dense tensor."
    return "clone always copies, and closes the gaps and overlaps, in the same order of dimensions."


def _converted(step: Step, done: Outcome) -> str:
    x, made = step.operands[0].layout, done.result
    form = step.kwargs.get("memory_format", torch.preserve_format)
    if done.kind == "same":
        in_form = "" if form == torch.preserve_format else f", as {format_name(form)},"
        return (
            f"it is {format_name(made.dtype)} on {made.device}{in_form} already: the tensor itself."
        )
    if made.dtype != x.dtype:
        why = f"{format_name(made.dtype)} numbers have other bytes than {format_name(x.dtype)} ones"
    elif made.device != x.device:
        why = f"{made.device} has its own memory"
    elif form != torch.preserve_format and not step.given(4, "copy", default=False):
        why = f"{format_name(form)} lays the elements out in another order"
    else:
        why = "a copy was asked for"
    return f"{why}: a copy."


def _joined(step: Step, done: Outcome) -> Words:
    layouts = [term.layout for term in step.operands]
    dim = step.given(1, "dim", "axis", default=0)
    lines = [_promoted(layouts, [], done.result.dtype)]
    if step.operation == "stack":
        dim = dim % done.result.ndim
        return f"the new dim {dim} counts the tensors; all are copied into new memory.", lines
    if not done.result.numel:
        return "there are no elements to join.", lines
    return f"all are written one after the other along dim {dim} into new memory.", lines


# -- element by element --------------------------------------------------------------------------


def elementwise(step: Step, done: Outcome) -> Words:
    """The words for elementwise operations, and for all others without words of their own."""
    if len(done.results) != 1:
        return NEW, ()
    layouts, shape = [term.layout for term in step.operands], done.result.shape
    try:
        by_element = tuple(torch.broadcast_shapes(*(x.shape for x in layouts))) == shape
    except RuntimeError:
        by_element = False
    if not by_element:
        return NEW, [_dtype_words(step, done)]
    stretched = [f"{x.shape} is stretched to {shape}" for x in layouts if x.shape != shape]
    lines = ["; ".join(stretched) + "." if stretched else "", _dtype_words(step, done)]
    if not done.result.is_contiguous:
        lines.append(f"the order of the operands' memory is kept: stride {done.result.stride}.")
    return NEW, lines


_CATEGORIES = ("bool", "integer", "floating", "complex")


def _category(dtype: torch.dtype) -> int:
    """0 for bool, 1 for integer, 2 for floating, 3 for complex dtypes."""
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype == torch.bool else 1


def _dtype_words(step: Step, done: Outcome) -> str:
    """Why the result has its dtype, by torch's rules of promotion."""
    made = done.result.dtype
    layouts = [term.layout for term in step.operands]
    if step.operation == "where":
        layouts = layouts[1:] or layouts
    numbers = [v for v in (*step.args, *step.kwargs.values()) if type(v) in _NUMBERS]
    categories = [_category(x.dtype) for x in layouts]
    if not layouts:
        return ""
    if made == torch.bool and set(categories) != {0}:
        return "the answers are true or false: bool."
    if _category(made) == 2 and max(categories) == 3:
        return "a magnitude is a real number."
    whole = max(categories) < 2 and not any(type(v) in (float, complex) for v in numbers)
    if _category(made) >= 2 and whole:
        return f"the result is a fraction: whole numbers give the default dtype, {made}."
    return _promoted(layouts, numbers, made)


_NUMBERS = (bool, int, float, complex)


def _promoted(layouts: Sequence[Layout], numbers: Sequence[object], made: torch.dtype) -> str:
    """Tensors with dimensions decide the dtype. A 0-D tensor or a number changes it only if its
    category is higher: bool < integer < floating < complex."""
    name = format_name(made)
    dtypes = sorted({format_name(x.dtype) for x in layouts})
    if dtypes == [name]:
        return f"{name} stays {name}."
    if len(dtypes) > 1:
        text = f"{' with '.join(dtypes)} gives {name}"
        if len({x.ndim > 0 for x in layouts}) > 1:
            return f"{text}."
        categories = {_category(x.dtype) for x in layouts}
        if len(categories) > 1:
            return f"{text}: {_CATEGORIES[max(categories)]} is the higher category."
        return f"{text}, the smallest dtype that holds both."
    if not numbers:
        return f"{dtypes[0]} gives {name}."
    category = max(_NUMBERS.index(type(number)) for number in numbers)
    return f"{dtypes[0]} becomes {name}: {_CATEGORIES[category]} is the higher category."


# -- reductions ----------------------------------------------------------------------------------


def _reduced(step: Step, done: Outcome) -> str | Words:
    name, x, made = step.operation, step.operands[0].layout, done.result
    dim = step.given(1, "dim", "other")
    if name == "norm":
        dim = step.given(2, "dim")
    if isinstance(dim, Term):  # max(other)
        return elementwise(step, done)
    dims = dim if isinstance(dim, tuple | list) else () if type(dim) is not int else (dim,)
    placed = sorted({d % max(x.ndim, 1) for d in dims}) or range(x.ndim)
    count = 1
    for d in placed:
        count *= x.shape[d] if x.ndim else 1
    along = f"dim {', '.join(map(str, placed))}"
    where = "all dimensions" if len(placed) >= x.ndim else along
    number = "1 element is" if count == 1 else f"{count} elements are"
    lines = [_folded_dtype(name, x.dtype, made.dtype, step.kwargs.get("dtype"))]
    if len(done.results) > 1:
        lines.append(f"{name} with the argument dim gives values and their indices.")
    elif name in ("argmax", "argmin") and not dims:
        lines.append(
            "without the argument dim, the index counts through the whole tensor, in C order."
        )
    return (
        f"{number} reduced to each element of the result, along {where}: a new tensor.",
        lines,
    )


def _folded_dtype(name: str, old: torch.dtype, new: torch.dtype, asked: object) -> str:
    if asked is not None:
        return f"{asked} was asked for."
    if name in ("argmax", "argmin", "count_nonzero"):
        return f"{'a count' if name == 'count_nonzero' else 'an index'} is int64."
    if name in ("any", "all"):
        old_form = "uint8 once was torch's bool: the answer is uint8."
        return "the answer is true or false: bool." if new == torch.bool else old_form
    if _category(old) < 2 and name in ("sum", "prod", "nansum", "cumsum", "cumprod"):
        return "whole numbers and bool add up in int64, so that they do not overflow."
    if new == old:
        return ""
    if old.is_complex:
        return "of complex numbers it is a real number."
    return f"whole numbers give the default dtype, {new}."


def _placed(step: Step, place: int = 1) -> int:
    """The dimension that was given, counted from 0; the last if none was."""
    dim = step.given(place, "dim", "axis", default=-1)
    return dim % max(step.operands[0].layout.ndim, 1) if type(dim) is int else 0


def _along_dim(what: str) -> Why:
    def why(step: Step, done: Outcome) -> Words:
        x, made = step.operands[0].layout, done.result
        asked = step.kwargs.get("dtype")
        return (
            f"{what} along dim {_placed(step)}, which stays: new numbers, in C order.",
            [_folded_dtype(step.operation, x.dtype, made.dtype, asked)],
        )

    return why


def _sorted(step: Step, done: Outcome) -> str:
    dim = _placed(step)
    return f"sorted along dim {dim}: new numbers, in x's own order in memory."


def _topk(step: Step, done: Outcome) -> str:
    return f"the {step.given(1, 'k')} first along dim {_placed(step, 2)}: a new tensor."


# -- products ------------------------------------------------------------------------------------


def _product(step: Step, done: Outcome) -> Words:
    name, made = step.operation, done.result
    layouts = [term.layout for term in step.operands]
    a, b = layouts[-2:] if name in ("addmm", "addmv", "baddbmm", "addbmm") else layouts[:2]
    lines = [f"{a.shape[-1]} products are added up for each of {made.numel} elements."]
    if name == "matmul" and made.ndim > 2:
        lines.append(
            f"the dimensions in front are a batch of matrices, {made.shape[:-2]}, and broadcast."
        )
    if name == "linear":
        lines.append("linear is input @ weight.mT + bias.")
    if made.stride != contiguous_strides(made.shape) and b.ndim > 2:
        lines.append("because the first requires grad, torch multiplies the transposed matrices.")
    return "every element is a new number, a sum of products: a new tensor.", lines


def _outer(step: Step, done: Outcome) -> Words:
    why = "each element of one times each element of the other: a new tensor."
    return why, [_dtype_words(step, done)]


def _einsum(step: Step, done: Outcome) -> str | Words:
    equation, letters = step.args[0], None
    if isinstance(equation, str):  # else lists of numbers stand for letters
        with suppress(LabError):  # an equation without letters
            letters = letters_of("einsum", [term.layout.shape for term in step.operands], equation)
    lines = () if letters is None else (f"written out: {letters.equation}",)
    if done.kind == "view":
        return "nothing is added up: only the dimensions are named in another order.", lines
    return (
        "products are added up over the letters that the result leaves out: a new tensor.",
        lines,
    )


def _take_along_words(step: Step, done: Outcome) -> str | Words:
    dim, x = step.given(2, "dim"), step.operands[0].layout
    if type(dim) is not int:
        return "without the argument dim, both are read as flat lists."
    return (
        "gather, with both broadcast along all other dimensions.",
        [f"an index i reads i % {x.shape[dim]}: beyond an end it starts again at the other"],
    )


def _selected(step: Step, done: Outcome) -> str:
    return f"whole slices along dim {_placed(step)} are copied, one per index."


_FOLDS = (
    "sum", "mean", "amax", "amin", "any", "all", "count_nonzero", "std", "var", "norm",
    "logsumexp", "prod", "argmax", "argmin", "max", "min", "median", "nansum", "nanmean",
    "nanmedian", "mode",
)  # fmt: skip
_CASTS = (
    "to", "float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool",
    "cfloat", "cdouble", "type", "type_as", "cpu", "cuda",
)  # fmt: skip
_PRODUCTS = ("mm", "mv", "dot", "vdot", "bmm", "matmul", "addmm", "addmv", "baddbmm", "linear")

WORDS: dict[str, Why] = {
    "clone": _clone,
    **dict.fromkeys(_CASTS, _converted),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack"), _joined),
    **dict.fromkeys(
        ("repeat", "tile"), "repeat writes every repetition out (expand would not copy)."
    ),
    **dict.fromkeys(_FOLDS, _reduced),
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp"), _along_dim("all so far")),
    **dict.fromkeys(("cummax", "cummin"), _along_dim("the largest or smallest so far")),
    **dict.fromkeys(("softmax", "log_softmax", "softmin"), _along_dim("shares that add up to 1")),
    **dict.fromkeys(("sort", "argsort", "msort"), _sorted),
    "topk": _topk,
    **dict.fromkeys(_PRODUCTS, _product),
    **dict.fromkeys(("outer", "ger"), _outer),
    "einsum": _einsum,
    "gather": "element by element, the index says which to fetch: its shape is the result's.",
    "take_along_dim": _take_along_words,
    "take": "x is read as a flat list, in C order.",
    "index_select": _selected,
    "scatter": "a copy in C order, then written where the index says.",
    "scatter_add": "a copy in C order, then added to where the index says.",
    "masked_fill": "a copy in C order, then filled where the mask is True.",
    "masked_select": "the elements under True, one after the other.",
    "embedding": "each index is replaced by a copy of its row of the weight: a new tensor.",
}
