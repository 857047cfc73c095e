"""Checks of a model, its data and its settings before a run; they change nothing.

Not here: what is seen while a run goes on (`training/watchpoints`), a data file's faults
(`datasets`).
"""
