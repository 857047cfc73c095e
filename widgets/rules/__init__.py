"""One node of the graph: its rule as a formula, its check, its operators, its page.

Not here: the list of steps (`backward`).
"""
