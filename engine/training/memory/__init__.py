"""The memory of one whole step, operation by operation: what made each storage, what holds it.

Not here: the figures of a run (`training/figures/memory`), what computing again saves
(`training/execution/step_memory`).
"""
