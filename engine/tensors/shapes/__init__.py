"""Shapes that meet: broadcasting, reductions, products, indexing, as plans for drawing.

Not here: strides, dtypes and copies of a result (`explain`), shapes that failed (`failures`).
"""
