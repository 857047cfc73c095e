"""The backward rule of each node: as a formula, in words, computed, and with its numbers.

```python
rule = rule_of(node, step.incoming)      # a Node of the graph and its incoming gradients
rule.formula(0)                          # "∂L/∂a = g · b"
rule.compute(0)                          # the outgoing gradient, from the saved tensors
rule.numbers(0, (0, 2)).lines            # "∂L/∂a[0, 2] = g[0, 2] · b[0, 2]", "= 0.5 · 3", "= 1.5"
```

A node that is not in the book gets the general rule: a vector-Jacobian product.
The formulas themselves are in `families`. Not here: checking a rule by differences (`rules`).
"""

from . import families  # noqa: F401 - its files enter their formulas into the book
from .book import names, words_of
from .node_values import MissingValue
from .numbers import Numbers
from .rule import Rule, rule_of

__all__ = ["MissingValue", "Numbers", "Rule", "names", "rule_of", "words_of"]
