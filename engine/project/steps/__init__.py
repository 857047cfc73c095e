"""The phases of an optimizer step: which orders can run, and what an unusual one does.

Not here: running them (`engine/training/steps`).
"""
