"""Presenters of the Autograd workspace: one for each tab, and for the panels beside a pass.

Not here: the graph, the rules and the passes themselves, which the engine computes.
"""
