"""Stepping backward: the steppers, breakpoints, edits, and the comparison with plain backward.

Not here: reading the graph (`graph`).
"""
