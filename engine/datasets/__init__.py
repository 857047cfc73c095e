"""Data sets: bundled ones and files, read, checked, split and made ready as tensors.

Not here: how batches become a loss (`training`), or which data set a project names (`project`). No
reader runs what a file holds: pickles are refused.
"""
