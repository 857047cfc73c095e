"""Answers about data sets.

Not here: the forward pass of a batch (`handlers.models`), training (`handlers.training`).
"""
