"""The operands of an operation that failed, and what of them does not fit."""

from .call import Call, Seen
from .marks import failed_operands
from .reading import raised_operands, seen_tensor

__all__ = ["Call", "Seen", "failed_operands", "raised_operands", "seen_tensor"]
