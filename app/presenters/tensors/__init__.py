"""Presenters of the Tensors workspace: its console, its tabs and the tensor they all show.

Not in: the project's cells, which outlive this workspace (`presenters.cells`).
"""
