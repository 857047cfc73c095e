"""What an operation will give, told before it runs: shape, strides, dtype, memory, and why."""

# Importing the rules registers them.
from . import copy_rules, index_rules, pointwise_rules, view_rules
from .checking import Fact, check
from .layout import Layout
from .reading import NoRule, Step, layout_of, read

__all__ = [
    "Fact",
    "Layout",
    "NoRule",
    "Step",
    "check",
    "copy_rules",
    "index_rules",
    "layout_of",
    "pointwise_rules",
    "read",
    "view_rules",
]
