"""Jacobians, Hessians and their products for any function, by torch.func or row by row.

A function takes tensors and returns one tensor. Its derivative by one argument is a matrix: a row
for each element of the output, a column for each element of the argument, both in C order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from ...restoring.module_kept import ModuleState
from ...system.errors import LabError
from .precision import in_precision

Function = Callable[..., Tensor]
Kind = Literal["jacobian", "hessian", "jvp", "vjp", "hvp"]
Mode = Literal["reverse", "forward"]

MAX_ENTRIES = 4_000_000
"""The largest matrix: 32 MB in float64."""

MATRIX_KINDS = frozenset({"jacobian", "hessian"})


@dataclass(frozen=True)
class FunctionAtPoint:
    """A function at a point: `inputs` are all its arguments, and the derivative is by the one with
    number `argument`. A module is a ModuleState: it has tensors of its own.

    Every call starts from `randomness`, a state of torch's CPU generator, so that every call draws
    the same random numbers: a Dropout that drops others each time has no derivative.
    """

    function: Function
    inputs: tuple[Tensor, ...]
    argument: int = 0
    randomness: Tensor = field(default_factory=torch.get_rng_state)

    @property
    def context(self) -> AbstractContextManager[object]:
        """Around a backward through the function, which may call a part of the module again
        (activation checkpointing)."""
        return self.function if isinstance(self.function, ModuleState) else nullcontext()

    @property
    def x(self) -> Tensor:
        return self.inputs[self.argument]

    def of(self, x: Tensor) -> Tensor:
        """The output for `x` in place of the one argument."""
        inputs = [t.clone() for t in self.inputs]  # some functions write into their inputs
        inputs[self.argument] = x
        torch.set_rng_state(self.randomness)
        return self.function(*inputs)

    def value(self) -> Tensor:
        """The output. Raises LabError if it is not one real floating tensor."""
        with torch.no_grad():
            return _real_tensor(self.of(self.x.clone()))

    def is_random(self) -> bool:
        """Whether the function draws random numbers."""
        with torch.no_grad():
            self.of(self.x.clone())
        return not torch.equal(torch.get_rng_state(), self.randomness)

    def to(self, dtype: torch.dtype) -> FunctionAtPoint:
        """The same function and point in another precision: floating inputs, parameters, and all
        other tensors that the function uses."""
        function = self.function
        if isinstance(function, ModuleState):
            with function:
                function = ModuleState(function.module, dtype=dtype)
        else:
            function = in_precision(function, dtype)
        inputs = tuple(t.to(dtype) if t.is_floating_point() else t for t in self.inputs)
        return FunctionAtPoint(function, inputs, self.argument, self.randomness)


def at_point(function: Function, inputs: tuple[Tensor, ...], argument: int) -> FunctionAtPoint:
    """The function at detached copies of these inputs; a module with the tensors of now.

    Raises LabError when there is no derivative by the chosen argument, or an input has no numbers.
    """
    if not 0 <= argument < len(inputs):
        raise LabError(
            f"There is no input {argument}: {len(inputs)} were given.",
            hint="Inputs are counted from 0.",
        )
    x = inputs[argument]
    if not x.is_floating_point():
        raise LabError(
            f"Input {argument} is {str(x.dtype).removeprefix('torch.')}: a derivative needs a"
            " real floating-point input.",
            hint="Take a function of torch.view_as_real(x), or differentiate by another input."
            if x.is_complex()
            else "Convert it with .float(), or differentiate by another input.",
        )
    for place, t in enumerate(inputs):
        if t.layout != torch.strided or t.is_meta:
            what, hint = (
                ("on the meta device: it has no numbers", "Make it on the CPU.")
                if t.is_meta
                else ("not dense", "Give a dense one: x.to_dense().")
            )
            raise LabError(f"Input {place} is {what}.", hint=hint)
    if x.numel() == 0:
        raise LabError(
            f"Input {argument} has no elements, so there is nothing to differentiate by.",
            hint="Give one with some elements.",
        )
    if isinstance(function, nn.Module):
        function = ModuleState(function)
    return FunctionAtPoint(function, tuple(t.detach().clone() for t in inputs), argument)


# -- by torch ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derivative:
    """`values` is a matrix (rows, columns) for a Jacobian or Hessian, else the product in its own
    shape. `note` says why torch.func was not used."""

    values: Tensor
    note: str = ""


def derivative(
    at: FunctionAtPoint, kind: Kind, vector: Tensor | None = None, mode: Mode = "reverse"
) -> Derivative:
    """The derivative by torch.func; by autograd, row by row, for a function that torch.func refuses
    (an autograd.Function without setup_context, a BatchNorm that counts its batches).
    `vector` is for jvp, vjp and hvp.

    Raises LabError for a wrong shape of output or vector, or a matrix that would be too large.
    """
    out = at.value()
    if kind in ("hessian", "hvp") and out.numel() != 1:
        raise LabError(
            f"A Hessian needs a function that returns one number, not {tuple(out.shape)}.",
            hint="Reduce first: lambda x: f(x).sum().",
        )
    if kind in MATRIX_KINDS:
        _check_size(at.x.numel() if kind == "hessian" else out.numel(), at.x.numel())
    else:
        wanted = out if kind == "vjp" else at.x
        if vector is None or vector.shape != wanted.shape:
            got = "there is none" if vector is None else f"it has {tuple(vector.shape)}"
            raise LabError(
                f"The vector of a {kind.upper()} must have the shape of the"
                f" {'output' if kind == 'vjp' else 'input'}, {tuple(wanted.shape)}; {got}.",
                hint="Make one with torch.ones_like or torch.randn_like.",
            )
        vector = vector.to(wanted.dtype)
    try:
        with at.context:
            return Derivative(_by_func(at, kind, vector, mode).detach())
    except RuntimeError as error:  # an error of the function itself is raised again below
        note = (
            "torch.func cannot transform this function, so autograd computed the rows one by one: "
            + shortened(str(error))
        )
        with at.context:
            return Derivative(_by_rows(at, kind, vector).detach(), note)


def _by_func(at: FunctionAtPoint, kind: Kind, vector: Tensor | None, mode: Mode) -> Tensor:
    scalar = lambda x: at.of(x).reshape(())  # noqa: E731 - a Hessian's (1,) is a number
    x = at.x.clone()  # the function may write into it
    match kind:
        case "jacobian":
            jac = torch.func.jacrev if mode == "reverse" else torch.func.jacfwd
            return jac(at.of)(x).reshape(-1, x.numel())
        case "hessian":
            return torch.func.hessian(scalar)(x).reshape(x.numel(), x.numel())
        case "jvp":
            return torch.func.jvp(at.of, (x,), (vector,))[1]
        case "vjp":
            return torch.func.vjp(at.of, x)[1](vector)[0]
        case "hvp":
            return torch.func.jvp(torch.func.grad(scalar), (x,), (vector,))[1]


def _by_rows(at: FunctionAtPoint, kind: Kind, vector: Tensor | None) -> Tensor:
    x = at.x.detach().requires_grad_()
    out = at.of(x)
    if kind in ("hessian", "hvp"):
        out = vjp_of(out.sum(), x, None, create_graph=True)
    if kind == "vjp" or kind == "hvp":  # a Hessian is symmetric: its rows are its columns
        return vjp_of(out, x, vector)
    rows = torch.stack([vjp_of(out, x, unit) for unit in units(out)]).reshape(-1, x.numel())
    if kind == "jvp":
        assert vector is not None
        return (rows @ vector.reshape(-1)).reshape(out.shape)
    return rows


def vjp_of(out: Tensor, x: Tensor, vector: Tensor | None, create_graph: bool = False) -> Tensor:
    """The vector-Jacobian product of `out` by `x`; zeros if `out` does not depend on `x`."""
    if not out.requires_grad:
        return torch.zeros_like(x)
    (grad,) = torch.autograd.grad(
        out, x, vector, retain_graph=True, create_graph=create_graph, allow_unused=True
    )
    return torch.zeros_like(x) if grad is None else grad


def units(out: Tensor) -> Iterator[Tensor]:
    """All tensors of the shape of `out` with one 1 and zeros else, in C order."""
    for place in range(out.numel()):
        unit = torch.zeros(out.numel(), dtype=out.dtype, device=out.device)
        unit[place] = 1
        yield unit.reshape(out.shape)


# -- checks --------------------------------------------------------------------------------------


def _real_tensor(out: object) -> Tensor:
    """`out` itself. Raises LabError if it is not one real floating tensor."""
    if not isinstance(out, Tensor):
        many = isinstance(out, tuple | list | Mapping)
        what = f"{type(out).__name__} of {len(out)}" if many else type(out).__name__
        key = repr(next(iter(out), 0)) if isinstance(out, Mapping) else "0"
        raise LabError(
            f"The function returns {what}; a derivative needs one tensor.",
            hint=f"Choose one: lambda x: f(x)[{key}]."
            if many
            else "Return the tensor itself: item(), numpy() and float() cut it off from the graph.",
        )
    if not out.is_floating_point():
        raise LabError(
            f"The function returns {str(out.dtype).removeprefix('torch.')}: a derivative needs a"
            " real floating-point output.",
            hint="Return a real part of a complex result: .real or .abs().",
        )
    return out


def shortened(message: str, most: int = 240) -> str:
    """The first line of a message, cut to `most` characters."""
    line = (message.splitlines() or [""])[0]
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _check_size(rows: int, columns: int) -> None:
    if rows * columns > MAX_ENTRIES:
        raise LabError(
            f"The matrix would have {rows:,} × {columns:,} entries; the limit is {MAX_ENTRIES:,}.",
            hint="Take a JVP, VJP or HVP instead: they never build the matrix.",
        )
