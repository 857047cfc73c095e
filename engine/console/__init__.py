"""The console's namespace: running cells in it, its variables, completion, output, journal.

Not here: what the recorder sees while a cell runs (`recording`), views of a tensor (`tensors`).

What code prints is bounded (`output`): the window gets the first lines, then the newest ones a few
times a second, and a file holds all.
"""
