"""The memory of one whole step: operation by operation, what made each storage and what holds it;
and what computing activations again would save.

Not here: the figures of a run (`training/figures/memory`).
"""
