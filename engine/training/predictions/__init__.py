"""Predictions of a model: sample by sample, as counts of a confusion matrix, over the plane.

Not here: the figures of a run (`training/figures`).
"""
