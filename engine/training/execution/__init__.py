"""How torch runs the forward pass of a step: compiled, with some activations computed again; and by
deterministic algorithms only; and the memory that a step takes.

Not here: what a step computes (`objectives`, `steps`), its update and autocast (`optimization`).
"""
