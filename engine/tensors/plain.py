"""Whether what was read from a file is a plain tensor, and what else it is, in words."""

from __future__ import annotations

import torch
from torch import Tensor

_MAX_CHARS = 40
_MAX_NAME_CHARS = 1000


def tensor_problem(value: object) -> str:
    """Why `value` is not a plain tensor, whose numbers a model's tensor can take; "" if it is."""
    if not isinstance(value, Tensor):
        return f"a tensor is expected, not {described(value)}"
    if value.is_nested:
        return "a dense tensor is expected, not a nested one"
    if value.layout != torch.strided:
        return f"a dense tensor is expected, not one of layout {value.layout}"
    if value.is_quantized or value.device.type != "cpu":
        return "this tensor has no numbers of its own (it is quantized, or on the meta device)"
    return ""


def is_name(value: object) -> bool:
    """Whether it can name a tensor: text without half characters, of bounded length."""
    if not isinstance(value, str) or len(value) > _MAX_NAME_CHARS:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def described(value: object) -> str:
    """A value in a message: itself if it is short and plain, else its type."""
    if isinstance(value, int) and abs(value) >= 2**63:
        return "a whole number of more than 64 bits"
    if isinstance(value, str | int | float) and len(text := ascii(value)) <= _MAX_CHARS:
        return text
    return "None" if value is None else f"a {type(value).__name__}"
