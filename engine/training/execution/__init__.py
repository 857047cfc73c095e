"""How torch runs the forward pass of a step: compiled, with some activations computed again; and by
deterministic algorithms only.

Not here: the memory that a step takes (`memory`), what it computes (`objectives`, `steps`), its
update and autocast (`optimization`).
"""
