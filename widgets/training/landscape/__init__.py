"""The loss around the weights, as a line or a plane.

Not here: the curves of a run (`training/plots`).
"""
