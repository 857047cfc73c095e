"""A recording of cells at little cost while loops run: the functions that made nodes, what was
written.

Not here: recording every line and value (`recording`).
"""
