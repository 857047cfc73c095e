"""Messages of training: runs of Train, and what is told of a loop of the user's own.

Not here: the set-up of a run (`project`), data sets (`protocol/datasets`).
"""
