"""The structure of a module of code: the tree of its modules, the table of its parameters and
buffers, and lines of Python that change them.

Not here: the canvas of blocks (`canvas`), and the graph that autograd records (`graph`).
"""
