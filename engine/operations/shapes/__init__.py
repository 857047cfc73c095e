"""The shapes of broadcasting, reductions, products and indexing, as plans for drawing.

Not here: strides, dtypes and copies of a result (`explain`), shapes that failed (`failures`).
"""
