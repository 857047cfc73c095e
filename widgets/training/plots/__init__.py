"""Live plots of a run: canvas, axes, legend, and the numbers behind a curve.

Not here: the tables and the bar of a run (`widgets/training`).
"""
