"""The runs of a project as a list: filter, notes, what two differ in, and what to do with one.

Not here: the plots, which overlay the runs that are ticked (`widgets/training/plots`).
"""
