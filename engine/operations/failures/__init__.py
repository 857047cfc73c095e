"""The operands of an operation that failed, and the dimensions of them that do not fit.

Not here: what an operation that runs would give (`explain`), the words for errors
(`tensors/errors.toml`).
"""

from .call import Call, CallTensor
from .marks import failed_operands
from .reading import call_tensor, raised_operands

__all__ = ["Call", "CallTensor", "call_tensor", "failed_operands", "raised_operands"]
