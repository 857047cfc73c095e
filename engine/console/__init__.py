"""The console's namespace: running cells in it, its variables, completion, output, journal.

Not here: what the recorder sees while a cell runs (`recording`), views of a tensor (`tensors`).
"""
