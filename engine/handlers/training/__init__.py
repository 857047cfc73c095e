"""Answers to commands about runs of Train.

Not here: the loop and its state (`engine/training`).
"""
