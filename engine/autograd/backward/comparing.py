"""Compares the gradients of a stepped pass with those of plain `backward()`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...protocol import ComparisonSnapshot
from ...system.errors import LabError, sendable
from ...tensors.compare import max_difference
from .backward_pass import BackwardPass

MAX_DIFFERENCES = 2_000


def compare(stepped: BackwardPass) -> ComparisonSnapshot:
    """Compare the stepped gradients with those of plain `backward()`, from the same `.grad` before.

    For a model, backward follows a new forward pass on the same batch, with the same random state
    and buffers; for the console, it runs once more through the same graph. `.grad` stays as it is.
    Raises LabError before the last step, and where the graph is freed.
    """
    stepper = stepped.stepper
    if stepper.next_node is not None:
        raise LabError(
            f"{len(stepper.plan) - stepper.position:,} nodes have not run yet, so "
            "the gradients are not complete.",
            hint="Run the backward pass to its end, then compare.",
        )
    if stepped.subject.root and stepped.graph_is_freed:
        raise LabError(
            "The real engine has freed this graph, so it cannot run once more to compare.",
            hint="Restart the pass with retain_graph, or node by node.",
        )
    differences = _of_inputs(stepped) if stepped.inputs else _of_parameters(stepped)
    largest = sorted(differences.items(), key=lambda pair: -pair[1])[:MAX_DIFFERENCES]
    return ComparisonSnapshot(
        max_difference=max(differences.values(), default=0.0),
        differences={sendable(name): difference for name, difference in largest},
        zeroed=stepped.is_zeroed,
    )


def _of_parameters(stepped: BackwardPass) -> dict[str, float]:
    parameters = stepped.parameters
    now = {name: p.grad for name, p in parameters.items()}
    gradients = {name: stepped.shown_gradient(name) for name in parameters}
    for name, parameter in parameters.items():
        before = stepped.gradients_before.get(name)
        parameter.grad = None if before is None else before.clone()
    try:
        roots, gradient = stepped.subject.plain()
        with stepped.stepper.guard():  # hooks are the user's code
            torch.autograd.backward(
                roots, gradient, retain_graph=True, create_graph=stepped.create_graph
            )
        return {name: _difference(gradients[name], p.grad) for name, p in parameters.items()}
    finally:
        for name, parameter in parameters.items():
            parameter.grad = now[name]


def _of_inputs(stepped: BackwardPass) -> dict[str, float]:
    roots, gradient = stepped.subject.plain()
    with stepped.stepper.guard():
        found = torch.autograd.grad(
            roots,
            list(stepped.inputs.values()),
            gradient,
            retain_graph=True,
            create_graph=stepped.create_graph,
            allow_unused=True,
        )
    return {
        name: _difference(stepped.gradient_of(name), plain)
        for name, plain in zip(stepped.inputs, found, strict=True)
    }


def _difference(stepped: Tensor | None, expected: Tensor | None) -> float:
    if stepped is None or expected is None:
        return 0.0 if stepped is expected else math.inf
    return max_difference(stepped, expected)
