"""What the checks before training found, and the curve of the learning-rate range test.

Not here: the checks (`engine/training/checks`).
"""
