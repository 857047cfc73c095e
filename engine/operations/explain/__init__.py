"""The result of an operation, predicted before it runs: shape, strides, dtype, memory, and why.

Not here: why torch refused an operation (`failures`).

Shape, strides, dtype and sharing come from torch's fake tensors; only the words are written here,
in `view_words`, `copy_words` and `words`.
"""

from .checking import Fact, check
from .layout import Layout
from .reading import read
from .steps import NoRule, Refusal, Step

__all__ = ["Fact", "Layout", "NoRule", "Refusal", "Step", "check", "read"]
