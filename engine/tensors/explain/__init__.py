"""What an operation will give, told before it runs: shape, strides, dtype, memory, and why."""

# Importing the rules registers them.
from . import (
    along_rules,
    byte_rules,
    copy_rules,
    einsum_rules,
    function_rules,
    gather_rules,
    index_rules,
    piece_rules,
    product_rules,
    reduction_rules,
    turn_rules,
    view_rules,
)
from .checking import Fact, check
from .layout import Layout
from .reading import NoRule, Step, layout_of, read
from .registry import Refusal

__all__ = [
    "Fact",
    "Layout",
    "NoRule",
    "Refusal",
    "Step",
    "along_rules",
    "byte_rules",
    "check",
    "copy_rules",
    "einsum_rules",
    "function_rules",
    "gather_rules",
    "index_rules",
    "layout_of",
    "piece_rules",
    "product_rules",
    "read",
    "reduction_rules",
    "turn_rules",
    "view_rules",
]
