"""The folder of a run: its settings, its figures in SQLite, its checkpoints, told to any process.
It imports no torch.

Not here: the loop and what a checkpoint holds (`training`).

`folders` says what is in the folder; `writer` writes it. A run of code has no copies of its files,
only their paths and SHA-256: it goes on with those that are there, and tells which have changed.
"""
