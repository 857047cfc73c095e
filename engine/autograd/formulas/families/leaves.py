"""Nodes that are not a single operation: leaves, Python Functions, whole recurrent layers."""

from __future__ import annotations

from ..book import enter, pointwise
from ..input_rules import TextOnly

pointwise(
    "AccumulateGrad",
    "Adds the incoming gradient to the leaf's .grad: backward ends here.",
)
enter(
    "MkldnnRnnLayerBackward0",
    "A whole recurrent layer in one node: it goes back through all time steps.",
    *(
        TextOnly(
            label, "the sum of what each time step's own rule gives, from the last to the first"
        )
        for label in ("x", "W1", "W2", "b1", "b2", "h", "c")
    ),
)
enter(
    "ReprBackward0 ErrorBackward0 NotImplemented",
    "This operation has no derivative: backward stops here with an error.",
)
