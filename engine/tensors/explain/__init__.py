"""The result of an operation, predicted before it runs: shape, strides, dtype, memory, and why.
Not in it: why torch refused an operation, in `failures`."""

from .checking import Fact, check
from .layout import Layout
from .reading import read
from .steps import NoRule, Refusal, Step

__all__ = ["Fact", "Layout", "NoRule", "Refusal", "Step", "check", "read"]
