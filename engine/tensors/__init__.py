"""Reading tensors: summaries and pictures that never disturb what they look at."""

from .summary import picture, summarise, value

__all__ = ["picture", "summarise", "value"]
