"""The figures of a run: loss, metrics, gradient norm, speed, memory, and how often.

Not here: what a run trains for (`training/objectives`).
"""
