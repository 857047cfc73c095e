"""Presenters of the Tensors workspace: its console, its tabs, and the selected tensor.

Not in: the project's cells, which exist without this workspace (`presenters.cells`).
"""
