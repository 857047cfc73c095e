"""Shapes in operations: broadcasting, reductions, products, indexing, and shapes that do not fit.

Not here: operations explained step by step (`operations`).
"""
