"""Answers about files that hold tensors or programs.

Not here: their numbers (`handlers.values`), and loading weights (`handlers.exporting`).
"""
