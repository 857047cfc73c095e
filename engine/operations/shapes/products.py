"""Products, each as an einsum whose letters name the dimensions.

A letter that is not in the result is summed over (row times column). A letter in both operands and
the result is a batch dimension. A letter in one operand and the result is kept.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from string import ascii_lowercase, ascii_uppercase
from typing import TypeVar

import numpy as np
import torch

from ...protocol import ProductSnapshot
from ...system.errors import LabError
from ...tensors.texts import cell_text
from .elements import (
    MAX_TRIED,
    cells_of,
    element_or_first,
    slices,
    text_at,
    trial,
    window,
    with_texts,
)
from .operands import NAMES, Operand, Shape, refusal

EQUATIONS = {
    "mm": "ik,kj->ij", "bmm": "bik,bkj->bij", "mv": "ik,k->i", "dot": "k,k->", "outer": "i,j->ij",
}  # fmt: skip
BATCH = "bcdefg"
MAX_PRODUCTS = 1 << 24
"""A window of results is computed from up to this many products."""
MAX_TERMS = 8
MAX_OPERANDS = 4

Place = TypeVar("Place")


@dataclass(frozen=True)
class Letters:
    """A letter for each dimension of each operand and of the result. `stretches` are the letters
    whose dimensions broadcast."""

    operands: tuple[str, ...]
    result: str
    stretches: str

    @property
    def equation(self) -> str:
        return f"{','.join(self.operands)}->{self.result}"

    def sizes(self, shapes: Sequence[Shape]) -> dict[str, list[int]]:
        """The different sizes of each letter, in order of appearance, without a 1 that is
        stretched."""
        found: dict[str, dict[int, None]] = {}
        for letters, shape in zip(self.operands, shapes, strict=True):
            for letter, size in zip(letters, shape, strict=True):
                found.setdefault(letter, {})[size] = None
        return {
            letter: [n for n in sizes if n != 1 or len(sizes) == 1 or letter not in self.stretches]
            for letter, sizes in found.items()
        }


def letters_of(op: str, shapes: Sequence[Shape], equation: str = "") -> Letters | None:
    """The letters of a product; None if `op` does not take operands of these numbers of dimensions.
    Raises LabError for an equation that cannot be read."""
    if op == "einsum":
        letters = _read(equation, shapes, ascii_uppercase)
        return replace(letters, stretches="".join(letters.operands))
    ranks = [len(shape) for shape in shapes]
    if op == "matmul":
        if len(ranks) != 2 or 0 in ranks:
            return None
        rows, columns = "i" if ranks[0] > 1 else "", "j" if ranks[1] > 1 else ""
        a, b = f"...{rows}k" if rows else "k", f"...k{columns}" if columns else "k"
        return _read(f"{a},{b}->...{rows}{columns}", shapes, BATCH)
    return _read(EQUATIONS[op], shapes) if ranks == _ranks(op) else None


def product(
    operands: Sequence[Operand], op: str, equation: str = "", element: Shape | None = None
) -> ProductSnapshot:
    """All that a view shows of one product. Raises LabError for an equation that cannot be read, or
    a wrong number of operands."""
    if op == "einsum" and not 1 <= len(operands) <= MAX_OPERANDS:
        raise LabError(f"einsum takes one to {MAX_OPERANDS} operands here.")
    if op != "einsum" and len(operands) != 2:
        raise LabError(f"{op} takes two operands.", hint=f"einsum takes one to {MAX_OPERANDS}.")
    shapes = tuple(operand.shape for operand in operands)
    letters = letters_of(op, shapes, equation)
    sizes = letters.sizes(shapes) if letters else {}
    conflicts = "".join(letter for letter, found in sizes.items() if len(found) > 1)
    snapshot = partial(
        ProductSnapshot,
        op=op,
        operands=tuple(operand.text for operand in operands),
        shapes=shapes,
        code=_code(operands, op, equation),
        equation=letters.equation if letters else "",
        letters=letters.operands if letters else (),
        result_letters=letters.result if letters else "",
        conflicts=conflicts,
    )
    one_size = {letter: found[0] for letter, found in sizes.items()}
    try:
        shape = _shape_by_torch(operands, op, equation, None if conflicts else one_size)
        if letters is None:
            raise AssertionError(f"torch.{op} takes {shapes}")
        element = element_or_first(element, shape)
        result = window(shape, element or ())
        dense = [operand.dense for operand in operands if operand.dense is not None]
        summed = [letter for letter in one_size if letter not in letters.result]
        count = math.prod(one_size[letter] for letter in summed)
        too_many = count * math.prod(result.size) > MAX_PRODUCTS
        if len(dense) == len(operands) and not too_many:
            shown = dict(zip(letters.result, slices(result), strict=True))
            places = _in_operands(letters, shapes, shown, slice(None), slice(None))
            parts = [d[place] for d, place in zip(dense, places, strict=True)]
            numbers = torch.einsum(letters.equation, *parts)
            result = with_texts(result, numbers.reshape(result.size))
    except (RuntimeError, IndexError) as error:
        cells = tuple(map(cells_of, operands))
        hint = _hint(operands, op, letters, conflicts)
        return snapshot(cells=cells, error=refusal(error, hint))
    known = len(dense) == len(operands)
    reads: tuple[tuple[int | None, ...], ...] = ()
    terms: list[str] = []
    if element is not None:
        fixed = dict(zip(letters.result, element, strict=True))
        reads = tuple(_in_operands(letters, shapes, fixed, None, 0))
        places = np.ndindex(*(one_size[letter] for letter in summed)) if known else ()
        for place in itertools.islice(places, MAX_TERMS):
            at = _in_operands(letters, shapes, fixed | dict(zip(summed, place, strict=True)), 0, 0)
            factors = [d[index].item() for d, index in zip(dense, at, strict=True)]
            terms.append(" · ".join(map(cell_text, factors)))
    too_long = "Too many products to sum here: run the line for the numbers."
    return snapshot(
        shape=shape,
        cells=tuple(map(cells_of, operands, reads or [()] * len(operands))),
        result=result,
        element=element,
        reads=reads,
        count=count if known and element is not None else 0,
        terms=tuple(terms),
        value=text_at(result, element),
        note=too_long if known and too_many else "",
    )


# -- letters ---------------------------------------------------------------------------------------


def _ranks(op: str) -> list[int]:
    return [len(part) for part in EQUATIONS[op].split("->")[0].split(",")]


def _read(equation: str, shapes: Sequence[Shape], spare: str = "") -> Letters:
    """The letters of torch.einsum's equation. Dimensions under `...` get letters of `spare` that
    are not in the equation; they broadcast."""
    written = equation.replace(" ", "")
    if not re.fullmatch(r"[A-Za-z.,]*(->[A-Za-z.]*)?", written) or not written:
        raise LabError(
            f"`{equation}` is not an einsum equation.",
            hint="Letters name dimensions: ij,jk->ik is a matrix product, ...ij->...ji transposes.",
        )
    left, arrow, right = written.partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise LabError(
            f"`{equation}` names {len(parts)} operands, and there are {len(shapes)}.",
            hint="Write the letters of each operand, with a comma between operands.",
        )
    under = [len(s) - len(p.replace("...", "")) for p, s in zip(parts, shapes, strict=True)]
    for part, count, shape, name in zip(parts, under, shapes, ascii_lowercase, strict=False):
        if count < 0 or ("..." not in part and count) or "." in part.replace("...", "", 1):
            raise LabError(
                f"`{part}` does not fit {name}'s shape {shape}, which has {len(shape)} dimensions.",
                hint="Write one letter for each dimension, or ... for those in front.",
            )
    free = "".join(letter for letter in spare if letter not in written)
    dots = free[: max(under)]
    named = tuple(
        p.replace("...", dots[len(dots) - n :]) for p, n in zip(parts, under, strict=True)
    )
    result = right.replace("...", dots)
    if not arrow:
        letters = left.replace(".", "").replace(",", "")
        result = dots + "".join(sorted(c for c in letters if letters.count(c) == 1))
    if not set(result) <= set("".join(named)) or len(set(result)) < len(result):
        raise LabError(
            f"Each letter of the result `{right}` must come from an operand, and only once.",
            hint="For a result with a diagonal, or a new dimension, use diag_embed or unsqueeze.",
        )
    return Letters(named, result, dots)


def _in_operands(
    letters: Letters, shapes: Sequence[Shape], at: Mapping[str, Place], whole: Place, one: Place
) -> list[tuple[Place, ...]]:
    """A value for each dimension of each operand: `at[letter]`, or `one` for a size of 1, which is
    stretched, or `whole` for a letter that is not in `at`."""
    return [
        tuple(
            whole if letter not in at else one if size == 1 else at[letter]
            for letter, size in zip(own, shape, strict=True)
        )
        for own, shape in zip(letters.operands, shapes, strict=True)
    ]


# -- torch -----------------------------------------------------------------------------------------


def _shape_by_torch(
    operands: Sequence[Operand], op: str, equation: str, sizes: Mapping[str, int] | None
) -> Shape:
    """The result's shape; raises torch's error. A product that fits has `sizes`; it runs if it is
    small, else on meta. Any other product is refused before anything is computed. Which of torch's
    checks comes first depends on strides, so it gets the operands' own tensors, or tensors of the
    usual strides for typed shapes."""
    stand_ins = [trial(operand) for operand in operands]
    if not sizes:
        stand_ins = [
            operand.tensor if operand.tensor is not None
            else operand.blank() if math.prod(operand.shape) > MAX_TRIED else stand_in
            for operand, stand_in in zip(operands, stand_ins, strict=True)
        ]  # fmt: skip
    elif math.prod(sizes.values()) > MAX_PRODUCTS or any(t.is_meta for t in stand_ins):
        stand_ins = [torch.empty(o.shape, dtype=o.dtype, device="meta") for o in operands]
    run = partial(torch.einsum, equation) if op == "einsum" else getattr(torch, op)
    return tuple(run(*stand_ins).shape)


def _code(operands: Sequence[Operand], op: str, equation: str) -> str:
    if op == "matmul":
        return " @ ".join(operand.code for operand in operands)
    first = [f'"{equation}"'] if op == "einsum" else []
    return f"torch.{op}({', '.join([*first, *(operand.code for operand in operands)])})"


def _hint(operands: Sequence[Operand], op: str, letters: Letters | None, conflicts: str) -> str:
    shapes = [operand.shape for operand in operands]
    if letters is None:
        takes, other = "takes no scalars", "use * for scalars"
        if op in EQUATIONS:
            takes = "takes {}-D and {}-D".format(*_ranks(op))
            other = "matmul (@) takes any number of dimensions"
        got = " and ".join(f"{len(shape)}-D" for shape in shapes)
        return f"torch.{op} {takes} tensors and got {got}; {other}."
    if conflicts:
        letter = conflicts[0]
        met = " but ".join(
            f"{NAMES[k]}'s dim {d} has {shape[d]}"
            for k, (own, shape) in enumerate(zip(letters.operands, shapes, strict=True))
            for d, c in enumerate(own)
            if c == letter
        )
        if letter in letters.result:
            return f"{met}: both have the batch letter {letter}, and must be equal" + (
                " or 1." if letter in letters.stretches else f" ({op} does not broadcast)."
            )
        turned = _transposed(op, shapes)
        return (
            f"{met}: both are {letter}, whose products are summed, so they must be equal.{turned}"
        )
    return ""


def _transposed(op: str, shapes: Sequence[Shape]) -> str:
    """A hint that an operand would fit if its last two dimensions were transposed; "" if none."""
    for k, shape in enumerate(shapes):
        turned = list(shapes)
        turned[k] = (*shape[:-2], *reversed(shape[-2:]))
        letters = letters_of(op, turned) if op != "einsum" and len(shape) > 1 else None
        if letters and all(len(found) == 1 for found in letters.sizes(turned).values()):
            return f" {NAMES[k]}.mT is {turned[k]}, and would fit."
    return ""
