"""The folder of a run: its settings, its figures in SQLite, its checkpoints, told to any process.

Not here: the loop and what a checkpoint holds (`engine/training`); nothing imports torch.
"""
