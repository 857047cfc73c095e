"""Samples that are too large for memory: they stay in their files, and rows of them are read.

Not here: which file has which samples (`datasets/arrays`, `idx`, `images`).
"""
