"""Points that the user paints in the plane: the pad, and the form around it.

Not here: what the points become as a data set (`engine/datasets/points.py`).
"""
