"""The contents of a file: its keys as a tree, numbers, the picture of its program, how two differ.

Not here: reading files (the engine), and exporting.
"""
