"""Looks at the parameters of a run now and then: norms and histograms.

Not here: the figures of every step (`training/figures`), and where they are kept (`runs`).
"""
