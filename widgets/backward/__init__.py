"""The backward pass beside its graph: the next node, its gradients, breakpoints, edits.

Not here: the picture of the graph (`graph`), the rule of a node (`rules`).
"""
