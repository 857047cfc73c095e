"""The state of a run at a step: fields, file, states kept to go back to, and whether it fits.

Not here: the optimizer's own state (`training.optimization`).

What comes from a file is checked once, where it is decoded (`checkpoint_fields`).
"""
