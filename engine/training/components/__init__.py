"""Loss, optimizer, scheduler and device of a run, made from their names.

Not here: using them (`training/objectives`, `training/optimization`).
"""
