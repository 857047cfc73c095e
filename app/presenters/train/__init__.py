"""Presenters of Train: the run, its data, its objective, its table of parameters.

Not here: a loop of the user's own in the console (`presenters/cells.py`).
"""
