"""The tabs beside Train's plots: modules and histograms over time, memory, landscape.

Not here: the plots of a run (`train/train`).
"""
