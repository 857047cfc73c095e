"""A slice of the loss around the weights: filter-normalised directions, and the loss along them.

Not here: how weights move in training (`training/figures`).
"""
