"""The formulas of the book, one file for each family of operations. Importing it enters them all.

Not here: how a formula is computed and shown with its numbers (`formulas`).
"""

from . import (  # noqa: F401
    activations,
    arithmetic,
    attention,
    functions,
    leaves,
    losses,
    matrices,
    norms,
    picks,
    pooling,
    products,
    reductions,
    views,
)
