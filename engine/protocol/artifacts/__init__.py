"""Messages about files that hold tensors or programs: their index, and how two differ.

Not here: weights that are written or loaded (`protocol/commands.py`).
"""
