"""Reading tensors: summaries and pictures that change nothing in the tensors. Not in it: the graph
behind a tensor, in `autograd`."""

from .summary import picture, summarise, value

__all__ = ["picture", "summarise", "value"]
