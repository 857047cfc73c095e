"""How the parameters of a run moved: norms by module, histograms.

Not here: the figures of the whole model (`training/plots`).
"""
