"""Presenters of the Autograd workspace: one for each of its tabs, and for the panels of a pass.

Not in: the graph, the rules and the passes themselves, which are the engine's.
"""
