"""What a model predicts: sample by sample, as counts of a confusion matrix, over the plane.

Not here: the figures of a run (`training/figures`).
"""
