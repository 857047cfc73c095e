"""A gradient edit as a Python expression: the value that a pre-hook on the node returns."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ...restoring.randomness import RandomStream
from ...system.errors import LabError
from ..graph.engine_run import Gradients
from ..graph.reading import Node
from .gradients import check_fits

HINT = "Write Python of g, the incoming gradient: g * 2, torch.zeros_like(g), None."
_MODULES = {"torch": torch, "nn": nn, "F": F, "np": np}


class GradientExpression:
    """A pre-hook that replaces the gradient for output `output` by the value of `expression`.

    `variables` are the names that the expression may use besides g, grads, torch, nn, F and np;
    they are looked up when it runs. It runs in `guard()`. torch draws random numbers from a stream
    that starts from `seed` each time, so a repeated step draws the same. Raises LabError if
    `expression` is not one; a call raises LabError if it fails or its value does not fit.
    """

    def __init__(
        self,
        expression: str,
        output: int = 0,
        variables: Mapping[str, Any] | None = None,
        guard: Callable[[], AbstractContextManager[object]] = nullcontext,
        seed: int = 0,
    ) -> None:
        self.expression = expression.strip()
        self.output, self.seed = output, seed
        self.draws = False
        """Whether the expression has drawn random numbers."""
        try:
            tree = ast.parse(self.expression, "<gradient>", "eval")
            self._code = compile(tree, "<gradient>", "eval")
        except (SyntaxError, ValueError) as error:
            why = error.msg if isinstance(error, SyntaxError) else str(error)
            raise LabError(f"`{self.expression}` is not an expression: {why}.", hint=HINT) from None
        self._variables = {} if variables is None else variables
        self._guard = guard
        self.names = tuple(
            sorted(
                name
                for name in {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
                if name in self._variables and name not in _MODULES
            )
        )
        """The variables that the expression uses."""
        self.copies = any(map(_may_write, ast.walk(tree)))
        """Whether the expression gets copies of the gradients, since it may write into them."""

    def __call__(self, grads: Gradients, node: Node) -> Gradients:
        copies = grads
        if self.copies:
            copies = tuple(None if g is None else g.clone() for g in grads)
        scope = {**_MODULES, **self._variables, "g": copies[self.output], "grads": copies}
        g = copies[self.output]
        device = torch.device("cpu") if g is None else g.device
        stream = RandomStream(self.seed, device)
        fresh = stream.state()
        try:
            with self._guard(), stream:
                result = eval(self._code, scope)
        except Exception as error:  # the user's own code may raise anything
            missing = copies[self.output] is None
            raise LabError(
                f"`{self.expression}` fails: {type(error).__name__}: {error}",
                hint="No gradient arrives here: g is None." if missing else HINT,
            ) from error
        finally:
            drawn = stream.state()
            self.draws |= any(not torch.equal(fresh[name], drawn[name]) for name in fresh)
        if result is not None and not isinstance(result, torch.Tensor):
            raise LabError(
                f"`{self.expression}` gives {result!r:.60}, of type {type(result).__name__}: a "
                "gradient is a tensor, or None.",
                hint="For the same number everywhere write torch.full_like(g, 3.0).",
            )
        if result is not None and copies[self.output] is None:
            which = f" for output {self.output}" if len(copies) > 1 else ""
            raise LabError(
                f"No gradient arrives at {node.name}{which}, and torch lets no hook put one there.",
                hint="Edit at a node above it, from where a gradient does come.",
            )
        if result is not None:
            try:
                metadata = node.fn._input_metadata[self.output]
                check_fits(result, metadata, node.name, instead_of=copies[self.output])
            except ValueError as error:
                raise LabError(
                    f"`{self.expression}` does not fit: {error}.",
                    hint="An edit keeps shape, dtype, device and layout: write expand_as(g), "
                    "to(g), to_sparse() or to_dense().",
                ) from None
        return (*grads[: self.output], result, *grads[self.output + 1 :])


def _may_write(node: ast.AST) -> bool:
    """Whether this part of an expression may write into its arguments: `g.mul_`, `out=`, or a call
    of a user's function."""
    if isinstance(node, ast.Call):
        named = isinstance(node.func, ast.Name)
        return named or any(k.arg in ("out", "inplace", None) for k in node.keywords)
    if isinstance(node, ast.Attribute):
        name = node.attr
        return name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))
    return False
