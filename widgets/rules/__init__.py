"""One node of the graph: its rule as a formula, the rule's check and operators, and its details.

Not here: the list of steps (`backward`).
"""
