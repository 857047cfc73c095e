"""Training by several processes, the ranks: sharing batches and gradients, and starting the ranks.

Not here: the program that a rank runs (`engine/ranks`).
"""
