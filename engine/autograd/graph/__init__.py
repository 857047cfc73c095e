"""The graph that autograd recorded: its nodes, saved tensors, origins, and single runs of nodes.

Not here: passes over the graph (`backward`), formulas of its nodes (`formulas`).
"""
