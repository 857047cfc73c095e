"""Files that hold tensors or programs: their index first, numbers on demand, and how two differ.
Nothing that is read can run code.

Not here: loading weights into a module, and writing files (`exporting`).
"""
