"""Paints a laid-out autograd graph from arrays: boxes, frames, links and their numbers.

Not here: which boxes are open, and what a click does (`graph`).
"""
