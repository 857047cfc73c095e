"""The numbers in a tensor: the window that a view shows, statistics, points of lines, bits.

Not here: where they lie in memory (`memory`), summaries of small tensors (`tensors.summary`).
"""
