"""Predictions of a model: confusion matrix, samples, the plane, numbers beside their targets.

Not here: the curves of a run (`widgets/training/plots`).
"""
