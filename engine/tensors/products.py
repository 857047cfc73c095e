"""Products: every one of them is an einsum, whose letters say which dimensions meet.

A letter in both operands and not in the result is summed over (row times column); one in both
and in the result is a batch; one in a single operand and in the result is kept.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..errors import LabError, error_report
from ..protocol import Cells, ErrorReport, ProductSnapshot
from .cells import (
    MAX_TRIED,
    cell_text,
    dense_of,
    element_or_first,
    filled,
    slices,
    text_at,
    trial,
    window,
    with_texts,
)
from .operands import Operand

Shape = tuple[int, ...]
NAMES = "abcd"
BATCH = "bcdefg"
RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "outer": (1, 1)}
MAX_PRODUCTS = 1 << 24
"""A window of results is computed from up to so many products."""
MAX_TERMS = 8
MAX_OPERANDS = 4


@dataclass(frozen=True)
class Letters:
    """A letter for each dimension of each operand and of the result. `stretches` are the letters
    at which a size of 1 is stretched."""

    operands: tuple[str, ...]
    result: str
    stretches: str

    @property
    def equation(self) -> str:
        return f"{','.join(self.operands)}->{self.result}"

    def sizes(self, shapes: Sequence[Shape]) -> dict[str, list[int]]:
        """The different sizes under each letter, in the order they are met, 1 left out where it
        is stretched."""
        found: dict[str, list[int]] = {}
        for letters, shape in zip(self.operands, shapes, strict=True):
            for letter, size in zip(letters, shape, strict=True):
                sizes = found.setdefault(letter, [])
                if size not in sizes:
                    sizes.append(size)
        for letter, sizes in found.items():
            if letter in self.stretches and len(sizes) > 1 and 1 in sizes:
                sizes.remove(1)
        return found


def letters_of(op: str, shapes: Sequence[Shape], equation: str = "") -> Letters | None:
    """None where the operands have not the number of dimensions that `op` takes. Raises LabError
    on an equation that cannot be read."""
    if op == "einsum":
        return _einsum_letters(equation, shapes)
    ranks = tuple(len(shape) for shape in shapes)
    if len(ranks) != 2 or (op in RANKS and ranks != RANKS[op]) or 0 in ranks:
        return None
    if op == "outer":
        return Letters(("i", "j"), "ij", "")
    batch_a, batch_b = (BATCH[: max(0, rank - 2)] for rank in ranks)
    # Batch dimensions are aligned from the right: the longer list names them.
    batch = max(batch_a, batch_b, key=len)
    batch_a, batch_b = (batch[len(batch) - len(own) :] for own in (batch_a, batch_b))
    rows, columns = "i" if ranks[0] > 1 else "", "j" if ranks[1] > 1 else ""
    return Letters(
        (f"{batch_a}{rows}k", f"{batch_b}k{columns}"),
        f"{batch}{rows}{columns}",
        batch if op == "matmul" else "",
    )


def product(
    operands: Sequence[Operand], op: str, equation: str = "", element: Shape | None = None
) -> ProductSnapshot:
    """Everything a view shows of one product. Raises LabError on what cannot be read."""
    if not 1 <= len(operands) <= MAX_OPERANDS or (op != "einsum" and len(operands) != 2):
        raise LabError(f"{op} takes two operands.", hint="einsum takes one to four.")
    shapes = tuple(operand.shape for operand in operands)
    letters = letters_of(op, shapes, equation)
    sizes = letters.sizes(shapes) if letters else {}
    conflicts = "".join(letter for letter, found in sizes.items() if len(found) > 1)
    numbers = [dense_of(operand) for operand in operands]
    shape, error = _by_torch(operands, numbers, op, equation, letters, conflicts)
    result: Cells | None = None
    element = None if shape is None else element_or_first(element, shape)
    reads: tuple[tuple[int | None, ...], ...] = ()
    details: tuple[int, tuple[str, ...]] = (0, ())
    note = ""
    if shape is not None and letters is not None:
        one_size = {letter: found[0] for letter, found in sizes.items()}
        fixed = dict(zip(letters.result, element or (), strict=False))
        if element is not None:
            reads = tuple(
                _reads(own, fixed, s) for own, s in zip(letters.operands, shapes, strict=True)
            )
        result = window(shape, element or ())
        dense = [d for d in numbers if d is not None]
        if len(dense) == len(operands):
            summed = [letter for letter in one_size if letter not in letters.result]
            count = math.prod(one_size[letter] for letter in summed)
            if count * math.prod(result.size) > MAX_PRODUCTS:
                note = "Too many products to sum at every look: run the line for the numbers."
            else:
                try:
                    result = with_texts(result, _computed(letters, dense, result))
                except RuntimeError as refusal:  # no kernel for this dtype
                    shape, result, element, reads = None, None, None, ()
                    error = _explained(refusal, operands, op, letters, conflicts)
            if element is not None:
                details = count, _terms(letters, dense, fixed, summed, one_size)
    return ProductSnapshot(
        op=op,
        operands=tuple(operand.text for operand in operands),
        shapes=shapes,
        code=_code(operands, op, equation),
        equation=letters.equation if letters else "",
        letters=letters.operands if letters else (),
        result_letters=letters.result if letters else "",
        conflicts=conflicts,
        shape=shape,
        cells=tuple(
            filled(window(s, reads[k] if reads else ()), dense)
            for k, (s, dense) in enumerate(zip(shapes, numbers, strict=True))
        ),
        result=result,
        element=element,
        reads=reads,
        count=details[0],
        terms=details[1],
        value=text_at(result, element),
        note=note,
        error=error,
    )


# -- letters ---------------------------------------------------------------------------------------


def _einsum_letters(equation: str, shapes: Sequence[Shape]) -> Letters:
    """The letters of torch.einsum's equation. Dimensions under `...` take capitals that the
    equation leaves free."""
    written = equation.replace(" ", "")
    if not re.fullmatch(r"[A-Za-z.,]*(->[A-Za-z.]*)?", written) or not written:
        raise LabError(
            f"`{equation}` is no einsum equation.",
            hint="Letters name dimensions: ij,jk->ik is a matrix product, ...ij->...ji transposes.",
        )
    left, arrow, right = written.partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise LabError(
            f"`{equation}` names {len(parts)} operands, and there are {len(shapes)}.",
            hint="Commas stand between the operands' letters.",
        )
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in written]
    lengths = [
        len(shape) - len(part.replace("...", ""))
        for part, shape in zip(parts, shapes, strict=True)
        if "..." in part
    ]
    dots = "".join(free[: max(lengths, default=0)])
    operands = []
    for k, (part, shape) in enumerate(zip(parts, shapes, strict=True)):
        own = len(shape) - len(part.replace("...", ""))
        if own < 0 or ("..." not in part and own) or "." in part.replace("...", "", 1):
            raise LabError(
                f"`{part}` does not fit {NAMES[k]}'s shape {shape}, which has {len(shape)}"
                " dimensions.",
                hint="Write one letter for each dimension, or ... for those in front.",
            )
        operands.append(part.replace("...", dots[len(dots) - own :]))
    if arrow:
        result = right.replace("...", dots)
    else:
        once = [c for c in "".join(parts).replace(".", "") if "".join(parts).count(c) == 1]
        result = dots + "".join(sorted(once))
    unknown = [c for c in result if c not in "".join(operands)]
    if unknown or len(set(result)) < len(result):
        raise LabError(
            f"The result's `{right}` must name each of its letters once, from the operands'.",
            hint="For a result with a diagonal, or a new dimension, use diag_embed or unsqueeze.",
        )
    return Letters(tuple(operands), result, "".join(operands))


def _reads(own: str, fixed: dict[str, int], shape: Shape) -> tuple[int | None, ...]:
    return tuple(
        None if letter not in fixed else 0 if size == 1 else fixed[letter]
        for letter, size in zip(own, shape, strict=True)
    )


# -- numbers ---------------------------------------------------------------------------------------


def _computed(letters: Letters, dense: Sequence[torch.Tensor], result: Cells) -> torch.Tensor:
    """The numbers in the result's window, in the operands' own dtype."""
    taken = dict(zip(letters.result, slices(result), strict=True))
    parts = [
        d[tuple(
            taken.get(letter, slice(None)) if size > 1 else slice(None)
            for letter, size in zip(own, d.shape, strict=True)
        )]
        for own, d in zip(letters.operands, dense, strict=True)
    ]  # fmt: skip
    return torch.einsum(letters.equation, *parts).reshape(result.size)


def _terms(
    letters: Letters,
    dense: Sequence[torch.Tensor],
    fixed: dict[str, int],
    summed: Sequence[str],
    sizes: dict[str, int],
) -> tuple[str, ...]:
    """The first products of the sum, each as its factors: `1 · 7`."""
    places = itertools.product(*(range(sizes[letter]) for letter in summed))
    terms = []
    for place in itertools.islice(places, MAX_TERMS):
        at = fixed | dict(zip(summed, place, strict=True))
        factors = [
            d[tuple(
                0 if size == 1 else at[letter]
                for letter, size in zip(own, d.shape, strict=True)
            )]
            for own, d in zip(letters.operands, dense, strict=True)
        ]  # fmt: skip
        terms.append(" · ".join(cell_text(factor.item()) for factor in factors))
    return tuple(terms)


# -- torch's word ----------------------------------------------------------------------------------


def _by_torch(
    operands: Sequence[Operand],
    numbers: Sequence[torch.Tensor | None],
    op: str,
    equation: str,
    letters: Letters | None,
    conflicts: str,
) -> tuple[Shape | None, ErrorReport | None]:
    """The result's shape, or torch's error, by a run on the operands where they are small or
    refused before anything is computed, else on meta."""
    if letters is None or conflicts:
        stand_ins = [_refused(operand) for operand in operands]
    else:
        sizes = letters.sizes([operand.shape for operand in operands])
        stand_ins = [trial(o, d) for o, d in zip(operands, numbers, strict=True)]
        if math.prod(found[0] for found in sizes.values()) > MAX_PRODUCTS or any(
            t.is_meta for t in stand_ins
        ):
            stand_ins = [torch.empty(o.shape, dtype=o.dtype, device="meta") for o in operands]
    try:
        return tuple(_call(op, equation, stand_ins).shape), None
    except (RuntimeError, IndexError) as error:
        return None, _explained(error, operands, op, letters, conflicts)


def _refused(operand: Operand) -> torch.Tensor:
    """What stands for an operand in a product that does not fit. Which of its checks torch comes
    to first depends on strides, so it is the tensor itself, or one of the shape's usual strides.
    """
    if operand.tensor is not None:
        return operand.tensor
    return operand.blank() if math.prod(operand.shape) > MAX_TRIED else torch.zeros(operand.shape)


def _call(op: str, equation: str, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    if op == "einsum":
        return torch.einsum(equation, *operands)
    return getattr(torch, op)(*operands)


def _code(operands: Sequence[Operand], op: str, equation: str) -> str:
    texts = [o.text if o.tensor is not None else f"torch.zeros({o.shape})" for o in operands]
    if op == "matmul":
        return " @ ".join(texts)
    first = f'"{equation}", ' if op == "einsum" else ""
    return f"torch.{op}({first}{', '.join(texts)})"


def _explained(
    error: Exception,
    operands: Sequence[Operand],
    op: str,
    letters: Letters | None,
    conflicts: str,
) -> ErrorReport:
    told = error_report(error)
    return ErrorReport(
        type=told.type, message=told.message, hint=_hint(operands, op, letters, conflicts)
    )


def _hint(operands: Sequence[Operand], op: str, letters: Letters | None, conflicts: str) -> str:
    shapes = [operand.shape for operand in operands]
    if letters is None:
        wanted = RANKS.get(op)
        takes = f"takes {wanted[0]}-D and {wanted[1]}-D" if wanted else "takes no scalars"
        got = " and ".join(f"{len(shape)}-D" for shape in shapes)
        other = "matmul (@) takes any number of dimensions" if wanted else "use * for scalars"
        return f"torch.{op} {takes} tensors and got {got}; {other}."
    if conflicts:
        letter = conflicts[0]
        places = [
            f"{NAMES[k]}'s dimension {d} has {shape[d]}"
            for k, (own, shape) in enumerate(zip(letters.operands, shapes, strict=True))
            for d, c in enumerate(own)
            if c == letter
        ]
        met = " but ".join(places)
        if letter in letters.result:
            return f"{met}: both are the batch dimension {letter}, and must be equal" + (
                " or 1." if letter in letters.stretches else f" ({op} does not broadcast)."
            )
        return f"{met}: both are {letter}, whose products are summed, so they must be equal." + (
            _transposed(op, shapes)
        )
    dtypes = {operand.dtype for operand in operands}
    if len(dtypes) > 1:
        names = " and ".join(str(operand.dtype) for operand in operands)
        return f"The operands hold {names}; products promote no dtypes: cast one with .to(...)."
    return ""


def _transposed(op: str, shapes: Sequence[Shape]) -> str:
    """Which operand would fit if its last two dimensions changed places."""
    if len(shapes) != 2:
        return ""
    for k, name in enumerate(NAMES[:2]):
        turned = list(shapes)
        if len(turned[k]) < 2:
            continue
        turned[k] = (*turned[k][:-2], turned[k][-1], turned[k][-2])
        letters = letters_of(op, turned) if op != "einsum" else None
        if letters and all(len(found) == 1 for found in letters.sizes(turned).values()):
            return f" {name}.mT is {turned[k]}, and would fit."
    return ""
