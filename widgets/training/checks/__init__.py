"""The results of the checks before training, and the curve of the learning-rate range test.

Not here: the checks (`engine/training/checks`).
"""
