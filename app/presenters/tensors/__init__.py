"""Presenters of the Tensors workspace: its console, its tabs, and the selected tensor.

Not here: the project's cells, which exist without this workspace (`presenters.cells`).
"""
