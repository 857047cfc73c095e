"""Reading tensors: summaries and pictures that change nothing in the tensors.

Not here: the graph behind a tensor (`autograd`), the namespace that holds it (`console`), and what
an operation does with it (`operations`).

`errors.toml` says what torch's errors mean, a line for each; `error_help` reads it.
"""

from .summary import picture, summarise, value

__all__ = ["picture", "summarise", "value"]
