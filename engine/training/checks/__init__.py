"""What can be checked of a model, its data and its settings before a run; nothing of them changes.

Not here: what is seen while a run goes on (`training/watchpoints`), a data file's faults
(`datasets`).
"""
