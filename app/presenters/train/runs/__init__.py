"""The list of runs under Train, and what comes of it: their curves, copies, event files, sweeps.

Not here: the run of the plots (`train/train`).
"""
