"""The backward pass beside its graph: the next node, its gradients, breakpoints, edits.

Not here: the picture of the graph (`graph`), the rules of nodes (`rules`).
"""
