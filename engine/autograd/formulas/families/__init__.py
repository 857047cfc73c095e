"""The formulas of the book, one file for each family of operations; importing it enters them all.

Not here: how a formula is computed, written and filled with numbers (`formulas`).
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
