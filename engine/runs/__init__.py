"""The folder of a run: its settings, its figures in SQLite, its checkpoints, told to any process.
It imports no torch.

Not here: the loop and what a checkpoint holds (`training`).

`folders` says what is in the folder; `writer` writes it. A run of code keeps copies of its files
(`code`).
"""
