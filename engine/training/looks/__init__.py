"""Looks at the parameters of a run every so many steps: norms and histograms.

Not here: the figures of every step (`training/figures`), and where they are kept (`runs`).
"""
